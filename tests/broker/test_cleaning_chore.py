"""The chore that drives compaction: what it does when a log or the worker process gives it trouble."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.chores.cleaning import Cleaning
from ottla.common.config import BrokerConfig
from ottla.common.ids import TopicPartition
from ottla.common.random_ids import random_topic_id
from ottla.storage.compaction import plan
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from ottla.storage.log_dirs.checkpoints import CLEANER_OFFSETS, RECOVERY_POINTS
from ottla.storage.log_manager import LogManager
from ottla.storage.worker import run_job
from ottla.storage.worker_process import WorkerDied
from tests.storage.batches import NOW_MS
from tests.storage.cleaning import COMPACT, leftovers, pairs, put
from tests.support.manual_clock import ManualClock

CONFIG = COMPACT


class Worker:
    """Works in this process, after `before_job`; dies when told to."""

    def __init__(self) -> None:
        self.jobs: list[str] = []
        self.kills = 0
        self.dies = False
        self.before_answer: Callable[[dict[str, Any]], None] = lambda answer: None

    async def run(self, values: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        self.jobs.append(Path(values["directory"]).name)
        if self.dies:
            raise WorkerDied("for a test")
        answers: list[dict[str, Any]] = []
        run_job({**values, "groups": [list(map(tuple, group)) for group in values["groups"]]}, answers.append)
        for answer in answers:
            self.before_answer(answer)
            yield answer

    async def kill(self) -> None:
        self.kills += 1

    async def close(self) -> None:
        await self.kill()


class Chore:
    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock(NOW_MS)
        self.logs = LogManager([folder], node_id=1, cluster_id="c", clock=self.clock, default_config=CONFIG)
        self.logs.open()
        self.config = BrokerConfig.load({})
        self.worker = Worker()
        self.cleaning = Cleaning(self.logs, self.config, self.clock, _in_thread, self.worker)  # type: ignore[arg-type]

    def dirty_log(self, name: str, config: LogConfig = CONFIG) -> Log:
        log = self.logs.create(TopicPartition(name, 0), random_topic_id(), config)
        self.make_dirty(log)
        return log

    def make_dirty(self, log: Log) -> None:
        for n in range(50):
            put(log, (b"key-%d" % (n % 3), b"%d" % n), timestamp=self.clock.now_ms())
        log.roll(self.clock.now_ms())


def _in_thread(work: Callable[..., Any], *arguments: Any) -> Awaitable[Any]:
    return asyncio.get_running_loop().run_in_executor(None, work, *arguments)


@pytest.fixture
def chore(tmp_path: Path) -> Iterator[Chore]:
    one = Chore(tmp_path)
    yield one
    one.logs.close()


async def test_all_that_is_due_is_cleaned_in_one_go(chore: Chore) -> None:
    logs = [chore.dirty_log(name) for name in ("a", "b", "c")]
    chore.dirty_log("plain", LogConfig())
    await chore.cleaning.tick()
    assert sorted(chore.worker.jobs) == ["a-0", "b-0", "c-0"]
    assert [len(pairs(log)) for log in logs] == [3, 3, 3]
    await chore.cleaning.tick()
    assert len(chore.worker.jobs) == 3


@pytest.mark.parametrize("settings", [{"log.cleaner.enable": "false"}, {"log.cleaner.threads": "0"}])
async def test_it_can_be_switched_off(chore: Chore, settings: dict[str, str]) -> None:
    chore.dirty_log("a")
    chore.cleaning._config = BrokerConfig.load(settings)
    await chore.cleaning.tick()
    assert chore.worker.jobs == []


@pytest.mark.parametrize("suffix", [".timeindex", ".index", ".txnindex"])
@pytest.mark.parametrize("damage", ["cut", "zeros", "missing"])
async def test_a_damaged_index_is_made_again_and_holds_up_nobody(tmp_path: Path, suffix: str, damage: str) -> None:
    before = Chore(tmp_path)
    for name in ("a", "bad", "c"):
        before.dirty_log(name)
    bad = before.logs.logs[TopicPartition("bad", 0)]
    before.logs.close()
    for segment in bad.segments[:-1]:
        path = segment.path(suffix)
        if damage == "missing":
            path.unlink()
        else:
            path.write_bytes(path.read_bytes()[:-1] if damage == "cut" else bytes(len(path.read_bytes()) + 12))
    chore = Chore(tmp_path)
    await chore.cleaning.tick()
    assert sorted(chore.worker.jobs) == ["a-0", "bad-0", "c-0"]
    assert [len(pairs(log)) for log in chore.logs.logs.values()] == [3, 3, 3]
    chore.logs.close()


async def test_a_log_that_cannot_be_looked_at_is_left_alone(chore: Chore, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = [chore.dirty_log(name) for name in ("a", "bad", "c")]
    monkeypatch.setattr(plan, "first_dirty_offset", broken_for(logs[1], plan.first_dirty_offset))
    await chore.cleaning.tick()
    assert sorted(chore.worker.jobs) == ["a-0", "c-0"]
    assert chore.cleaning.uncleanable == [logs[1]]


async def test_a_log_of_which_no_job_can_be_made_is_left_alone(chore: Chore, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = [chore.dirty_log(name) for name in ("a", "bad", "c")]
    monkeypatch.setattr(plan, "_aborted", broken_for(logs[1], plan._aborted))
    await chore.cleaning.tick()
    assert sorted(chore.worker.jobs) == ["a-0", "c-0"]
    assert chore.cleaning.uncleanable == [logs[1]]


def broken_for(bad: Log, ask: Callable[[Log], Any]) -> Callable[[Log], Any]:
    def answer(log: Log) -> Any:
        if log is bad:
            raise ValueError("nobody thought of this")
        return ask(log)

    return answer


async def test_what_a_round_rests_on_is_synced_first(chore: Chore) -> None:
    """A power cut must not take the value that another one went for, nor the marker that decided about it."""
    log = chore.dirty_log("a")
    put(log, (b"behind", b"the dirty part"))
    log.recovery_point = 0  # as after a start, or while the sync of a roll is under way
    synced: list[int] = []
    chore.worker.before_answer = lambda answer: synced.append(log.recovery_point)
    await chore.cleaning.tick()
    assert synced and set(synced) == {log.log_end_offset}


async def test_gaps_are_below_the_recovery_point_that_a_start_reads(chore: Chore) -> None:
    """Or a start after a crash would take them for holes, and drop what follows."""
    log = chore.dirty_log("a")
    chore.dirty_log("plain", LogConfig())
    chore.logs.checkpoint()
    chore.make_dirty(log)
    read: list[dict[TopicPartition, int]] = []
    chore.worker.before_answer = lambda answer: read.append(chore.logs.dirs[0].read_offsets(RECOVERY_POINTS))
    await chore.cleaning.tick()
    assert read and all(points[log.topic_partition] == log.log_end_offset for points in read)
    # What it says of others it says on.
    assert TopicPartition("plain", 0) in read[0]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
async def test_nothing_goes_while_the_recovery_point_cannot_be_written(
    chore: Chore, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    log = chore.dirty_log("a")
    before, replace_file = pairs(log), log.disk.replace_file

    def refuse(path: Path, content: bytes, *, sync: bool) -> None:
        if path.name == RECOVERY_POINTS:
            raise OSError(code, os.strerror(code))
        replace_file(path, content, sync=sync)

    monkeypatch.setattr(type(log.disk), "replace_file", staticmethod(refuse))
    await chore.cleaning.tick()
    assert (chore.worker.jobs, pairs(log), chore.cleaning.uncleanable) == ([], before, [])
    monkeypatch.undo()
    chore.clock.advance(60_000)
    await chore.cleaning.tick()
    assert len(pairs(log)) == 3


async def test_a_compacted_log_outlives_a_crash_whatever_happened_to_the_checkpoints(tmp_path: Path) -> None:
    before = Chore(tmp_path / "1")
    log = before.dirty_log("a")
    await before.cleaning.tick()
    put(log, (b"later", b"1"))
    expected = pairs(log)
    before.logs.close(clean=False)
    for number, lost in enumerate([(), (RECOVERY_POINTS,), (CLEANER_OFFSETS,), (RECOVERY_POINTS, CLEANER_OFFSETS)]):
        shutil.copytree(tmp_path / "1", tmp_path / f"copy-{number}")
        for name in lost:
            (tmp_path / f"copy-{number}" / name).unlink()
        for _ in range(2):  # what the first start writes is enough for the second
            after = Chore(tmp_path / f"copy-{number}")
            assert pairs(after.logs.logs[log.topic_partition]) == expected, lost
            after.logs.checkpoint()
            after.logs.close(clean=False)


async def test_a_damaged_log_is_not_tried_again(chore: Chore) -> None:
    bad, good = chore.dirty_log("bad"), chore.dirty_log("good")
    with bad.segments[0].path(".log").open("r+b") as file:
        file.seek(100)
        file.write(b"\xff\xff")
    for _ in range(3):
        await chore.cleaning.tick()
        chore.clock.advance(120_000)
        chore.make_dirty(good)
    assert chore.worker.jobs.count("bad-0") == 1
    assert chore.worker.jobs.count("good-0") == 3
    assert chore.cleaning.uncleanable == [bad]
    # Made anew, the partition gets another chance.
    chore.logs.delete(TopicPartition("bad", 0))
    again = chore.dirty_log("bad")
    await chore.cleaning.tick()
    assert chore.cleaning.uncleanable == []
    assert len(pairs(again)) == 3


async def test_after_trouble_that_may_pass_a_log_waits_a_minute(chore: Chore) -> None:
    log = chore.dirty_log("a")
    chore.worker.dies = True
    for _ in range(3):
        await chore.cleaning.tick()
        chore.clock.advance(10_000)
    assert len(chore.worker.jobs) == 1
    chore.worker.dies = False
    chore.clock.advance(40_000)
    await chore.cleaning.tick()
    assert len(pairs(log)) == 3
    assert chore.cleaning.uncleanable == []


async def test_a_topic_that_is_deleted_under_the_worker(chore: Chore) -> None:
    chore.dirty_log("a")
    chore.worker.before_answer = lambda answer: chore.logs.delete(TopicPartition("a", 0))
    await chore.cleaning.tick()
    assert chore.worker.kills == 1
    assert chore.cleaning.uncleanable == []


async def test_a_topic_that_is_deleted_and_made_again_under_the_worker(chore: Chore) -> None:
    chore.dirty_log("a")

    def replace(answer: dict[str, Any]) -> None:
        if chore.worker.jobs == ["a-0"] and chore.worker.kills == 0:
            chore.logs.delete(TopicPartition("a", 0))
            fresh = chore.logs.create(TopicPartition("a", 0), random_topic_id(), CONFIG)
            put(fresh, (b"new", b"1"))

    chore.worker.before_answer = replace
    await chore.cleaning.tick()
    fresh = chore.logs.get(TopicPartition("a", 0))
    assert fresh is not None
    assert pairs(fresh) == [(0, b"new", b"1")]


async def test_a_log_that_is_truncated_under_the_worker(chore: Chore) -> None:
    log = chore.dirty_log("a")
    done = False

    def truncate(answer: dict[str, Any]) -> None:
        nonlocal done
        if not done:
            done = True
            log.truncate_to(20, NOW_MS)
            log.high_watermark = 20
            log.roll(NOW_MS)

    chore.worker.before_answer = truncate
    await chore.cleaning.tick()
    # The first round was void; the second one, in the same tick, cleaned what is left.
    assert chore.worker.jobs == ["a-0", "a-0"]
    assert [offset for offset, _, _ in pairs(log)] == [17, 18, 19]
    assert leftovers(log.dir) == []
    assert chore.cleaning.uncleanable == []


async def test_a_folder_that_cannot_be_synced_goes_offline(chore: Chore, monkeypatch: pytest.MonkeyPatch) -> None:
    log = chore.dirty_log("a")
    log.flush()

    def fail(path: str | Path) -> None:
        if path == log.dir:
            raise OSError(5, os.strerror(5))

    monkeypatch.setattr(type(log.disk), "fsync_path", staticmethod(fail))
    await chore.cleaning.tick()
    assert log.failed is not None
    await chore.cleaning.tick()
    assert len(chore.worker.jobs) == 1


async def test_a_folder_that_finds_no_descriptor_is_synced_later(chore: Chore, monkeypatch: pytest.MonkeyPatch) -> None:
    log = chore.dirty_log("a")
    log.flush()
    synced, fsync_path, replace_file = list[str | Path](), log.disk.fsync_path, log.disk.replace_file
    writing_checkpoints = threading.local()

    def replace(path: Path, content: bytes, *, sync: bool) -> None:
        # Checkpoints are in the folder above, which is synced with them.
        writing_checkpoints.now = True
        try:
            replace_file(path, content, sync=sync)
        finally:
            writing_checkpoints.now = False

    def scarce(path: str | Path) -> None:
        if not getattr(writing_checkpoints, "now", False):
            synced.append(path)
            if len(synced) == 1:
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        fsync_path(path)

    monkeypatch.setattr("ottla.broker.chores.cleaning._SYNC_AGAIN_S", 0)
    monkeypatch.setattr(type(log.disk), "replace_file", staticmethod(replace))
    monkeypatch.setattr(type(log.disk), "fsync_path", staticmethod(scarce))
    await chore.cleaning.tick()
    assert (log.failed, chore.logs.dirs[0].offline) == (None, None)
    assert len(synced) > 1
    assert set(synced) == {log.dir}, "nothing else is what it waits for"
    assert len(pairs(log)) == 3


async def test_a_worker_that_nobody_listens_to_any_more_is_ended(chore: Chore) -> None:
    """Or its answers would be taken for those to the next job, of another log."""
    log = chore.dirty_log("a")

    def fail(_: dict[str, Any]) -> None:
        chore.worker.before_answer = lambda answer: None
        raise OSError(5, os.strerror(5))

    chore.worker.before_answer = fail
    await chore.cleaning.tick()
    assert chore.worker.kills == 1
    chore.clock.advance(60_000)
    await chore.cleaning.tick()
    assert len(pairs(log)) == 3 and leftovers(log.dir) == []


async def test_an_idle_worker_is_let_go(chore: Chore) -> None:
    chore.dirty_log("a")
    await chore.cleaning.tick()
    chore.clock.advance(29_000)
    await chore.cleaning.tick()
    assert chore.worker.kills == 0
    chore.clock.advance(1_000)
    await chore.cleaning.tick()
    assert chore.worker.kills == 1


async def test_a_clock_that_jumps_ahead_ends_no_retention_early(chore: Chore) -> None:
    log = chore.logs.create(TopicPartition("a", 0), random_topic_id(), CONFIG)
    put(log, (b"a", None), (b"b", b"1"))
    log.roll(NOW_MS)
    await chore.cleaning.tick()
    chore.clock.set_wall(NOW_MS + 1000 * 86_400_000)
    put(log, (b"c", None))
    log.roll(NOW_MS)
    log.cleaned_offset = 0
    await chore.cleaning.tick()
    assert [offset for offset, _, value in pairs(log) if value is None] == [0, 2]
