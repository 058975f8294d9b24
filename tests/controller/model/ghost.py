"""What must be true of committed records, kept in plain Python beside the controller.

For each partition: the records that were committed, in order; and who counts as a holder of all of them. Whoever joins
the ISR is a holder. While at least min.insync.replicas are in sync only those are, because records are committed
without the others; below that nothing is committed and whoever leaves stays a holder. Who loses records is none at
once, long before any controller hears of it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from ottla.metadata.image import NO_LEADER, PartitionImage


class Violation(AssertionError):
    pass


class Record(NamedTuple):
    leader_epoch: int
    number: int


class Ghost:
    def __init__(self, partition: PartitionImage) -> None:
        self.committed: list[Record] = []
        self.holders = set(partition.isr)
        # Records that were lost where that is allowed.
        self.allowed_losses = 0
        # The last election of somebody who need not have all: what a leader of before says does not count any more.
        self.first_epoch = 0

    def commit(self, log: list[Record], count: int, leader_epoch: int) -> None:
        """A leader says that these are committed."""
        if leader_epoch < self.first_epoch:
            return
        known = min(count, len(self.committed))
        if log[:known] != self.committed[:known]:
            raise Violation(f"a second value for an offset: {log[:known]} is not {self.committed[:known]}")
        self.committed += log[len(self.committed) : count]

    def lost(self, broker: int) -> None:
        self.holders.discard(broker)

    def changed(self, before: PartitionImage, after: PartitionImage, min_insync: int) -> None:
        """The controller has changed the partition."""
        # An eligible replica that is elected is what it was: it may have lost records since, unknown to anybody.
        self.holders |= set(after.isr) - set(before.isr) - set(before.elr)
        if len(after.isr) >= min(min_insync, len(after.replicas)):
            self.holders &= set(after.isr)
        self.holders &= set(after.replicas)

    def elected(
        self,
        before: PartitionImage,
        after: PartitionImage,
        log: list[Record],
        *,
        proposed: Collection[int],
        unclean: bool,
        is_running: bool,
        is_emptied: bool = False,
    ) -> None:
        """Call it before `changed`. Who is neither in sync, nor `proposed` by the leader, nor eligible, leads only in
        an unclean election, or when no holder is left; then records may be lost."""
        if after.leader == NO_LEADER or after.leader_epoch == before.leader_epoch:
            return
        may_lose = unclean or not self.holders & set(before.replicas)
        if is_emptied and not unclean:
            raise Violation(f"{after.leader} is elected, and came back with an empty disk")
        if after.leader not in {*before.isr, *before.elr, *proposed}:
            if not may_lose:
                raise Violation(f"{after.leader} is elected, and {self.holders} have all records")
            self.first_epoch, self.holders = after.leader_epoch, {after.leader}
        if self.is_whole(log):
            return
        if may_lose:
            same = common(log, self.committed)
            self.allowed_losses += len(self.committed) - same
            del self.committed[same:]
        elif is_running:
            raise Violation(f"{after.leader} is elected, without {self.committed[common(log, self.committed) :]}")

    def is_whole(self, log: list[Record]) -> bool:
        return log[: len(self.committed)] == self.committed


def common(one: list[Record], other: list[Record]) -> int:
    """How many records both begin with."""
    for count, (mine, theirs) in enumerate(zip(one, other, strict=False)):
        if mine != theirs:
            return count
    return min(len(one), len(other))
