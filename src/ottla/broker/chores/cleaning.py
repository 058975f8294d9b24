"""Compaction as a chore of the broker: the dirtiest log goes to the worker process, what comes back is swapped in.

The loop itself only surveys segment sizes, renames files and exchanges segments in memory. One log is cleaned at a
time. A log that turns out to be damaged is not tried again before the next start; trouble that may pass (a full disk, a
worker that died) puts it off. Compaction is never needed for a correct read, so nothing here is fatal.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ottla.common.clock import Clock
from ottla.common.config import BrokerConfig
from ottla.common.errors import ApiError
from ottla.storage.compaction.cleaned_segment import remove_cleaned
from ottla.storage.compaction.job import (
    DAMAGED,
    DISK,
    GONE,
    UNEXPECTED,
    CompactionJob,
    GroupResult,
    RoundResult,
)
from ottla.storage.compaction.plan import dirtiest, make_job, survey
from ottla.storage.compaction.swap import SegmentsChanged, is_unchanged, swap_in
from ottla.storage.log import Log
from ottla.storage.log_manager import LogManager
from ottla.storage.steady_clock import SteadyClock
from ottla.storage.worker_process import WorkerDied, WorkerProcess

log = logging.getLogger("ottla.broker.chores.cleaning")

# How long an idle worker is kept, and how long a log is left alone after trouble that may pass.
_WORKER_IDLE_MS = 30_000
_PUT_OFF_MS = 60_000
_NO_LIMIT = 1e300
# All descriptors are in use: that says nothing of the disk.
_NOT_OPENED = (errno.EMFILE, errno.ENFILE)
_SYNC_AGAIN_S = 1.0


class RoundFailed(Exception):
    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass
class CleaningTotals:
    """Since the start."""

    rounds: int = 0
    failures: int = 0
    worked_ms: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    records_removed: int = 0

    def add(self, result: RoundResult, took_ms: int) -> None:
        self.rounds += 1
        self.worked_ms += took_ms
        self.bytes_read += result.bytes_read
        self.bytes_written += result.bytes_written
        self.records_removed += result.records_removed


class Cleaning:
    def __init__(
        self,
        logs: LogManager,
        config: BrokerConfig,
        clock: Clock,
        run_in_thread: Callable[..., Awaitable[Any]],
        worker: WorkerProcess | None = None,
    ) -> None:
        self._logs = logs
        self._config = config
        self._clock = clock
        self._steady = SteadyClock(clock)
        self._run_in_thread = run_in_thread
        self._worker = worker or WorkerProcess(run_in_thread)
        self._worker_used_ms = 0
        # By the identity of the log: a topic that is created again starts afresh.
        self._uncleanable: dict[int, Log] = {}
        self._put_off: dict[int, tuple[Log, int]] = {}
        self.totals = CleaningTotals()

    @property
    def uncleanable(self) -> list[Log]:
        return list(self._uncleanable.values())

    async def tick(self) -> None:
        """Clean until no log is due. Call it again after log.cleaner.backoff.ms."""
        self._forget_deleted()
        while self._config.log_cleaner_enable and self._config.log_cleaner_threads > 0:
            due = dirtiest(self._candidates(), self._steady.now_ms(), self._failed)
            if due is None:
                break
            await self._clean(due.log)
            self._worker_used_ms = self._clock.monotonic_ms()
        if self._clock.monotonic_ms() - self._worker_used_ms >= _WORKER_IDLE_MS:
            await self._worker.kill()

    async def close(self) -> None:
        await self._worker.close()

    def _candidates(self) -> Iterable[Log]:
        now_ms = self._clock.monotonic_ms()
        self._put_off = {key: put_off for key, put_off in self._put_off.items() if put_off[1] > now_ms}
        left_alone = self._uncleanable.keys() | self._put_off.keys()
        return [log for log in self._logs.logs.values() if id(log) not in left_alone]

    def _forget_deleted(self) -> None:
        alive = {id(log) for log in self._logs.logs.values()}
        self._uncleanable = {key: log for key, log in self._uncleanable.items() if key in alive}

    # -- one round over one log --

    async def _clean(self, target: Log) -> None:
        start_ms = self._clock.monotonic_ms()
        try:
            job = self._make_job(target)
            # What goes now must not be needed after a power cut that takes what it went for.
            await target.flush_async()
            await self._checkpoint(target, job.upper_offset)
            result = await self._run(target, job)
            target.cleaned_offset = result.end_offset
            self._logs.checkpointing.cleaned(target)
        except SegmentsChanged as error:
            log.info("compaction starts over: %s", error)
            await self._abandon(target)
            return
        except (RoundFailed, WorkerDied) as error:
            self._failed(target, error)
            return
        except Exception as error:
            # Its next answers would be taken for those to the next job.
            await self._abandon(target)
            self._failed(target, error)
            return
        self.totals.add(result, self._clock.monotonic_ms() - start_ms)
        log.info(
            "compacted",
            extra={
                "partition": target.name,
                "clean_to": result.end_offset,
                "keys": result.keys,
                "records_removed": result.records_removed,
                "bytes_read": result.bytes_read,
                "bytes_written": result.bytes_written,
                "ms": self._clock.monotonic_ms() - start_ms,
            },
        )
        if result.batches_unreadable:
            log.warning("%s: %d batches hold no valid records; they stay", target.name, result.batches_unreadable)

    def _make_job(self, target: Log) -> CompactionJob:
        rate = self._config.log_cleaner_io_max_bytes_per_second
        return make_job(
            survey(target, self._steady.now_ms()),
            self._steady.now_ms(),
            self._clock.now_ms(),
            map_bytes_max=self._config.log_cleaner_dedupe_buffer_size,
            bytes_per_second=rate if rate < _NO_LIMIT else None,
        )

    async def _checkpoint(self, target: Log, upper_offset: int) -> None:
        """The gaps of a compacted log are to be below the recovery point that a start after a crash reads: what is
        missing above it is a hole, behind which nothing is kept (storage/loading/recovery.py)."""
        if self._logs.get(target.topic_partition) is not target or target.recovery_point < upper_offset:
            raise SegmentsChanged(f"{target.name} was cut back, or is gone")
        written = self._logs.checkpointing.recovery_point(target, upper_offset)
        if written is not None:
            await asyncio.wrap_future(written)

    async def _run(self, target: Log, job: CompactionJob) -> RoundResult:
        swapped = 0
        async for answer in self._worker.run({"job": "compact", **job.to_json()}):
            if "error" in answer:
                # A log that was truncated meanwhile looks damaged to the worker.
                kind = answer["error"] if is_unchanged(target, job.groups[swapped:]) else GONE
                raise RoundFailed(kind, answer["message"])
            if "done" in answer:
                return RoundResult(**answer["done"])
            if self._logs.get(target.topic_partition) is not target:
                raise SegmentsChanged(f"{target.name} is gone")
            group = GroupResult(**answer["group"])
            swap_in(target, job, group)
            swapped += 1
            if group.differs:
                await self._sync_folder(target)
        raise WorkerDied("the worker gave no result")

    async def _sync_folder(self, target: Log) -> None:
        """Before the next group is swapped in: that one may lack tombstones that this one still needed."""
        while True:
            try:
                await self._run_in_thread(target.disk.fsync_path, target.dir)
                return
            except FileNotFoundError:
                raise SegmentsChanged(f"{target.name} is gone") from None
            except OSError as error:
                if error.errno not in _NOT_OPENED:
                    target.owner.disk_failed(target, error)
                    raise
                target.owner.disk_refused(target, error)
            await asyncio.sleep(_SYNC_AGAIN_S)

    async def _abandon(self, target: Log) -> None:
        """End a job whose results nobody wants."""
        await self._worker.kill()
        if self._logs.get(target.topic_partition) is target:
            remove_cleaned(target.dir)

    def _failed(self, target: Log, error: Exception) -> None:
        if self._logs.get(target.topic_partition) is not target:
            return
        self.totals.failures += 1
        kind = UNEXPECTED
        if isinstance(error, RoundFailed):
            kind = error.kind
        elif isinstance(error, WorkerDied | OSError | ApiError):
            kind = DISK
        if kind == GONE:
            log.info("compaction of %s starts over: %s", target.name, error)
        elif kind in (DAMAGED, UNEXPECTED):
            reason = str(error) if isinstance(error, RoundFailed) else repr(error)
            log.error("%s cannot be compacted and is left as it is until the next start: %s", target.name, reason)
            self._uncleanable[id(target)] = target
            return
        else:
            log.error("compaction of %s failed and is put off: %s", target.name, error)
        self._put_off[id(target)] = (target, self._clock.monotonic_ms() + _PUT_OFF_MS)
