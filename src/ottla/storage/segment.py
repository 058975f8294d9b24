"""One segment of a log: a `.log` file of batches and its indexes, all named after the first offset.

A segment does no IO until it is used: 2,000 partitions after a start hold no file descriptors. The active segment is
written by `Log`, which owns the hot path; everything here is what a segment knows about itself.
"""

from __future__ import annotations

import os
from pathlib import Path

from ottla.records import batch as v2
from ottla.storage.batch_scan import find_batch, scan_headers
from ottla.storage.disk import DISK, Disk, OpenFile
from ottla.storage.indexes import INT32_MAX, CorruptIndex, OffsetIndex, TimeIndex

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TXN_INDEX_SUFFIX = ".txnindex"
SNAPSHOT_SUFFIX = ".snapshot"
DELETED_SUFFIX = ".deleted"
CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"
# A largest timestamp that the time index knows and nobody has asked for yet.
UNKNOWN_TIMESTAMP = -2
SEGMENT_SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)


def file_name(offset: int, suffix: str) -> str:
    """Kafka's: twenty digits, so that names sort as offsets do."""
    return f"{offset:020d}{suffix}"


class Segment:
    """`size` bytes of batches from `base_offset` on; what lies behind `size` in the file does not count."""

    __slots__ = (
        "_file",
        "base_offset",
        "bytes_since_index",
        "created_ms",
        "directory",
        "disk",
        "first_timestamp",
        "jitter_ms",
        "max_timestamp",
        "max_timestamp_offset",
        "modified_ms",
        "offsets",
        "size",
        "suffix",
        "times",
    )

    def __init__(self, directory: Path, base_offset: int, *, suffix: str = "", disk: Disk = DISK) -> None:
        self.directory = directory
        self.base_offset = base_offset
        self.suffix = suffix
        self.disk = disk
        self.size = 0
        self._file: OpenFile | None = None
        self.offsets = OffsetIndex(self.path(INDEX_SUFFIX), base_offset, disk)
        self.times = TimeIndex(self.path(TIME_INDEX_SUFFIX), base_offset, disk)
        self.bytes_since_index = 0
        self.max_timestamp = v2.NO_TIMESTAMP
        self.max_timestamp_offset = base_offset
        # The largest timestamp of the first batch: segment.ms counts from here. None until it is needed.
        self.first_timestamp: int | None = None
        self.created_ms = 0
        self.modified_ms = 0
        self.jitter_ms = 0

    def path(self, kind: str) -> Path:
        return self.directory / (file_name(self.base_offset, kind) + self.suffix)

    @property
    def max_offset(self) -> int:
        """Offsets are indexed relative to the base, in 32 bits."""
        return self.base_offset + INT32_MAX

    def create(self, now_ms: int) -> None:
        """Make the log file. Leftovers of a crash under the same name are cleared."""
        self._file = self.disk.open(self.path(LOG_SUFFIX), os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        for kind in (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX):
            self.path(kind).unlink(missing_ok=True)
        self.created_ms = self.modified_ms = now_ms

    def attach(self, size: int, modified_ms: int) -> None:
        """Take over existing files. Raises CorruptIndex when an index must be rebuilt."""
        self.size = size
        self.created_ms = self.modified_ms = modified_ms
        self.max_timestamp = UNKNOWN_TIMESTAMP if size else v2.NO_TIMESTAMP
        self.offsets.attach()
        self.times.attach()

    def file(self) -> OpenFile:
        """The log file, opened at the first use."""
        if self._file is None:
            self._file = self.disk.open(self.path(LOG_SUFFIX), os.O_RDWR)
        return self._file

    def release(self) -> None:
        """Give back descriptor and index memory; slices in flight keep theirs."""
        self._file = None
        self.offsets.release()
        self.times.release()

    # -- appending (by Log, after the bytes are in the file) --

    def note_batch(self, position: int, size: int, last_offset: int, max_timestamp: int, index_interval: int) -> None:
        """Account for one batch at `position`: Kafka's rules for index entries."""
        if max_timestamp > self.largest_timestamp():
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        if self.bytes_since_index > index_interval:
            self.offsets.append(last_offset, position)
            self.times.maybe_append(self.largest_timestamp(), self.max_timestamp_offset)
            self.bytes_since_index = 0
        self.bytes_since_index += size
        self.size = position + size

    def is_index_full(self, index_bytes: int) -> bool:
        # Kafka keeps one time entry free for the one added on roll.
        return len(self.offsets) >= index_bytes // 8 or len(self.times) >= index_bytes // 12 - 1

    def finish(self) -> list[OpenFile]:
        """Bring the indexes on disk to what a closed segment has; returns the files for fsync."""
        if self.size:
            self.times.maybe_append(self.largest_timestamp(), self.max_timestamp_offset)
        return self.persist_indexes()

    def persist_indexes(self) -> list[OpenFile]:
        return [self.offsets.persist(), self.times.persist()]

    # -- looking up --

    def largest_timestamp(self) -> int:
        if self.max_timestamp == UNKNOWN_TIMESTAMP:
            self.max_timestamp, self.max_timestamp_offset = self.times.last()
        return self.max_timestamp

    def find(self, offset: int) -> tuple[int, int, int, int] | None:
        """(position, base offset, last offset, size) of the first batch that ends at or after `offset`."""
        try:
            _, position = self.offsets.lookup(offset)
        except CorruptIndex:
            self.rebuild_indexes(4096)
            _, position = self.offsets.lookup(offset)
        return find_batch(self.file().fd, position, self.size, offset)

    def position_of(self, offset: int) -> int:
        """Where the first batch that holds or follows `offset` starts; the end when there is none."""
        found = self.find(offset)
        return found[0] if found else self.size

    def read_next_offset(self) -> int:
        """One past the last offset: a walk from the last index entry on."""
        _, position = self.offsets.last()
        next_offset = self.base_offset
        for _, header in scan_headers(self.file().fd, position, self.size):
            next_offset = header.last_offset + 1
        return next_offset

    def first_batch_timestamp(self) -> int:
        """The largest timestamp of the first batch, -1 when there is none."""
        if self.first_timestamp is None:
            self.first_timestamp = v2.NO_TIMESTAMP
            for _, header in scan_headers(self.file().fd, 0, self.size):
                self.first_timestamp = header.max_timestamp
                break
        return self.first_timestamp

    # -- changing --

    def rebuild_indexes(self, index_interval: int) -> None:
        """From the batch headers, as if each batch were appended again."""
        size, self.size = self.size, 0
        self.offsets.reset()
        self.times.reset()
        self.bytes_since_index = 0
        self.max_timestamp = v2.NO_TIMESTAMP
        self.max_timestamp_offset = self.base_offset
        for position, header in scan_headers(self.file().fd, 0, size):
            self.note_batch(position, header.size, header.last_offset, header.max_timestamp, index_interval)
        self.size = size

    def truncate_to(self, offset: int) -> int:
        """Drop the batches from the one that holds `offset` on; returns the bytes dropped."""
        position = self.position_of(offset)
        dropped = self.size - position
        self.offsets.truncate_to(offset)
        self.times.truncate_to(offset)
        self.disk.ftruncate(self.file().fd, position)
        self.size = position
        self.bytes_since_index = 0
        self.first_timestamp = None if position else v2.NO_TIMESTAMP
        self._reload_largest_timestamp()
        return dropped

    def _reload_largest_timestamp(self) -> None:
        """From the last time entry, and the batches behind the offset it names."""
        self.max_timestamp, self.max_timestamp_offset = self.times.last()
        _, position = self.offsets.lookup(self.max_timestamp_offset)
        for _, header in scan_headers(self.file().fd, position, self.size):
            if header.max_timestamp > self.max_timestamp:
                self.max_timestamp, self.max_timestamp_offset = header.max_timestamp, header.last_offset

    def change_suffix(self, suffix: str) -> None:
        """Rename all files of the segment; what is not there is not missed."""
        for kind in SEGMENT_SUFFIXES:
            source = self.path(kind)
            target = self.directory / (file_name(self.base_offset, kind) + suffix)
            try:
                self.disk.rename(source, target)
            except FileNotFoundError:
                continue
        self.suffix = suffix
        self.offsets.path = self.path(INDEX_SUFFIX)
        self.times.path = self.path(TIME_INDEX_SUFFIX)
