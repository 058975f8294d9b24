"""Topics to files of a folder, exactly once: `PATH/TOPIC/partition=N/TOPIC+N+FIRST+LAST.parquet`.

A file holds the records of one partition from one offset to another, and its name says which. It is written under
another name first and then renamed, so it is there as a whole or not at all; where to go on is read from the names.

When a worker is replaced, a task of the old one may still be about to rename its file. So whoever renames looks first
whether these records are there already, and on file systems of this machine nobody else can come between (a lock).

Where somebody sets offsets back, files from there on get hidden names (`.replaced+...`), and their records are written
again. A mark tells tasks that have begun before that to begin anew.
"""

from __future__ import annotations

import fcntl
import os
import posixpath
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple
from urllib.parse import quote

from ottla.common.ids import TopicPartition
from ottla.connect.api import (
    BadRecords,
    Batching,
    ConfigDef,
    ConfigKey,
    ConfigType,
    ConnectorFailure,
    Importance,
    Outage,
    Records,
    Sink,
    SinkWriter,
)
from ottla.connect.connectors.files.places import Place
from ottla.connect.connectors.files.source import FORMATS
from ottla.connect.connectors.files.writing import EXTENSIONS, write_file
from ottla.connect.definitions import at_least, one_of

_MOVED = re.compile(r"\.moved\+(\d+)")
_BACK = re.compile(r"\.moved-back\+[0-9a-f]{32}")
_TEMPORARY = re.compile(r"\..+\+\d+\+\d+\.[a-z]+\.[0-9a-f]{32}")
# What a task that was killed has left behind; no task writes one file for so long.
_LEFTOVER_S = 24 * 3600.0
_NAME = re.compile(r"(.+)\+(\d+)\+(\d+)\+(\d+)\.[a-z.]+")


class FilesSink(Sink):
    is_exactly_once: ClassVar[bool] = True
    config_def: ClassVar[ConfigDef] = ConfigDef(
        (
            ConfigKey(
                "path",
                ConfigType.STRING,
                "The folder: a path that Spark's tasks see, or the URI of a store, such as s3://bucket/out.",
                importance=Importance.HIGH,
            ),
            ConfigKey(
                "format",
                ConfigType.STRING,
                f"Of the files: {', '.join(FORMATS)}.",
                importance=Importance.HIGH,
                check=one_of(*FORMATS),
                recommended=FORMATS,
            ),
            ConfigKey(
                "rotate.records", ConfigType.INT, "Records of a file; 0: any number.", default=0, check=at_least(0)
            ),
            ConfigKey(
                "rotate.bytes",
                ConfigType.LONG,
                "About so many bytes of the topic in a file; at most 256 MB.",
                default=64 * 1024 * 1024,
                check=at_least(0),
            ),
            ConfigKey(
                "rotate.interval.ms",
                ConfigType.LONG,
                "A record waits at most so long, by the wall clock, until it is in a file.",
                default=60_000,
                check=at_least(1),
            ),
            ConfigKey(
                "include.metadata",
                ConfigType.BOOLEAN,
                "Whether rows have the columns _topic, _partition, _offset and _timestamp too.",
                default=False,
            ),
        )
    )

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self._place = Place(self.settings["path"])

    def batching(self) -> Batching:
        settings = self.settings
        return Batching(settings["rotate.bytes"], settings["rotate.records"], settings["rotate.interval.ms"])

    def begin(self, topics: Sequence[str]) -> None:
        try:
            self._place.system.create_dir(self._place.path, recursive=True)
        except OSError as error:
            raise ConnectorFailure(f"{self._place.path} cannot be written to: {error}.") from None
        self._place.remove_old(_TEMPORARY, _LEFTOVER_S)

    def positions(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        found = {partition: _look(self._place, partition).position for partition in partitions}
        return {partition: next_ for partition, next_ in found.items() if next_ is not None}

    def open(self, partition: TopicPartition, position: int) -> SinkWriter:
        settings = self.settings
        return _Writer(self._place, partition, settings["format"], settings["include.metadata"])

    def moved(self, offsets: Mapping[TopicPartition, int | None]) -> None:
        moves = [_Move(self._place, partition, offset or 0) for partition, offset in offsets.items()]
        # All of them or none: who is refused must not find some of them moved.
        for move in moves:
            move.check()
        for move in moves:
            try:
                move.make()
            except OSError as error:
                raise ConnectorFailure(f"{move.folder} cannot be changed: {error}.") from None


def _folder(place: Place, partition: TopicPartition) -> str:
    return posixpath.join(place.path, quote(partition.topic, safe=""), f"partition={partition.partition}")


class _Folder(NamedTuple):
    """What the names in the folder of a partition say."""

    # First and last offset of each file, and its path.
    files: list[tuple[int, int, str]]
    # Offsets that were passed over, and their marks.
    passed: list[tuple[int, str]]
    # Marks of having been moved at all.
    marks: frozenset[str]

    @property
    def position(self) -> int | None:
        """The offset after the last that is in a file, or was passed over."""
        ends = [last + 1 for _, last, _ in self.files] + [offset for offset, _ in self.passed]
        return max(ends, default=None)


def _look(place: Place, partition: TopicPartition) -> _Folder:
    below = _folder(place, partition)[len(place.path) :].lstrip("/")
    named = [(posixpath.basename(found.path), found.path) for found in place.listed(below, hidden=True)]
    files = [
        (int(match[3]), int(match[4]), path)
        for name, path in named
        if not name.startswith(".") and (match := _NAME.fullmatch(name))
    ]
    passed = [(int(match[1]), path) for name, path in named if (match := _MOVED.fullmatch(name))]
    marks = frozenset(name for name, _ in named if _BACK.fullmatch(name))
    return _Folder(sorted(files), passed, marks)


class _Move:
    """Of one partition to an offset."""

    def __init__(self, place: Place, partition: TopicPartition, offset: int) -> None:
        self._place = place
        self._offset = offset
        self.folder = _folder(place, partition)
        self._known = _look(place, partition)

    def check(self) -> None:
        """Raises ConnectorFailure where it would have to cut a file."""
        for first, last, path in self._known.files:
            if first < self._offset <= last:
                raise ConnectorFailure(
                    f"{path} holds offsets {first} to {last}, and cannot be cut at {self._offset}: set the offset to "
                    f"{first}, or to {last + 1}."
                )

    def make(self) -> None:
        if self._known.position is None or self._known.position == self._offset:
            return
        system = self._place.system
        with _alone(self._place, self.folder):
            self._mark(f".moved-back+{uuid.uuid4().hex}")
            # From the last one on: if this ends in the middle, what is left is whole up to some offset.
            for _, path in self._known.passed:
                system.delete_file(path)
            for first, _, path in reversed(self._known.files):
                if first >= self._offset:
                    name = posixpath.basename(path)
                    system.move(path, posixpath.join(self.folder, f".replaced+{uuid.uuid4().hex}+{name}"))
            if self._offset:
                self._mark(f".moved+{self._offset:020}")

    def _mark(self, name: str) -> None:
        with self._place.system.open_output_stream(posixpath.join(self.folder, name)):
            pass


@contextmanager
def _alone(place: Place, folder: str) -> Iterator[None]:
    if not place.is_local:
        yield
        return
    with open(posixpath.join(folder, ".lock"), "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class _Writer(SinkWriter):
    def __init__(self, place: Place, partition: TopicPartition, kind: str, has_metadata: bool) -> None:
        self._place = place
        self._partition = partition
        self._kind = kind
        self._has_metadata = has_metadata
        # What holds when this task begins.
        self._marks = _look(place, partition).marks

    def write(self, records: Records) -> None:
        assert records.offsets is not None
        first, last = records.offsets[0].as_py(), records.offsets[len(records) - 1].as_py()
        folder, (topic, number) = _folder(self._place, self._partition), self._partition
        name = f"{quote(topic, safe='')}+{number}+{first:020}+{last:020}.{EXTENSIONS[self._kind]}"
        temporary = posixpath.join(folder, f".{name}.{uuid.uuid4().hex}")
        system = self._place.system
        try:
            system.create_dir(folder, recursive=True)
            try:
                with system.open_output_stream(temporary) as file:
                    write_file(file, self._kind, records, has_metadata=self._has_metadata)
                self._sync(temporary)
                with _alone(self._place, folder):
                    self._check(first)
                    system.move(temporary, posixpath.join(folder, name))
            except BaseException:
                self._remove(temporary)
                raise
        except BadRecords:
            raise
        except OSError as error:
            raise Outage(f"{folder} cannot be written: {error}.") from None

    def _check(self, first: int) -> None:
        known = _look(self._place, self._partition)
        if known.marks != self._marks:
            raise Outage(f"{_folder(self._place, self._partition)} was moved to another offset: this task begins anew.")
        if known.position is not None and known.position > first:
            raise Outage(
                f"{_folder(self._place, self._partition)} has offset {first} already: another task has written it, and "
                "this one begins anew behind it."
            )

    def _sync(self, path: str) -> None:
        """What a rename makes known has to be on the disk."""
        if self._place.is_local:
            with open(path, "rb") as file:
                os.fsync(file.fileno())

    def _remove(self, path: str) -> None:
        try:
            self._place.system.delete_file(path)
        except OSError:
            pass  # it was renamed, or never there

    def close(self) -> None:
        return
