"""One log directory: its lock, its identity, its checkpoints, and whether it still works."""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Collection, Mapping
from pathlib import Path

from ottla.common.errors import OttlaError
from ottla.common.ids import TopicId, TopicPartition
from ottla.common.random_ids import random_topic_id
from ottla.storage.disk import DISK, Disk, OpenFile
from ottla.storage.log_dirs import checkpoints
from ottla.storage.log_dirs.checkpoints import MetaProperties
from ottla.storage.log_dirs.refusals import Refusals

LOCK_FILE = ".lock"
CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"


class LogDir:
    """`offline` is None while the directory works, else the reason why it was given up; there is no way back."""

    def __init__(self, path: Path, disk: Disk = DISK) -> None:
        self.path = path
        self.disk = disk
        self.directory_id = TopicId(bytes(16))
        self.offline: str | None = None
        # What recovery-point-offset-checkpoint says; None if it cannot be read.
        self.recovery_points: Mapping[TopicPartition, int] | None = None
        # What cleaner-offset-checkpoint says, or will say in a moment.
        self.cleaned: dict[TopicPartition, int] = {}
        # What __ottla_made_anew said when the directory was loaded.
        self.made_anew: Collection[TopicPartition] = ()
        # Works on, but lacks room or file descriptors.
        self.refusals = Refusals(path)
        self._lock: OpenFile | None = None

    def lock(self) -> None:
        """Make the directory ours. Raises OttlaError when another broker has it, OSError when it cannot be used."""
        self.path.mkdir(parents=True, exist_ok=True)
        file = OpenFile(os.open(self.path / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o644))
        try:
            # flock keeps out a second broker of ours, also in the same process; the POSIX lock is the one Kafka takes.
            fcntl.flock(file.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(file.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise OttlaError(
                f"{self.path} is in use by another broker; stop that one or choose another data directory."
            ) from None
        self._lock = file

    def unlock(self) -> None:
        self._lock = None

    def identify(self, node_id: int, cluster_id: str) -> None:
        """Check meta.properties, or write it into a new directory."""
        try:
            meta = checkpoints.read_meta_properties(self.path)
        except ValueError as error:
            raise OttlaError(f"{error}; this is not a data directory that this broker can use.") from None
        if meta is None:
            # From now on its absence is damage.
            self.write_offsets(checkpoints.RECOVERY_POINTS, {})
            meta = MetaProperties(node_id, cluster_id, random_topic_id())
            checkpoints.write_meta_properties(self.path, meta, self.disk)
        if meta.cluster_id != cluster_id:
            raise OttlaError(
                f"{self.path} belongs to cluster {meta.cluster_id}, but this broker is of cluster {cluster_id}."
            )
        if meta.node_id != node_id:
            raise OttlaError(f"{self.path} belongs to node.id {meta.node_id}, but this broker has node.id {node_id}.")
        self.directory_id = meta.directory_id

    def take_clean_mark(self) -> bool:
        """Whether the last stop was clean; the mark is gone afterwards, so that a crash from now on is seen."""
        path = self.path / CLEAN_SHUTDOWN_FILE
        if not path.exists():
            return False
        self.disk.unlink(path)
        return True

    def write_clean_mark(self, broker_epoch: int = -1) -> None:
        text = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
        self.disk.replace_file(self.path / CLEAN_SHUTDOWN_FILE, text.encode(), sync=True)

    def read_offsets(self, name: str) -> dict[TopicPartition, int]:
        return checkpoints.read_offsets(self.path / name) or {}

    def read_recovery_points(self) -> Mapping[TopicPartition, int] | None:
        self.recovery_points = checkpoints.read_offsets(self.path / checkpoints.RECOVERY_POINTS)
        return self.recovery_points

    def write_offsets(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        checkpoints.write_offsets(self.path / name, offsets, self.disk)
        if name == checkpoints.RECOVERY_POINTS:
            self.recovery_points = offsets

    def write_recovery_point(self, topic_partition: TopicPartition, offset: int) -> None:
        """Of one partition; of the others the file goes on saying what it says. Raises OSError, also when it says
        nothing: then all are to be written first."""
        if self.recovery_points is None:
            raise FileNotFoundError(errno.ENOENT, f"{checkpoints.RECOVERY_POINTS} is missing")
        self.write_offsets(checkpoints.RECOVERY_POINTS, {**self.recovery_points, topic_partition: offset})
