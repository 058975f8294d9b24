"""Consumer groups as pure machines: a request becomes records, answers and timers; replaying records is the only way
durable state changes.

Reading paths. A classic rebalance: `classic_join` -> `classic_rebalance` -> `classic_sync`, on the state in
`classic_group`. KIP-848: `consumer_heartbeat` -> `target` (and `assignors`) -> `reconcile`, on the state in
`consumer_group`. Commits: `offsets`. Everything meets in `shard`, which owns one `__consumer_offsets` partition.
"""
