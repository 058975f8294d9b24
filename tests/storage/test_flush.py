"""Syncs run beside appends, gather what waits, and move the recovery point only when they are done."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicPartition
from ottla.common.random_ids import random_topic_id
from ottla.common.steps import to_the_end
from ottla.storage.disk import Disk
from ottla.storage.log_config import LogConfig
from ottla.storage.log_manager import LogManager
from tests.storage.batches import NOW_MS, append, batch, open_log
from tests.storage.disks import BrokenDisk, SlowDisk
from tests.support.manual_clock import ManualClock


def manager(path: Path, disk: Disk, clock: ManualClock | None = None) -> LogManager:
    logs = LogManager(
        [path], node_id=1, cluster_id="c", clock=clock or ManualClock(), default_config=LogConfig(), disk=disk
    )
    logs.open()
    return logs


@pytest.mark.timeout(20)
async def test_appends_go_on_while_a_sync_runs_and_the_next_one_covers_them(tmp_path: Path) -> None:
    disk = SlowDisk()
    disk.go.set()
    logs = manager(tmp_path, disk)
    log = logs.create(TopicPartition("t", 0), random_topic_id(), LogConfig())
    append(log, b"first")
    disk.go.clear()
    disk.started.clear()
    first = log.flush_async()
    await asyncio.to_thread(disk.started.wait)
    waiting = []
    for n in range(10):
        append(log, b"%d" % n)
        waiting.append(log.flush_async())
    assert (log.log_end_offset, log.recovery_point) == (11, 0)
    disk.go.set()
    await first
    assert log.recovery_point >= 1
    syncs = disk.syncs
    for one in waiting:
        await one
    assert log.recovery_point == 11
    assert disk.syncs - syncs <= 2
    logs.close()


async def test_flush_messages_asks_to_wait(tmp_path: Path) -> None:
    logs = manager(tmp_path, Disk())
    log = logs.create(TopicPartition("t", 0), random_topic_id(), LogConfig(flush_messages=3))
    due = [log.append(batch(b"x"), leader_epoch=0, now_ms=NOW_MS).flush_due for _ in range(4)]
    assert due == [False, False, True, True]
    await log.flush_async()
    assert log.recovery_point == 4
    assert not log.append(batch(b"x"), leader_epoch=0, now_ms=NOW_MS).flush_due
    logs.close()


def test_flush_ms_counts_from_the_last_sync(tmp_path: Path) -> None:
    clock = ManualClock()
    logs = manager(tmp_path, Disk(), clock)
    log = logs.create(TopicPartition("t", 0), random_topic_id(), LogConfig(flush_ms=1000))
    append(log, b"x")
    for step, expected in ((999, 0), (1, 1)):
        clock.advance(step)
        to_the_end(logs.flush_in_steps())
        logs.flusher.close()
        assert log.recovery_point == expected
    logs.close()


def test_a_truncation_during_a_sync_holds_the_recovery_point_back(tmp_path: Path) -> None:
    disk = SlowDisk()
    disk.go.set()
    logs = manager(tmp_path, disk)
    log = logs.create(TopicPartition("t", 0), random_topic_id(), LogConfig())
    for n in range(5):
        append(log, b"%d" % n)
    disk.go.clear()
    log.flush_async()
    log.truncate_to(2, NOW_MS)
    append(log, b"other")
    disk.go.set()
    logs.flusher.close()
    assert (log.recovery_point, log.log_end_offset) == (2, 3)
    logs.close()


def test_a_roll_syncs_the_sealed_segment(tmp_path: Path) -> None:
    logs = manager(tmp_path, Disk())
    log = logs.create(TopicPartition("t", 0), random_topic_id(), LogConfig(segment_bytes=500))
    for n in range(20):
        append(log, b"%d" % n)
    logs.flusher.close()
    assert log.recovery_point == log.segments[-1].base_offset > 0
    logs.close()


def test_a_clean_stop_syncs_everything_and_only_what_is_new(tmp_path: Path) -> None:
    disk = BrokenDisk()
    logs = manager(tmp_path, disk)
    for n in range(5):
        logs.create(TopicPartition("t", n), random_topic_id(), LogConfig())
    append(logs.logs[TopicPartition("t", 0)], b"x")
    logs.close()
    logs = manager(tmp_path, disk)
    assert logs.logs[TopicPartition("t", 0)].recovery_point == 1
    disk.syncs = 0
    logs.close()
    assert disk.syncs < 10  # the checkpoints and the mark, not five logs


def test_the_recovery_point_never_passes_the_end(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, b"x")
    log.flush(up_to=100)
    assert log.recovery_point == 1


class SlowTopics(Disk):
    """Syncs of a topic's files wait until they are let go."""

    def __init__(self, *topics: str) -> None:
        self.go = {topic: threading.Event() for topic in topics}

    def fsync(self, fd: int) -> None:
        for topic, go in self.go.items():
            assert f"/{topic}-0" not in os.readlink(f"/proc/self/fd/{fd}") or go.wait(10)
        super().fsync(fd)


@pytest.mark.timeout(20)
async def test_a_stop_in_another_thread_waits_for_what_follows_a_sync_under_way(tmp_path: Path) -> None:
    disk = SlowTopics("quick", "slow")
    logs = manager(tmp_path, disk)
    log, slow = (logs.create(TopicPartition(one, 0), random_topic_id(), LogConfig()) for one in disk.go)
    failures: list[dict[str, object]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: failures.append(context))
    append(log, b"first")
    append(slow, b"first")
    waiting = [log.flush_async(), slow.flush_async()]
    append(log, b"second")  # to be synced when the first one is
    waiting.append(log.flush_async())
    pool = logs.flusher._pool
    assert pool is not None
    closing = loop.run_in_executor(None, logs.close)
    while not pool._shutdown:
        await asyncio.sleep(0.001)
    disk.go["quick"].set()
    # Nothing is heard of it before the stop is through: a job that the loop starts now would find no threads.
    await asyncio.sleep(0.05)
    disk.go["slow"].set()
    await closing
    for one in waiting:
        await one
    assert failures == []
    assert (log.recovery_point, log.log_end_offset) == (2, 2)


@pytest.mark.timeout(20)
async def test_who_gives_up_waiting_for_a_sync_keeps_nobody_else_from_its_outcome(tmp_path: Path) -> None:
    disk = SlowDisk()
    disk.go.set()
    logs = manager(tmp_path, disk)
    log = logs.create(TopicPartition("t", 0), random_topic_id(), LogConfig())
    append(log, b"first")
    disk.go.clear()

    async def wait() -> None:
        await log.flush_async()

    tasks = [asyncio.create_task(wait()) for _ in range(3)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    await asyncio.sleep(0)
    append(log, b"second")
    tasks.append(asyncio.create_task(wait()))
    await asyncio.sleep(0)
    disk.go.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(one) for one in outcomes] == [asyncio.CancelledError, type(None), type(None), type(None)]
    assert log.recovery_point == 2
    logs.close()


class Scarce(Disk):
    """Nothing can be opened to be synced while there are no descriptors. Notes what was synced."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.none_left = False
        self.synced: list[str] = []
        self._open = os.open
        monkeypatch.setattr(os, "open", self._open_or_not)

    def _open_or_not(self, path: Any, flags: int, *more: Any) -> int:
        if self.none_left and flags == os.O_RDONLY:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return self._open(path, flags, *more)

    def fsync(self, fd: int) -> None:
        super().fsync(fd)
        self.synced.append(Path(os.readlink(f"/proc/self/fd/{fd}")).name)


@pytest.mark.parametrize("how", ["here", "in a thread"])
async def test_a_flush_that_finds_no_descriptor_is_refused_and_the_next_one_syncs_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """The folder of a new segment, its snapshot and the leader epochs are opened to be synced. That this fails says
    nothing of the disk."""

    async def flush() -> None:
        if how == "here":
            log.flush()
        else:
            await log.flush_async()

    disk = Scarce(monkeypatch)
    logs = manager(tmp_path, disk)
    log = logs.create(TopicPartition("t", 0), random_topic_id(), LogConfig())
    append(log, b"x", producer_id=1, producer_epoch=0, base_sequence=0)
    log.snapshots.write(1, log.producers.snapshot_entries())
    disk.synced.clear()
    disk.none_left = True
    with pytest.raises(ApiError) as refused:
        await flush()
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert (log.failed, logs.dirs[0].offline, log.recovery_point) == (None, None, 0)
    disk.none_left = False
    await flush()
    assert log.recovery_point == 1
    expected = {
        "t-0",
        tmp_path.name,
        "leader-epoch-checkpoint",
        log.snapshots.path(1).name,
        log.segments[0].path(".log").name,
    }
    assert expected <= set(disk.synced)
    logs.close()
