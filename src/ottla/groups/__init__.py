"""Consumer groups as pure machines: a request becomes records, answers and timers; replaying records is the only way
durable state changes.

Reading paths. `requests` gives what members ask, and their timers, to the kind of group that they are in. A classic
rebalance: `classic_join` -> `classic_rebalance` -> `classic_sync`, on the state in `classic_group`. KIP-848:
`consumer_heartbeat` -> `consumer_update` -> `target` (and `assignors`) -> `reconcile`, on the state in
`consumer_group`. Classic members of such a group: `mixed_group`, and `migration` from one kind to the other. Commits:
`offset_requests`, on the store in `offsets`. `state` has all groups of one `__consumer_offsets` partition and the
replay. Who runs all this, writes the records and keeps the timers is `ottla.broker.coordinators.groups.group_shard`.
"""
