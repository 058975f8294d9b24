"""Partitions and who waits for them."""

from __future__ import annotations

from pathlib import Path

from tests.support.loop_broker import LoopBroker


class Waiter:
    """Counts how often one is compared with another: the work of finding it among many."""

    comparisons = 0

    def __call__(self, size: int) -> None: ...

    def __eq__(self, other: object) -> bool:
        Waiter.comparisons += 1
        return self is other

    def __hash__(self) -> int:
        return id(self) >> 4


async def test_many_may_wait_for_one_partition_and_leave_in_any_order(tmp_path: Path) -> None:
    async with LoopBroker(tmp_path) as broker:
        await broker.create_topic("topic")
        partition = broker.broker.partitions.get("topic", 0)
        assert partition is not None
        waiters = [Waiter() for _ in range(2000)]
        for one in waiters:
            partition.watch(one)
        Waiter.comparisons = 0
        for one in (*waiters[1::2], *reversed(waiters[::2])):
            partition.unwatch(one)
        assert Waiter.comparisons < 10 * len(waiters)
