"""Writes the checkpoints of all log directories: what they say is gathered in the thread that owns the logs, a few of
them at a time, and written and synced in another one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial

from ottla.common.ids import TopicPartition
from ottla.common.steps import Pauses
from ottla.storage.background import CHECKPOINTS, Background
from ottla.storage.log import Log
from ottla.storage.log_dirs import checkpoints
from ottla.storage.log_dirs.log_dir import LogDir
from ottla.storage.log_writer import LogWriter

logger = logging.getLogger(__name__)

_LOGS_PER_STEP = 32


class Checkpointing:
    def __init__(
        self,
        dirs: Sequence[LogDir],
        logs: Mapping[TopicPartition, Log],
        dir_of: Mapping[TopicPartition, LogDir],
        background: Background,
        *,
        refused: Callable[[LogDir, Exception], bool],
        failed: Callable[[LogWriter, OSError], None],
    ) -> None:
        self._dirs = dirs
        self._logs = logs
        self._dir_of = dir_of
        self._background = background
        # Whether a failure passes; and what is to be told of one that does not.
        self._refused = refused
        self._failed = failed
        # Partitions that the files name.
        self._named: set[TopicPartition] = set()

    def loaded(self, partitions: Iterable[TopicPartition]) -> None:
        """The files that were found name these."""
        self._named.update(partitions)

    def names_any_deleted(self, partitions: Iterable[TopicPartition]) -> bool:
        """Whether the files tell offsets of deleted partitions of these names: then they are to be written before such
        a partition is made again, or it would have those offsets after a crash."""
        return any(tp in self._named and tp not in self._logs for tp in partitions)

    def in_steps(self) -> Pauses[list[Future[None]]]:
        """All of every directory. The futures are of the writing."""
        content: dict[LogDir, dict[str, dict[TopicPartition, int]]] = {
            log_dir: {checkpoints.RECOVERY_POINTS: {}, checkpoints.HIGH_WATERMARKS: {}, checkpoints.LOG_STARTS: {}}
            for log_dir in self._dirs
            if log_dir.offline is None
        }
        gathered: dict[TopicPartition, Log] = {}
        for number, (tp, log) in enumerate(list(self._logs.items())):
            if number % _LOGS_PER_STEP == 0:
                yield
            log_dir = self._dir_of.get(tp)
            if log_dir not in content or self._logs.get(tp) is not log:
                continue
            try:
                log.snapshot_producers()
            except OSError as error:  # of one log: the checkpoints of the others do not wait for it
                if not self._refused(log_dir, error):
                    self._failed(log, error)
                    continue
            gathered[tp] = log
            points, watermarks, starts = content[log_dir].values()
            points[tp] = log.recovery_point
            watermarks[tp] = log.high_watermark
            if log.log_start_offset > log.segments[0].base_offset:
                starts[tp] = log.log_start_offset
        # What went meanwhile is not written: the next partition of that name must not get its offsets.
        gone = [tp for tp, log in gathered.items() if self._logs.get(tp) is not log]
        for offsets in (offsets for files in content.values() for offsets in files.values()):
            for tp in gone:
                offsets.pop(tp, None)
        self._named = set(self._logs)
        written = []
        for log_dir, files in content.items():
            if log_dir.offline is not None:
                continue  # by now
            written.append(self.write(log_dir, files))
            self._write_cleaned(log_dir)
        return written

    def write(self, log_dir: LogDir, content: Mapping[str, Mapping[TopicPartition, int]]) -> Future[None]:
        return self._background.submit(partial(self._write, log_dir, content), CHECKPOINTS)

    def recovery_point(self, log: LogWriter, offset: int) -> Future[None] | None:
        """Before anything below `offset`, to which the log is flushed, is removed for good: let the file say so. None
        when it does. The future raises OSError."""
        tp, point = log.topic_partition, log.recovery_point
        log_dir = self._dir_of[tp]
        known = log_dir.recovery_points
        if known is not None and known.get(tp, 0) >= offset:
            return None
        # A partition of that name that is made again must not get this offset.
        self._named.add(tp)
        return self._background.submit(partial(self._write_recovery_point, log_dir, tp, point), CHECKPOINTS)

    def cleaned(self, log: LogWriter) -> None:
        """`log.cleaned_offset` changed."""
        log_dir = self._dir_of.get(log.topic_partition)
        if log_dir is not None and log_dir.offline is None:
            self._write_cleaned(log_dir)

    def _write_cleaned(self, log_dir: LogDir) -> None:
        """How far logs are compacted: what is too old costs a round, nothing else."""
        offsets = {
            tp: log.cleaned_offset
            for tp, log in self._logs.items()
            if log.cleaned_offset > 0 and self._dir_of[tp] is log_dir
        }
        if offsets != log_dir.cleaned:
            log_dir.cleaned = offsets
            self.write(log_dir, {checkpoints.CLEANER_OFFSETS: offsets})

    def _write(self, log_dir: LogDir, content: Mapping[str, Mapping[TopicPartition, int]]) -> None:
        try:
            for name, offsets in content.items():
                log_dir.write_offsets(name, offsets)
        except OSError as error:  # what an old checkpoint costs is time
            if not self._refused(log_dir, error):
                logger.warning("the checkpoints of %s could not be written: %s", log_dir.path, error)

    def _write_recovery_point(self, log_dir: LogDir, topic_partition: TopicPartition, offset: int) -> None:
        try:
            log_dir.write_recovery_point(topic_partition, offset)
        except OSError as error:
            self._refused(log_dir, error)
            raise
