"""All logs of a broker, over one or several log directories."""

from __future__ import annotations

import logging
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from ottla.common.clock import Clock
from ottla.common.errors import ApiError, ErrorCode, OttlaError
from ottla.common.ids import ZERO_TOPIC_ID, TopicId, TopicPartition
from ottla.storage import checkpoints
from ottla.storage.disk import DISK, Disk
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from ottla.storage.log_dir import LogDir
from ottla.storage.log_loader import load_log
from ottla.storage.log_names import DELETE_SUFFIX, STRAY_SUFFIX, marked_folder, parse_folder

logger = logging.getLogger(__name__)

# The metadata log of a Kafka that used the folder before: not ours to touch.
KRAFT_TOPIC = "__cluster_metadata"


class LogManager:
    def __init__(
        self,
        dirs: Iterable[Path | str],
        *,
        node_id: int,
        cluster_id: str,
        clock: Clock,
        default_config: LogConfig,
        config_for: Callable[[str], LogConfig] | None = None,
        disk: Disk = DISK,
    ) -> None:
        self.dirs = [LogDir(Path(one), disk) for one in dirs]
        self.node_id = node_id
        self.cluster_id = cluster_id
        self.clock = clock
        self.disk = disk
        self.default_config = default_config
        # The settings of a topic, asked for once per log while loading.
        self.config_for = config_for or (lambda topic: self.default_config)
        self._logs: dict[TopicPartition, Log] = {}
        self.logs: Mapping[TopicPartition, Log] = MappingProxyType(self._logs)
        self._dir_of: dict[TopicPartition, LogDir] = {}
        # Folders to remove, with the monotonic time when it is due.
        self._doomed: list[tuple[int, Path]] = []

    def open(self) -> None:
        """Lock the directories and load what is in them. Raises OttlaError with a sentence for the user."""
        for log_dir in self.dirs:
            log_dir.lock()
            log_dir.identify(self.node_id, self.cluster_id)
        for log_dir in self.dirs:
            self._load_dir(log_dir)

    def _load_dir(self, log_dir: LogDir) -> None:
        log_dir.take_clean_mark()
        recovery_points = log_dir.read_offsets(checkpoints.RECOVERY_POINTS)
        starts = log_dir.read_offsets(checkpoints.LOG_STARTS)
        watermarks = log_dir.read_offsets(checkpoints.HIGH_WATERMARKS)
        for name in sorted(os.listdir(log_dir.path)):
            folder = parse_folder(name)
            if folder is None or not (log_dir.path / name).is_dir():
                continue
            topic_partition = folder.topic_partition
            if topic_partition.topic == KRAFT_TOPIC:
                continue
            if folder.mark == DELETE_SUFFIX:
                self._doomed.append((self.clock.monotonic_ms(), log_dir.path / name))
                continue
            if folder.mark:
                continue
            if topic_partition in self._logs:
                raise OttlaError(f"{topic_partition} is in two log directories; remove one of the folders.")
            log = load_log(
                log_dir.path / name,
                topic_partition,
                checkpoints.read_partition_metadata(log_dir.path / name) or ZERO_TOPIC_ID,
                self.config_for(topic_partition.topic),
                log_start_offset=starts.get(topic_partition, 0),
                recovery_point=recovery_points.get(topic_partition, 0),
                now_ms=self.clock.now_ms(),
                disk=self.disk,
            )
            log.high_watermark = max(log.log_start_offset, min(watermarks.get(topic_partition, 0), log.log_end_offset))
            self._add(log_dir, log)

    def _add(self, log_dir: LogDir, log: Log) -> None:
        self._logs[log.topic_partition] = log
        self._dir_of[log.topic_partition] = log_dir

    def get(self, topic_partition: TopicPartition) -> Log | None:
        return self._logs.get(topic_partition)

    def create(self, topic_partition: TopicPartition, topic_id: TopicId, config: LogConfig) -> Log:
        """The log of this partition: the one that is there, or a new one in the least used directory."""
        log = self._logs.get(topic_partition)
        if log is not None:
            return log
        log_dir = self._least_used_dir()
        directory = log_dir.path / str(topic_partition)
        directory.mkdir(exist_ok=True)
        checkpoints.write_partition_metadata(directory, topic_id, self.disk)
        log = load_log(directory, topic_partition, topic_id, config, now_ms=self.clock.now_ms(), disk=self.disk)
        self._add(log_dir, log)
        return log

    def _least_used_dir(self) -> LogDir:
        online = [one for one in self.dirs if one.offline is None]
        if not online:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "every log directory is offline")
        if len(online) == 1:
            return online[0]
        counts = Counter(map(id, self._dir_of.values()))
        return min(online, key=lambda one: counts[id(one)])

    def delete(self, topic_partition: TopicPartition) -> None:
        """Take the log away at once; its files go after file.delete.delay.ms."""
        log = self._logs.pop(topic_partition, None)
        if log is None:
            return
        del self._dir_of[topic_partition]
        log.close()
        doomed = log.dir.with_name(marked_folder(topic_partition, DELETE_SUFFIX))
        self.disk.rename(log.dir, doomed)
        self._doomed.append((self.clock.monotonic_ms() + log.config.file_delete_delay_ms, doomed))

    def set_aside(self, topic_partition: TopicPartition) -> None:
        """Take the log away and leave its files where a person finds them, under a name that marks a stray."""
        log = self._logs.pop(topic_partition)
        del self._dir_of[topic_partition]
        log.close()
        self.disk.rename(log.dir, log.dir.with_name(marked_folder(topic_partition, STRAY_SUFFIX)))

    def tick_deletions(self) -> None:
        """Remove the files whose delay is over."""
        now_ms = self.clock.monotonic_ms()
        due = [path for at_ms, path in self._doomed if at_ms <= now_ms]
        self._doomed = [one for one in self._doomed if one[0] > now_ms]
        for path in due:
            shutil.rmtree(path, ignore_errors=True)

    def tick_retention(self, now_ms: int) -> None:
        self.tick_deletions()

    def tick_flush(self, now_ms: int) -> None:
        """Nothing is flushed before a roll or a stop unless flush.ms says so."""

    def checkpoint(self) -> None:
        """Write the checkpoints of every directory."""
        for log_dir in self.dirs:
            logs = {tp: log for tp, log in self._logs.items() if self._dir_of[tp] is log_dir}
            log_dir.write_offsets(checkpoints.RECOVERY_POINTS, {tp: log.recovery_point for tp, log in logs.items()})
            log_dir.write_offsets(checkpoints.HIGH_WATERMARKS, {tp: log.high_watermark for tp, log in logs.items()})
            starts = {
                tp: log.log_start_offset
                for tp, log in logs.items()
                if log.log_start_offset > log.segments[0].base_offset
            }
            log_dir.write_offsets(checkpoints.LOG_STARTS, starts)

    def close(self, clean: bool = True) -> None:
        """Stop using the directories. `clean=False` leaves them as a crash would, for tests."""
        if clean:
            for log in self._logs.values():
                log.close()
                log.recovery_point = log.log_end_offset
            self.checkpoint()
            for log_dir in self.dirs:
                log_dir.write_clean_mark()
        self._logs.clear()
        self._dir_of.clear()
        for log_dir in self.dirs:
            log_dir.unlock()
