"""What a partition promises, with random appends, flushes that end late or fail, and settings that change meanwhile.

- Nobody sees, or is told of, what is less on disk than the topic asks for; the high watermark never goes back.
- Who waits is told once, after all that came before, whatever happens to the disk.
- Who waits for records hears of at least as many bytes as became readable.
"""

from __future__ import annotations

import asyncio
import errno
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.broker.partitions.partition import Partition
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicPartition
from ottla.common.random_ids import random_topic_id
from ottla.metadata.image import TopicImage, initial_partition
from ottla.records.batch import HEADER
from ottla.storage.disk import Disk, OpenFile
from ottla.storage.flushing.flusher import FlushJob
from ottla.storage.loading.log_loader import load_log
from ottla.storage.log_config import LONG_MAX, LogConfig
from ottla.storage.owner import LogOwner
from ottla.storage.results import Origin
from tests.support.raw_client import batch_of

STEPS = 250
EACH_ONE = 1


class SometimesFull(Disk):
    full = False

    def open(self, path: str | Path, flags: int) -> OpenFile:
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().open(path, flags)


class Flushes:
    """Each ends when the test says so."""

    def __init__(self) -> None:
        self.under_way: list[Callable[[OSError | None], None]] = []

    def submit(self, job: FlushJob, finished: Callable[[OSError | None], None]) -> None:
        self.under_way.append(finished)


class World:
    def __init__(self, folder: Path, rng: random.Random, flush_messages: int | None) -> None:
        """`flush_messages` None: it changes now and then."""
        self.rng = rng
        self.is_steady = flush_messages is not None
        self.disk, self.flushes, owner = SometimesFull(), Flushes(), LogOwner()
        owner.flusher = self.flushes  # type: ignore[assignment]
        topic = TopicImage("topic", random_topic_id(), (initial_partition((1,)),))
        config = LogConfig(flush_messages=flush_messages or EACH_ONE)
        where = TopicPartition("topic", 0)
        folder.mkdir()
        self.log = load_log(folder, where, topic.id, config, owner=owner, disk=self.disk)
        self.partition = Partition(topic, 0, self.log, config)
        self.partition.watch(self._on_bytes)
        # Where each batch ends, and its size.
        self.batches: list[tuple[int, int]] = []
        self.heard_bytes = 0
        self.heard_from = 0
        self.high_watermark = 0
        # Of those who wait: what for, in the order in which they came; and which of them were told.
        self.waiting: list[int] = []
        self.told: list[int] = []
        self.futures: list[asyncio.Future[None]] = []

    def _on_bytes(self, size: int) -> None:
        self.heard_bytes += size

    # --- what happens

    def append(self) -> None:
        data = batch_of(*[b"x"] * self.rng.randint(1, 3), timestamp=1)
        origin = self.rng.choice((Origin.CLIENT, Origin.COORDINATOR))
        try:
            if self.partition.takes_plain_batches and self.rng.random() < 0.5:
                header = HEADER.unpack_from(data)
                end = self.partition.append_next(data, header, 1) + header[6] + 1
                if end <= header[6]:
                    return
            else:
                end = self.partition.append(data, 1, origin).last_offset + 1
        except ApiError as error:
            assert error.code is ErrorCode.KAFKA_STORAGE_ERROR
            return
        self.batches.append((end, len(data)))
        if self.rng.random() < 0.8:
            self.wait_for(end)

    def wait_for(self, end: int) -> None:
        if self.rng.random() < 0.3:
            waiting = self.partition.wait_for_commit(end)
            if waiting is not None:
                assert isinstance(waiting, asyncio.Future)
                self.futures.append(waiting)
            return
        number = len(self.waiting)
        self.waiting.append(end)

        def tell(error: Exception | None) -> None:
            assert number not in self.told
            self.told.append(number)
            if error is None:
                assert end <= self.log.high_watermark
                self.check()
            if self.rng.random() < 0.1:
                self.append()  # as coordinators do
            if self.rng.random() < 0.05:
                raise RuntimeError("whoever waited has a bug")

        try:
            self.partition.when_committed(end, tell)
        except RuntimeError:
            pass  # it was told at once

    def look(self) -> None:
        """An answer that stands on all that is there; and a fetch that begins to wait."""
        self.wait_for(self.log.log_end_offset)
        self.heard_bytes, self.heard_from = 0, self.log.high_watermark

    def give_up(self) -> None:
        if self.futures:
            self.rng.choice(self.futures).cancel()

    def end_flush(self) -> None:
        if self.flushes.under_way:
            self.flushes.under_way.pop(0)(None)

    def fill_disk(self) -> None:
        """A flush that has something to write beside the log is refused, until there is room."""
        self.disk.full = not self.disk.full
        self.partition.leader_epoch += 1
        self.log.leader_epochs.assign(self.partition.leader_epoch, self.log.log_end_offset)

    def change_settings(self) -> None:
        if not self.is_steady:
            self.partition.set_config(LogConfig(flush_messages=self.rng.choice((EACH_ONE, 4, LONG_MAX))))

    def break_disk(self) -> None:
        if self.flushes.under_way and self.rng.random() < 0.02:
            self.flushes.under_way.pop(0)(OSError(errno.EIO, os.strerror(errno.EIO)))

    # --- what holds

    def check(self) -> None:
        log = self.log
        assert self.high_watermark <= log.high_watermark <= log.log_end_offset
        self.high_watermark = log.high_watermark
        if self.is_steady:
            assert log.high_watermark <= log.recovery_point
        assert self.told == sorted(self.told)
        readable = sum(size for end, size in self.batches if self.heard_from < end <= log.high_watermark)
        assert self.heard_bytes >= readable

    async def turns(self, count: int) -> None:
        for _ in range(count):
            await asyncio.sleep(0)
            self.check()


@pytest.mark.parametrize("flush_messages", [EACH_ONE, None], ids=["each one is flushed", "settings change"])
@pytest.mark.parametrize("seed", range(20))
async def test_random_histories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, flush_messages: int | None
) -> None:
    monkeypatch.setattr("ottla.broker.partitions.partition._FLUSH_AGAIN_S", 0)  # the next turn will do
    rng = random.Random(seed)
    world = World(tmp_path / "topic-0", rng, flush_messages)
    acts = [world.append] * 6 + [world.end_flush] * 4 + [world.look] * 2
    acts += [world.give_up, world.fill_disk, world.change_settings, world.break_disk]
    for _ in range(STEPS):
        rng.choice(acts)()
        world.check()
        await world.turns(rng.choice((0, 0, 1, 3)))
    world.disk.full = False
    await world.turns(10)
    while world.flushes.under_way:
        world.end_flush()
        await world.turns(10)
    assert world.told == list(range(len(world.waiting)))
    assert all(one.done() for one in world.futures)
    for one in world.futures:
        if not one.cancelled():
            one.exception()
