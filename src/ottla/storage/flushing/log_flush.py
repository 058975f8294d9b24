"""Making one log durable: which files to sync, who waits for it, and how far the recovery point may move."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ottla.common.errors import ApiError, ErrorCode
from ottla.storage.flushing.flusher import FlushJob, NotOpened
from ottla.storage.log_dirs.checkpoints import PARTITION_METADATA
from ottla.storage.segments.indexes import OffsetIndex, TimeIndex
from ottla.storage.segments.txn_index import TxnIndex

if TYPE_CHECKING:
    from ottla.storage.log_writer import LogWriter


class FlushFuture(Future[None]):
    """Can be awaited in an event loop, or waited for in a thread that is not the log's."""

    def __await__(self) -> Generator[Any, None, None]:
        return asyncio.wrap_future(self).__await__()

    def cancel(self) -> bool:
        """Who awaits it may be given up; the sync goes on, and tells its outcome to everybody."""
        return False


class LogFlush:
    """Sealed segments are synced with their indexes. Of the active segment only the log and the aborted transactions
    are: recovery reads it again from the recovery point on, and makes the other indexes with it. A start after a clean
    stop looks at nothing, so before one everything is synced that was written."""

    __slots__ = ("_job", "_log", "_new_folder", "_waiters", "closing", "folder_changed")

    def __init__(self, log: LogWriter, *, new_folder: bool) -> None:
        self._log = log
        self._job: FlushJob | None = None
        self._waiters: list[tuple[int, FlushFuture]] = []
        # Files came or went since the folder was last synced.
        self.folder_changed = new_folder
        self._new_folder = new_folder
        self.closing = False

    def now(self, up_to: int) -> None:
        """In this thread. Raises ApiError when the disk fails."""
        log = self._log
        if up_to <= log.recovery_point and not self._has_other_changes():
            return
        try:
            job = self._make_job(up_to)
        except OSError as error:
            raise self._refused(error) from error
        try:
            job.run(log.disk)
        except NotOpened as error:
            job.give_back()
            raise self._refused(error) from error
        except OSError as error:
            log.owner.disk_failed(log, error)
            raise self._failure() from error
        self._reached(job.end_offset)

    def _has_other_changes(self) -> bool:
        # The folder of an empty log may be lost: it is made again.
        log = self._log
        if self.closing and (
            log.snapshots.unsynced or any(index.unsynced for segment in log.segments for index in segment.indexes)
        ):
            return True
        return log.log_end_offset > 0 and (self.folder_changed or log.leader_epochs.unsynced)

    def later(self, up_to: int) -> FlushFuture:
        """In a flush thread; the future is done in the log's own thread once `up_to` is on disk."""
        log = self._log
        waiter = FlushFuture()
        flusher = log.owner.flusher
        if up_to <= log.recovery_point and not (self.closing and self._has_other_changes()):
            waiter.set_result(None)
        elif flusher is None:
            self.now(up_to)
            waiter.set_result(None)
        else:
            self._waiters.append((up_to, waiter))
            if self._job is None:
                self._start()
        return waiter

    def _start(self) -> None:
        flusher = self._log.owner.flusher
        assert flusher is not None
        try:
            self._job = self._make_job(max(up_to for up_to, _ in self._waiters))
        except OSError as error:
            # An index could not be written: the disk is full. Whoever waits is told; a later flush tries again.
            self._fail_waiters(self._refused(error))
            return
        flusher.submit(self._job, self._finished)

    def _make_job(self, up_to: int) -> FlushJob:
        log = self._log
        end = min(up_to, log.log_end_offset)
        job = FlushJob(end, [], [])
        indexes: list[OffsetIndex | TimeIndex | TxnIndex] = []
        # The segment before the recovery point as well, if it ends there: a truncation may have cut it back to that.
        first = log.segment_number(max(log.recovery_point - 1, log.segments[0].base_offset))
        for segment in log.segments[first:] if end > log.recovery_point else ():
            if segment.base_offset >= end:
                break
            job.files.append(segment.file())
            indexes += [segment.txns] if segment is log.segments[-1] else segment.indexes
        for index in indexes:
            index.persist()
        if self.closing:
            # By name: thousands of logs may wait here, and none of them needs a descriptor before its turn.
            indexes = [index for segment in log.segments for index in segment.indexes]
            job.paths += [Path(index.path) for index in indexes if index.unsynced]
        else:
            job.files += [file for index in indexes for file in index.open_unsynced()]
        has_new_epochs = log.leader_epochs.unsynced
        if has_new_epochs:
            job.paths.append(log.leader_epochs.save())
        # Nothing can fail any more before the job runs: what it syncs need not be synced again.
        changed = [index for index in indexes if index.unsynced]
        for index in changed:
            index.unsynced = False
        snapshots, folders = log.snapshots.take_unsynced(), (self.folder_changed, self._new_folder)
        job.paths += snapshots
        if self.folder_changed:
            if self._new_folder and (log.dir / PARTITION_METADATA).exists():
                # Records that are synced are of a topic that is known: the next one of the name must not take them.
                job.paths.append(log.dir / PARTITION_METADATA)
            job.paths += [log.dir, log.dir.parent] if self._new_folder else [log.dir]
            self.folder_changed = self._new_folder = False

        def give_back() -> None:
            for index in changed:
                index.unsynced = True
            log.leader_epochs.unsynced = log.leader_epochs.unsynced or has_new_epochs
            log.snapshots.unsynced += snapshots
            self.folder_changed, self._new_folder = self.folder_changed or folders[0], folders[1]

        job.give_back = give_back
        return job

    def _finished(self, error: OSError | None) -> None:
        log = self._log
        job, self._job = self._job, None
        assert job is not None
        if isinstance(error, NotOpened):
            job.give_back()
            self._fail_waiters(self._refused(error))
            return
        if error is not None:
            log.owner.disk_failed(log, error)
            self._fail_waiters(self._failure())
            return
        self._reached(job.end_offset)
        if self._waiters:
            self._start()

    def _reached(self, end_offset: int) -> None:
        log = self._log
        log.recovery_point = max(log.recovery_point, min(end_offset, log.log_end_offset))
        # After a truncation somebody may wait for an offset that is no more.
        done = [waiter for waiter in self._waiters if waiter[0] <= end_offset or waiter[0] > log.log_end_offset]
        self._waiters = [waiter for waiter in self._waiters if waiter not in done]
        for _, waiter in done:
            waiter.set_result(None)

    def truncated(self, offset: int) -> None:
        """What a job under way synced above `offset` is not what will stand there."""
        if self._job is not None:
            self._job.end_offset = min(self._job.end_offset, offset)

    def _refused(self, error: OSError) -> ApiError:
        """It could not even begin; a later flush may."""
        self._log.owner.disk_refused(self._log, error)
        return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"flush of {self._log.name} failed: {error.strerror}")

    def _failure(self) -> ApiError:
        return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self._log.dir} could not be synced and is offline")

    def _fail_waiters(self, error: ApiError) -> None:
        waiters, self._waiters = self._waiters, []
        for _, waiter in waiters:
            waiter.set_exception(error)
