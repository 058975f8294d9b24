"""All logs of a broker, over one or several log directories.

Everything here runs in the thread that owns the logs, except what blocks: syncs go to the flusher, and writing
checkpoints, removing files and copying replicas each to a thread of its own. There may be ten thousand logs, so chores
over all of them are generators that stop every few logs.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, wait
from functools import partial
from pathlib import Path
from types import MappingProxyType

from ottla.common.clock import Clock
from ottla.common.errors import ApiError, ErrorCode, OttlaError
from ottla.common.ids import ZERO_TOPIC_ID, TopicId, TopicPartition
from ottla.common.steps import Pauses, to_the_end
from ottla.common.threads import MakeThreads, make_threads
from ottla.storage.background import CHECKPOINTS, Background
from ottla.storage.disk import DISK, Disk
from ottla.storage.flushing.flusher import Flusher
from ottla.storage.loading.log_loader import load_log
from ottla.storage.log import Log
from ottla.storage.log_config import DAY_MS, LogConfig
from ottla.storage.log_dirs import checkpoints
from ottla.storage.log_dirs.checkpointing import Checkpointing
from ottla.storage.log_dirs.doomed_files import DoomedFiles
from ottla.storage.log_dirs.future_log import FutureLog
from ottla.storage.log_dirs.log_dir import LogDir
from ottla.storage.log_dirs.log_names import DELETE_SUFFIX, FUTURE_SUFFIX, STRAY_SUFFIX, marked_folder, parse_folder
from ottla.storage.log_dirs.refusals import PASSING
from ottla.storage.log_writer import LogWriter
from ottla.storage.owner import LogOwner
from ottla.storage.steady_clock import SteadyClock

logger = logging.getLogger(__name__)

_LOGS_PER_STEP = 32

# The metadata log of a Kafka that used the folder before: not ours to touch.
KRAFT_TOPIC = "__cluster_metadata"


class LogManager(LogOwner):
    def __init__(
        self,
        dirs: Iterable[Path | str],
        *,
        node_id: int,
        cluster_id: str,
        clock: Clock,
        default_config: LogConfig,
        config_for: Callable[[str], LogConfig] | None = None,
        producer_id_expiration_ms: int = DAY_MS,
        disk: Disk = DISK,
        make_threads: MakeThreads = make_threads,
    ) -> None:
        self.dirs = [LogDir(Path(path), disk) for path in dirs]
        self.node_id = node_id
        self.cluster_id = cluster_id
        self.clock = clock
        self.disk = disk
        self.default_config = default_config
        # The settings of a topic, asked for once per log while loading.
        self.config_for = config_for or (lambda topic: self.default_config)
        self.producer_id_expiration_ms = producer_id_expiration_ms
        self.flusher: Flusher = Flusher(disk, make_threads)
        self._retention_clock = SteadyClock(clock)
        self._logs: dict[TopicPartition, Log] = {}
        self.logs: Mapping[TopicPartition, Log] = MappingProxyType(self._logs)
        self._dir_of: dict[TopicPartition, LogDir] = {}
        # Folders that should be there and are not: partition -> path. Their records were synced once.
        self.lost: dict[TopicPartition, Path] = {}
        # Logs that were made in place of ones that are gone, or lack records that were synced, and have not caught up
        # with others since. Each directory has a note of all, so that another start knows it of those that it finds
        # there.
        self.made_anew: set[TopicPartition] = set()
        # Logs that could not be made, for lack of room, of file descriptors or of a directory that works: partition ->
        # id of its topic. `create` is to be tried again.
        self.unmade: dict[TopicPartition, TopicId] = {}
        # How long each directory took at the start, and whether the stop before was clean.
        self.loaded_in_ms: dict[Path, tuple[int, bool]] = {}
        self.background = Background(make_threads)
        self.doomed = DoomedFiles(clock, self.background)
        self.checkpointing = Checkpointing(
            self.dirs, self.logs, self._dir_of, self.background, refused=self._refused, failed=self.disk_failed
        )

    # -- opening --

    def open(self) -> None:
        """Lock the directories and load what is in them. Raises OttlaError with a sentence for the user."""
        try:
            for log_dir in self.dirs:
                self._claim(log_dir)
            if all(log_dir.offline for log_dir in self.dirs):
                raise OttlaError(f"No log directory can be used: {self.dirs[0].path}: {self.dirs[0].offline}.")
            for log_dir in self.dirs:
                if log_dir.offline is None:
                    self._load_dir(log_dir)
            self.lost = {tp: path for tp, path in self.lost.items() if tp not in self._logs}
            self.made_anew = {tp for tp, log_dir in self._dir_of.items() if tp in log_dir.made_anew}
        except OttlaError:
            self.close(clean=False)
            raise

    def _claim(self, log_dir: LogDir) -> None:
        try:
            log_dir.lock()
            log_dir.identify(self.node_id, self.cluster_id)
        except OSError as error:
            self._take_offline(log_dir, str(error))

    def _load_dir(self, log_dir: LogDir) -> None:
        before, began_ms = len(self._logs), self.clock.monotonic_ms()
        try:
            clean = log_dir.take_clean_mark()
            known_points = log_dir.read_recovery_points()
            points = known_points or {}
            starts = log_dir.read_offsets(checkpoints.LOG_STARTS)
            watermarks = log_dir.read_offsets(checkpoints.HIGH_WATERMARKS)
            log_dir.cleaned = cleaned = log_dir.read_offsets(checkpoints.CLEANER_OFFSETS)
            self.checkpointing.loaded(points.keys() | starts.keys() | watermarks.keys() | cleaned.keys())
            log_dir.made_anew = log_dir.read_offsets(checkpoints.MADE_ANEW).keys()
            deleted: set[str] = set()
            for name in sorted(os.listdir(log_dir.path)):
                folder = parse_folder(name)
                if folder is None or not (log_dir.path / name).is_dir():
                    continue
                if folder.topic_partition.topic == KRAFT_TOPIC:
                    continue
                if folder.mark in (DELETE_SUFFIX, FUTURE_SUFFIX):  # of no use any more, or a copy that was cut short
                    self.doomed.add([log_dir.path / name], delay_ms=0)
                    deleted.add(name.rpartition(".")[0])
                elif not folder.mark:
                    tp = folder.topic_partition
                    point = None if known_points is None else points.get(tp, 0)
                    # Where records are missing is found by reading; others have not given them to us yet.
                    trusts_all = clean and tp not in log_dir.made_anew
                    log = self._load(log_dir, tp, trusts_all, starts.get(tp, 0), point, cleaned.get(tp, 0))
                    log.high_watermark = min(max(watermarks.get(tp, 0), log.log_start_offset), log.log_end_offset)
            for tp in (tp for tp, point in points.items() if point > 0 and tp not in self._logs):
                # Above 0 the folder itself was synced, but a checkpoint may still name what was deleted since.
                if marked_folder(tp, DELETE_SUFFIX).rpartition(".")[0] not in deleted:
                    self.lost[tp] = log_dir.path / str(tp)
        except OSError as error:
            self._take_offline(log_dir, str(error))
        else:
            stop = "a clean stop" if clean else "a crash: what was not on disk for sure was checked"
            count, took_ms = len(self._logs) - before, self.clock.monotonic_ms() - began_ms
            self.loaded_in_ms[log_dir.path] = (took_ms, clean)
            if count:
                logger.info("%s: loaded in %d ms after %s; partitions: %d", log_dir.path, took_ms, stop, count)

    def _load(
        self,
        log_dir: LogDir,
        topic_partition: TopicPartition,
        clean: bool,
        start: int,
        recovery_point: int | None,
        cleaned: int,
    ) -> Log:
        directory = log_dir.path / str(topic_partition)
        log = load_log(
            directory,
            topic_partition,
            checkpoints.read_partition_metadata(directory) or ZERO_TOPIC_ID,
            self.config_for(topic_partition.topic),
            clean=clean,
            log_start_offset=start,
            recovery_point=recovery_point,
            cleaned_offset=cleaned,
            now_ms=self.clock.now_ms(),
            owner=self,
            disk=self.disk,
        )
        other = self._logs.get(topic_partition)
        if other is None or self._put_twin_aside(log, other) is other:
            self._add(log_dir, log)
        return log

    def _put_twin_aside(self, log: Log, other: Log) -> Log:
        """A crash at the end of a move leaves the partition in two directories, and so does a directory that comes back
        when its replicas have been made anew elsewhere. Keep the one that heard of the later leader, else the one that
        goes further, else the one that was there first; nothing is deleted."""
        if log.topic_id != other.topic_id:
            raise OttlaError(f"{log.name} is both in {other.dir} and in {log.dir}; remove one of them.")
        loser = other if _progress(log) > _progress(other) else log
        aside = loser.dir.with_name(marked_folder(loser.topic_partition, STRAY_SUFFIX))
        logger.warning("%s is in two log directories; %s is set aside as %s", log.name, loser.dir, aside.name)
        loser.close(keep_files=False)
        self.disk.rename(loser.dir, aside)
        return loser

    def _add(self, log_dir: LogDir, log: Log) -> None:
        log.last_flush_ms = self.clock.monotonic_ms()
        self._logs[log.topic_partition] = log
        self._dir_of[log.topic_partition] = log_dir

    # -- logs --

    def note_made_anew(self, partitions: Iterable[TopicPartition]) -> None:
        """These begin from nothing, or from a hole: call it before they are created. Raises OSError."""
        self.made_anew.update(partitions)
        for log_dir in self.dirs:
            if log_dir.offline is None:
                log_dir.write_offsets(checkpoints.MADE_ANEW, dict.fromkeys(sorted(self.made_anew), 0))

    def forget_made_anew(self, partitions: Iterable[TopicPartition]) -> None:
        """They have caught up."""
        self.made_anew.difference_update(partitions)
        content = {checkpoints.MADE_ANEW: dict.fromkeys(sorted(self.made_anew), 0)}
        for log_dir in self.dirs:
            if log_dir.offline is None:
                self.checkpointing.write(log_dir, content)

    def get(self, topic_partition: TopicPartition) -> Log | None:
        return self._logs.get(topic_partition)

    def dir_of(self, topic_partition: TopicPartition) -> LogDir:
        return self._dir_of[topic_partition]

    def create(self, topic_partition: TopicPartition, topic_id: TopicId, config: LogConfig) -> Log:
        """The log of this partition: the one that is there, or a new one in the least used directory. Raises ApiError
        with KAFKA_STORAGE_ERROR, and notes it in `unmade`."""
        log = self._logs.get(topic_partition)
        if log is not None and log.topic_id in (topic_id, ZERO_TOPIC_ID):
            return log
        self.delete(topic_partition)  # what another topic of the name has left
        log_dir = self._least_used_dir()
        if log_dir is None:
            self.unmade[topic_partition] = topic_id
            raise ApiError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"{topic_partition} could not be made: every log directory is offline"
            )
        directory = log_dir.path / str(topic_partition)
        try:
            if self.checkpointing.names_any_deleted([topic_partition]):
                wait(self.checkpoint())
            self._make_folder(directory, topic_partition, topic_id)
            log = load_log(
                directory,
                topic_partition,
                topic_id,
                config,
                now_ms=self.clock.now_ms(),
                owner=self,
                disk=self.disk,
            )
        except OSError as error:
            self._refused(log_dir, error)
            self.unmade[topic_partition] = topic_id
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{directory} could not be made: {error.strerror}") from error
        self.unmade.pop(topic_partition, None)
        self._add(log_dir, log)
        return log

    def _make_folder(self, directory: Path, topic_partition: TopicPartition, topic_id: TopicId) -> None:
        try:
            directory.mkdir()
        except FileExistsError:
            # Of a topic that could not be removed: its records are not this one's.
            if checkpoints.read_partition_metadata(directory) not in (None, topic_id):
                self.disk.rename(directory, directory.with_name(marked_folder(topic_partition, STRAY_SUFFIX)))
                directory.mkdir()
        checkpoints.write_partition_metadata(directory, topic_id, self.disk)

    def name_topic(self, log: Log, topic_id: TopicId) -> None:
        """Give a log the id that its folder lacks: partition.metadata is synced with the first records only, and an
        older Kafka had none."""
        log.topic_id = topic_id
        checkpoints.write_partition_metadata(log.dir, topic_id, self.disk)
        self.disk.fsync_path(log.dir / checkpoints.PARTITION_METADATA)

    def _least_used_dir(self) -> LogDir | None:
        online = [log_dir for log_dir in self.dirs if log_dir.offline is None]
        if len(online) < 2:
            return online[0] if online else None
        counts = Counter(map(id, self._dir_of.values()))
        return min(online, key=lambda log_dir: counts[id(log_dir)])

    def delete(self, topic_partition: TopicPartition) -> None:
        """Take the log away at once; its files go after file.delete.delay.ms, in a full directory without delay."""
        self.unmade.pop(topic_partition, None)
        log = self._logs.pop(topic_partition, None)
        if log is None:
            return
        log_dir = self._dir_of.pop(topic_partition)
        log.close(keep_files=False)
        if log_dir.offline is not None:
            return
        doomed = log.dir.with_name(marked_folder(topic_partition, DELETE_SUFFIX))
        self.disk.rename(log.dir, doomed)
        delay_ms = 0 if log_dir.refusals.is_full else log.config.file_delete_delay_ms
        self.doomed.add([doomed], delay_ms)

    def set_aside(self, topic_partition: TopicPartition) -> None:
        """Take the log away and leave its files where a person finds them, under a name that marks a stray."""
        log = self._logs.pop(topic_partition)
        del self._dir_of[topic_partition]
        log.close()
        self.disk.rename(log.dir, log.dir.with_name(marked_folder(topic_partition, STRAY_SUFFIX)))

    # -- moving --

    def begin_move(self, log: Log, target: LogDir, rate: Callable[[], float] = lambda: math.inf) -> FutureLog:
        """Start a copy of the log in another directory, of so many bytes per second; `switch` ends it."""
        return FutureLog(log, target.path / marked_folder(log.topic_partition, FUTURE_SUFFIX), rate)

    def switch(self, future: FutureLog, target: LogDir) -> Log:
        """Complete the copy and go on with it: gives the log that takes the old one's place. Raises OSError or
        ApiError; then the old one goes on as if nothing had been."""
        old = future.log
        old.bring_to_disk()
        future.finish()
        directory = target.path / old.name
        # The copy has the gaps of a compacted log: a start that finds it must not take them for holes.
        self.background.submit(
            partial(target.write_recovery_point, old.topic_partition, old.log_end_offset), CHECKPOINTS
        ).result()
        self.disk.rename(future.folder, directory)
        try:
            self.disk.fsync_path(target.path)
            new = load_log(
                directory,
                old.topic_partition,
                old.topic_id,
                old.config,
                clean=True,
                log_start_offset=old.log_start_offset,
                recovery_point=old.log_end_offset,
                cleaned_offset=old.cleaned_offset,
                now_ms=self.clock.now_ms(),
                owner=self,
                disk=self.disk,
            )
        except OSError:
            with contextlib.suppress(OSError):
                self.disk.rename(directory, future.folder)
            raise
        new.high_watermark = old.high_watermark
        # What was taken for clean to begin quickly has the holes that it had.
        new.hole, new.damage = old.hole, old.damage
        self._add(target, new)
        old.close(keep_files=False)
        self._remove_moved(old)
        self.checkpoint()
        return new

    def _remove_moved(self, old: Log) -> None:
        doomed = old.dir.with_name(marked_folder(old.topic_partition, DELETE_SUFFIX))
        try:
            self.disk.rename(old.dir, doomed)
        except OSError as error:
            logger.warning("%s was moved, but its folder %s stays: %s", old.name, old.dir, error)
        else:
            self.doomed.add([doomed], old.config.file_delete_delay_ms)

    # -- chores --

    def retain_in_steps(self, now_ms: int) -> Pauses[None]:
        """Delete what may go, forget silent producers, give back idle files. `now_ms` is not trusted blindly: a clock
        that jumps must not delete anything early."""
        steady_ms = min(now_ms, self._retention_clock.now_ms())
        for log in list(self._logs.values()):
            yield
            if log.failed is not None:
                continue
            try:
                log.delete_old_segments(steady_ms)
                log.release_idle()
            except (ApiError, OSError) as error:
                if not self._refused(self._dir_of[log.topic_partition], error):
                    logger.warning("%s: retention did not finish: %s", log.name, error)
            log.producers.expire(steady_ms, self.producer_id_expiration_ms)
        self.doomed.tick()

    def flush_in_steps(self) -> Pauses[None]:
        """flush.ms: sync logs whose oldest unsynced record has waited that long."""
        self.flusher.drain()
        monotonic_ms = self.clock.monotonic_ms()
        for log_dir in self.dirs:
            log_dir.refusals.tick(monotonic_ms)
        for number, log in enumerate(list(self._logs.values())):
            if number % _LOGS_PER_STEP == 0:
                yield
            if log.recovery_point >= log.log_end_offset or log.failed is not None:
                log.last_flush_ms = monotonic_ms
            elif monotonic_ms - log.last_flush_ms >= log.config.flush_ms:
                log.last_flush_ms = monotonic_ms
                log.flush_async()

    def checkpoint(self) -> list[Future[None]]:
        return to_the_end(self.checkpointing.in_steps())

    # -- what a log asks of its owner --

    def delete_later(self, paths: Iterable[Path], delay_ms: int) -> None:
        self.doomed.add(paths, delay_ms)

    def checkpoint_cleaned(self, log: LogWriter) -> None:
        self.checkpointing.cleaned(log)

    def disk_failed(self, log: LogWriter, error: OSError) -> None:
        log_dir = self._dir_of.get(log.topic_partition)
        if log_dir is None:  # deleted meanwhile
            log.fail(f"{log.dir} failed: {error.strerror}")
        elif log_dir.offline is None:
            logger.error(
                "log directory %s is offline: %s; its partitions are refused until a restart: look at the disk first",
                log_dir.path,
                error.strerror,
            )
            self._take_offline(log_dir, str(error.strerror))

    def disk_refused(self, log: LogWriter, error: OSError) -> None:
        log_dir = self._dir_of.get(log.topic_partition)
        if log_dir is not None:  # else deleted meanwhile
            self._refused(log_dir, error)

    def store_failed(self, error: Exception, *, is_full: bool) -> None:
        """A change could not be written to the metadata store, which is in the first directory."""
        if is_full:
            self._refused(self.dirs[0], OSError(errno.ENOSPC, str(error)))
        else:
            logger.error("%s", error)

    def _refused(self, log_dir: LogDir, error: Exception) -> bool:
        """Whether this passes, and is told by the directory once for all that it refuses."""
        cause = error.__cause__ if isinstance(error, ApiError) else error
        if not isinstance(cause, OSError) or cause.errno not in PASSING:
            return False
        log_dir.refusals.note(cause, self.clock.monotonic_ms())
        return True

    def _take_offline(self, log_dir: LogDir, reason: str) -> None:
        if log_dir.offline is not None:
            return
        log_dir.offline = reason
        for topic_partition, log in self._logs.items():
            if self._dir_of[topic_partition] is log_dir:
                log.fail(f"log directory {log_dir.path} is offline: {reason}")

    # -- closing --

    def close(self, clean: bool = True) -> None:
        """Stop using the directories. `clean=False` leaves them as a crash would."""
        self.flusher.take_over()
        if clean:
            for log in self._logs.values():
                if log.failed is None:
                    # What goes wrong here goes wrong again when it is closed.
                    with contextlib.suppress(ApiError, OSError):
                        log.prepare_close()
        self.flusher.close()
        unclean = {log.dir.parent for log in self._logs.values() if not (clean and self._close_log(log))}
        if clean:
            self.checkpoint()
        self.doomed.close()
        self.background.close()
        for log_dir in self.dirs:
            if clean and log_dir.offline is None and log_dir.path not in unclean:
                try:
                    log_dir.write_clean_mark()
                except OSError as error:
                    logger.warning("%s gets no mark of a clean stop: %s", log_dir.path, error)
            elif clean and log_dir.path in unclean:
                logger.warning("%s was not closed cleanly: the next start checks what was not written", log_dir.path)
            log_dir.unlock()
        self._logs.clear()
        self._dir_of.clear()

    def _close_log(self, log: Log) -> bool:
        """Whether all of it is on disk."""
        if log.failed is not None:
            return False
        try:
            log.close()
        except OSError as error:
            self.disk_failed(log, error)
        except ApiError as error:
            if not self._refused(self._dir_of[log.topic_partition], error):
                logger.warning("%s was not closed cleanly: %s", log.name, error)
        else:
            return True
        return False


def _progress(log: Log) -> tuple[int, int]:
    """Of two replicas the one with the later leader epoch has what is committed; its end may be lower all the same."""
    return log.leader_epochs.latest, log.log_end_offset
