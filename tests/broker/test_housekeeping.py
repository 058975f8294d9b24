"""Work on many logs, or on large ones, holds nobody back: not the event loop, not one another, not the end."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from ottla.common.ids import TopicPartition
from ottla.common.random_ids import random_topic_id
from ottla.storage.disk import Disk
from ottla.storage.log_dirs import future_log
from ottla.storage.log_manager import LogManager
from tests.support.loop_broker import LoopBroker
from tests.support.raw_client import batch_of

# Only so that a test fails instead of hanging.
GIVE_UP_S = 60


class SlowCopies(Disk):
    """Copies wait until `go` is set."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.begun = threading.Event()
        self.count = 0

    def copy_range(self, source: int, source_at: int, target: int, target_at: int, count: int) -> int:
        self.count += 1
        self.begun.set()
        self.go.wait(GIVE_UP_S)
        return super().copy_range(source, source_at, target, target_at, count)


async def start_move(broker: LoopBroker, disk: SlowCopies, topic: str) -> None:
    """A move of a sealed segment is under way, and waits."""
    await broker.create_topic(topic, configs={"segment.bytes": str(1 << 20)})
    partition = broker.broker.partitions.get(topic, 0)
    assert partition is not None
    for _ in range(3):
        partition.log.append(batch_of(bytes(700_000)), leader_epoch=0, now_ms=1)
    target = next(one for one in broker.broker.logs.dirs if one.path != partition.log.dir.parent)
    broker.broker.replica_moves.start(TopicPartition(topic, 0), target)
    await asyncio.to_thread(disk.begun.wait, GIVE_UP_S)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> SlowCopies:
    monkeypatch.setattr(future_log, "_COPY_BYTES", 64 * 1024)
    return SlowCopies()


def two_dirs(folder: Path) -> dict[str, str]:
    return {"log.dirs": f"{folder / 'one'},{folder / 'two'}"}


async def test_a_topic_is_made_again_and_checkpoints_are_written_while_a_replica_is_copied(
    tmp_path: Path, disk: SlowCopies
) -> None:
    async with LoopBroker(tmp_path, two_dirs(tmp_path), disk=disk) as broker:
        logs = broker.broker.logs
        await broker.create_topic("again")
        await asyncio.gather(*map(asyncio.wrap_future, logs.checkpoint()))
        await start_move(broker, disk, "large")
        await broker.delete_topic("again")
        assert logs.checkpointing.names_any_deleted([TopicPartition("again", 0)])
        await broker.create_topic("again")
        await asyncio.gather(*map(asyncio.wrap_future, logs.checkpoint()))
        assert disk.count == 1, "it waited for the copy"
        disk.go.set()


@pytest.mark.parametrize("why", ["the broker stops", "the topic is deleted", "another place is wanted"])
async def test_a_copy_that_nobody_wants_any_more_ends_at_once(tmp_path: Path, disk: SlowCopies, why: str) -> None:
    async with LoopBroker(tmp_path, two_dirs(tmp_path), disk=disk) as broker:
        moves, tp = broker.broker.replica_moves, TopicPartition("large", 0)
        await start_move(broker, disk, "large")
        move = moves.get(tp)
        assert move is not None and move.task is not None
        if why == "the broker stops":
            ending = asyncio.ensure_future(moves.close())
            await asyncio.sleep(0)
            disk.go.set()
            await ending
        elif why == "the topic is deleted":
            await broker.delete_topic("large")
            disk.go.set()
        else:
            log = broker.broker.logs.get(tp)
            assert log is not None
            moves.start(tp, next(one for one in broker.broker.logs.dirs if one.path == log.dir.parent))
            disk.go.set()
        await asyncio.wait([move.task], timeout=GIVE_UP_S)
        assert move.task.done()
        # One piece was under way.
        assert disk.count <= 2
    assert not list(tmp_path.glob("*/*-future"))


async def test_chores_over_all_logs_stop_every_few_logs(tmp_path: Path) -> None:
    count, at_once_max = 200, 50
    async with LoopBroker(tmp_path) as broker:
        await broker.create_topic("wide", count)
        logs = broker.broker.logs
        assert len(list(logs.retain_in_steps(1))) >= count
        assert len(list(logs.flush_in_steps())) >= count // at_once_max
        assert len(list(logs.checkpointing.in_steps())) >= count // at_once_max


async def test_a_log_that_goes_while_checkpoints_are_gathered_is_not_in_them(tmp_path: Path) -> None:
    async with LoopBroker(tmp_path) as broker:
        await broker.create_topic("wide", 100)
        logs: LogManager = broker.broker.logs
        first, last = TopicPartition("wide", 0), TopicPartition("wide", 99)
        gathering = logs.checkpointing.in_steps()
        for _ in range(3):
            next(gathering)
        old = logs.get(first)
        assert old is not None
        logs.delete(first)
        logs.delete(last)
        logs.create(first, random_topic_id(), old.config)
        with pytest.raises(StopIteration) as end:
            while True:
                next(gathering)
        await asyncio.gather(*map(asyncio.wrap_future, end.value.value))
        points = logs.dirs[0].read_offsets("recovery-point-offset-checkpoint")
        assert first not in points
        assert last not in points
        assert len(points) == 98
