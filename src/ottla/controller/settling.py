"""What a partition should be, given the brokers: the one place where all rules about it come together.

`settle` is level-triggered: it looks at what is, never at what happened, and returns the same object when nothing is to
be done. So a controller that knows only the store does what the one before it left undone, and doing it twice does
nothing. In this order:

1. **In sync** are those of the ISR that are live, by the registration by which they joined it, and whose log directory
   has not failed. One that is stopping leaves the ISR where others remain.
2. **A reassignment is complete** when all replicas of its target are in sync; then those it removes are gone.
3. **Eligible** (ELR, KIP-966) is nobody while min.insync.replicas are in sync. While there are fewer nothing is
   committed, so whoever leaves the ISR keeps all that was committed: it is eligible until it loses records, which a
   machine that went down and a failed log directory are taken for. Who came back without the directory that held its
   records is *emptied*: neither eligible nor the last known leader, until it is in sync or comes back with it.
4. **Leader**: `elections.py`. When the last of the ISR is gone, who led is remembered as the last known leader.
5. **Epochs.** Every change raises the partition epoch by one. The leader epoch grows with each leader: another one,
   none, the same one under a new registration; and when a replica is removed, so that nothing of it counts any more.

The ISR and ELR are kept in the order of the replicas.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import NamedTuple

from ottla.controller.elections import leader_for, with_leader
from ottla.controller.rules import Rules, effective_min_insync, min_insync_in_force
from ottla.controller.standing import Standing
from ottla.metadata.image import NO_LEADER, PartitionImage, TopicImage


class _Decision(NamedTuple):
    before: PartitionImage
    after: PartitionImage


def settle_topics(topics: Iterable[TopicImage], standing: Standing, rules: Rules) -> dict[str, TopicImage]:
    """Those that change, by name. Most partitions look alike but for their epochs: what was decided about one serves
    all of them. 2,000 partitions must not keep the controller from its work for long."""
    decided: dict[object, _Decision] = {}
    changed = {}
    for topic in topics:
        if all(_is_settled(partition, standing) for partition in topic.partitions) and not _is_missed(topic, standing):
            continue
        min_insync, unclean = min_insync_in_force(topic, rules), rules.unclean_election(topic)
        partitions = []
        for index, before in enumerate(topic.partitions):
            missing = standing.missing_from(topic.id, index)
            key = (min_insync, unclean, missing, *_all_but_epochs(before))
            decision = decided.get(key)
            if decision is None:
                after = settle(before, standing, min_insync=min_insync, unclean=unclean, missing=missing)
                decision = decided[key] = _Decision(before, after)
            partitions.append(_decided_alike(decision, before))
        if any(new is not old for new, old in zip(partitions, topic.partitions, strict=True)):
            changed[topic.name] = replace(topic, partitions=tuple(partitions))
    return changed


def _is_missed(topic: TopicImage, standing: Standing) -> bool:
    return any(topic.id in missing for missing in standing.missing.values())


def _all_but_epochs(partition: PartitionImage) -> tuple[object, ...]:
    return (
        partition.leader,
        partition.replicas,
        partition.isr,
        partition.elr,
        partition.last_known_leader,
        partition.adding,
        partition.removing,
        partition.offline,
        partition.emptied,
    )


def _decided_alike(decision: _Decision, partition: PartitionImage) -> PartitionImage:
    if decision.after is decision.before:
        return partition
    raised = decision.after.leader_epoch - decision.before.leader_epoch
    return replace(
        decision.after,
        leader_epoch=partition.leader_epoch + raised,
        partition_epoch=partition.partition_epoch + 1,
    )


def settle(
    before: PartitionImage,
    standing: Standing,
    *,
    min_insync: int,
    unclean: bool,
    target: PartitionImage | None = None,
    prefer_first: bool = False,
    missing: Collection[int] = (),
) -> PartitionImage:
    """`before` itself, or what it becomes. `target` is what somebody asks for: another ISR or assignment. `missing` are
    renewed brokers that do not have this replica any more."""
    if target is None:
        if not prefer_first and not missing and _is_settled(before, standing):
            return before
        target = before
    target = _in_sync(target, standing)
    target = replace(target, emptied=_emptied(target, standing, missing))
    target = _without_completed_reassignment(target)
    target = _with_eligible(before, target, standing, min_insync)
    target, is_new_leadership = _led(before, target, standing, unclean=unclean, prefer_first=prefer_first)
    # An eligible replica that leads may be all that a reassignment waited for.
    target = _without_completed_reassignment(target)
    if len(target.isr) >= effective_min_insync(min_insync, target):
        target = replace(target, elr=())
    if target.emptied:
        target = replace(target, emptied=tuple(replica for replica in target.emptied if replica not in target.isr))
    return _with_epochs(before, target, is_new_leadership)


def _is_settled(partition: PartitionImage, standing: Standing) -> bool:
    """The usual case, told quickly: nothing about this partition can change."""
    return (
        partition.leader in partition.isr
        and standing.live.issuperset(partition.isr)
        and standing.stopping.isdisjoint(partition.isr)
        and standing.renewed.isdisjoint(partition.isr)
        and not (partition.elr or partition.adding or partition.removing or partition.offline or partition.emptied)
    )


def _in_sync(target: PartitionImage, standing: Standing) -> PartitionImage:
    offline = tuple(
        replica for replica in target.offline if replica in target.replicas and replica not in standing.renewed
    )
    members = [
        replica
        for replica in target.replicas
        if replica in target.isr
        and replica in standing.live
        and replica not in standing.renewed
        and replica not in offline
    ]
    staying = [replica for replica in members if replica not in standing.stopping]
    return replace(target, isr=tuple(staying or members), offline=offline)


def _emptied(target: PartitionImage, standing: Standing, missing: Collection[int]) -> tuple[int, ...]:
    """Who has registered anew says again what it does not have."""
    return tuple(
        replica
        for replica in target.replicas
        if replica in missing
        or (replica in target.emptied and replica not in standing.renewed and replica not in target.isr)
    )


def _without_completed_reassignment(target: PartitionImage) -> PartitionImage:
    if not target.adding and not target.removing:
        return target
    replicas = tuple(replica for replica in target.replicas if replica not in target.removing)
    if not set(replicas) <= set(target.isr):
        return target
    offline = tuple(replica for replica in target.offline if replica in replicas)
    return replace(target, replicas=replicas, isr=replicas, adding=(), removing=(), offline=offline, emptied=())


def _with_eligible(
    before: PartitionImage, target: PartitionImage, standing: Standing, min_insync: int
) -> PartitionImage:
    if len(target.isr) >= effective_min_insync(min_insync, target):
        return replace(target, elr=())
    eligible = tuple(
        replica
        for replica in target.replicas
        if (replica in before.isr or replica in before.elr)
        and replica not in target.isr
        and replica not in standing.lost
        and replica not in target.emptied
        # A directory that failed may come back empty; also when its broker has just registered anew.
        and replica not in before.offline
        and replica not in target.offline
    )
    return replace(target, elr=eligible)


def _led(
    before: PartitionImage, target: PartitionImage, standing: Standing, *, unclean: bool, prefer_first: bool
) -> tuple[PartitionImage, bool]:
    """With its leader, and whether that leads anew."""
    target = replace(target, last_known_leader=_last_known_leader(before, target))

    def may_lead(replica: int) -> bool:
        if replica in target.offline or replica not in standing.live:
            return False
        # One that is stopping is in the ISR only where nobody else is.
        return replica not in standing.stopping or replica in target.isr

    leader = leader_for(target, may_lead, unclean=unclean, prefer_first=prefer_first)
    is_kept = leader == before.leader and (leader == NO_LEADER or leader in target.isr)
    return with_leader(target, leader), not is_kept


def _last_known_leader(before: PartitionImage, target: PartitionImage) -> int:
    known = target.last_known_leader
    if not target.isr and known == NO_LEADER:
        known = before.leader
    if known in target.replicas:
        return known
    if target.isr or target.elr:
        return NO_LEADER
    # Who led was moved away. The last who had everything has lost records now, and is still the best there is.
    had_all = [replica for replica in target.replicas if replica in before.isr or replica in before.elr]
    return next((replica for replica in had_all if replica not in target.emptied), had_all[0] if had_all else NO_LEADER)


def _with_epochs(before: PartitionImage, after: PartitionImage, is_new_leadership: bool) -> PartitionImage:
    is_new_epoch = is_new_leadership or not set(before.replicas) <= set(after.replicas)
    if not is_new_epoch and after == before:
        return before
    return replace(after, leader_epoch=before.leader_epoch + is_new_epoch, partition_epoch=before.partition_epoch + 1)
