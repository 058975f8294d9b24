"""Who leads a partition. In this order, each time the first live one in the order of the replicas:

1. who leads already, if it is in sync;
2. a member of the ISR;
3. an eligible replica (ELR): it has all that was committed. The ISR is then this one alone;
4. when ISR and ELR have no members at all, live or not: the last known leader. Everybody who had all that was
   committed has lost records, so nobody better can come (KIP-966). Not when its log directory is gone: it has nothing,
   and whoever follows it would have nothing either;
5. with unclean election allowed any replica, rather one that has records than one that came back without its
   directory. The ISR is then this one alone, the ELR is empty;
6. nobody: the partition waits.

A preferred election asks for the first replica before 1, if it is in the ISR.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ottla.metadata.image import NO_LEADER, PartitionImage


def elect(
    partition: PartitionImage, is_live: Callable[[int], bool], *, unclean: bool, prefer_first: bool = False
) -> PartitionImage:
    """The partition with the leader it should have, itself if that leads already. A new leader raises both epochs."""
    leader = leader_for(partition, is_live, unclean=unclean, prefer_first=prefer_first)
    if leader == partition.leader:
        return partition
    led = with_leader(partition, leader)
    return replace(led, leader_epoch=partition.leader_epoch + 1, partition_epoch=partition.partition_epoch + 1)


def leader_for(
    partition: PartitionImage, is_live: Callable[[int], bool], *, unclean: bool, prefer_first: bool = False
) -> int:
    first = partition.replicas[0]
    if prefer_first and first in partition.isr and is_live(first):
        return first
    if partition.leader in partition.isr and is_live(partition.leader):
        return partition.leader
    live = [replica for replica in partition.replicas if is_live(replica)]
    for eligible in (partition.isr, partition.elr):
        for replica in live:
            if replica in eligible:
                return replica
    known = partition.last_known_leader
    if not partition.isr and not partition.elr and known in live and known not in partition.emptied:
        return known
    if not unclean or not live:
        return NO_LEADER
    return next((replica for replica in live if replica not in partition.emptied), live[0])


def with_leader(partition: PartitionImage, leader: int) -> PartitionImage:
    """The same partition led by `leader`, which `leader_for` gave; epochs are left to the caller."""
    if leader == NO_LEADER or leader in partition.isr:
        isr, elr = partition.isr, partition.elr
    elif leader in partition.elr:
        isr, elr = (leader,), tuple(member for member in partition.elr if member != leader)
    else:
        isr, elr = (leader,), ()
    known = partition.last_known_leader if leader == NO_LEADER else NO_LEADER
    return replace(partition, leader=leader, isr=isr, elr=elr, last_known_leader=known)
