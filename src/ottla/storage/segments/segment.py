"""One segment of a log: a `.log` file of batches and its indexes, all named after the first offset.

A segment does no IO until it is used: 2,000 partitions after a start hold no file descriptors. The active segment is
written by `Log`, which owns the hot path; here is what a segment knows about itself.

Indexes are caches. What they say is checked against the batch it points to, and one that is missing, cut, zeroed or of
another segment is made again from the batch headers, whenever that is noticed.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from ottla.records.batch import NO_TIMESTAMP, BatchHeader
from ottla.storage.disk import DISK, Disk, OpenFile
from ottla.storage.segments.batch_scan import BrokenChain, Trail, find_batch, scan_batches, scan_headers
from ottla.storage.segments.indexes import INT32_MAX, CorruptIndex, OffsetIndex, TimeIndex
from ottla.storage.segments.txn_index import AbortedTxn, TxnIndex

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TXN_INDEX_SUFFIX = ".txnindex"
SNAPSHOT_SUFFIX = ".snapshot"
DELETED_SUFFIX = ".deleted"
CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"
# The log first: without it the indexes of a half-renamed segment are orphans, and orphans are cleared at the start.
SEGMENT_SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)

# A largest timestamp that the time index knows and nobody has asked for yet.
UNKNOWN_TIMESTAMP = -2


def file_name(offset: int, suffix: str) -> str:
    """Kafka's: twenty digits, so that names sort as offsets do."""
    return f"{offset:020d}{suffix}"


class Segment:
    """`size` bytes of batches from `base_offset` on; what lies behind `size` in the file does not count."""

    __slots__ = (
        "_file",
        "_make",
        "base_offset",
        "bytes_since_index",
        "created_ms",
        "cuts",
        "damaged",
        "directory",
        "disk",
        "first_timestamp",
        "hole",
        "index_interval",
        "jitter_ms",
        "max_timestamp",
        "max_timestamp_offset",
        "modified_ms",
        "offsets",
        "size",
        "suffix",
        "times",
        "txns",
        "used",
    )

    def __init__(
        self, directory: Path, base_offset: int, *, index_interval: int = 4096, suffix: str = "", disk: Disk = DISK
    ) -> None:
        self.directory = directory
        self.base_offset = base_offset
        self.index_interval = index_interval
        self.suffix = suffix
        self.disk = disk
        self.size = 0
        self._file: OpenFile | None = None
        # Flags that make the file when it is opened for the first time.
        self._make = 0
        self.offsets = OffsetIndex(self._path_text(INDEX_SUFFIX), base_offset, disk)
        self.times = TimeIndex(self._path_text(TIME_INDEX_SUFFIX), base_offset, disk)
        self.txns = TxnIndex(self._path_text(TXN_INDEX_SUFFIX), base_offset, disk)
        self.bytes_since_index = 0
        self.max_timestamp = NO_TIMESTAMP
        self.max_timestamp_offset = base_offset
        # The largest timestamp of the first batch: segment.ms counts from here. None until it is needed.
        self.first_timestamp: int | None = None
        self.created_ms = 0
        # By the broker's clock: when a batch was last appended.
        self.modified_ms = 0
        self.jitter_ms = 0
        # How often it was cut back.
        self.cuts = 0
        # The chain of batches is broken somewhere: look-ups have to step over it.
        self.damaged = False
        # The offset from which on a walk over its batches has found the chain broken; the lowest that was met.
        self.hole: int | None = None
        # Whether it was read since somebody last asked; idle segments give their files back.
        self.used = True

    def __repr__(self) -> str:
        return f"Segment({self.path(LOG_SUFFIX).name}, {self.size} bytes)"

    def path(self, kind: str) -> Path:
        return Path(self._path_text(kind))

    def _path_text(self, kind: str) -> str:
        return f"{self.directory}/{self.base_offset:020d}{kind}{self.suffix}"

    def paths(self) -> list[Path]:
        return [self.path(kind) for kind in SEGMENT_SUFFIXES]

    @property
    def indexes(self) -> tuple[OffsetIndex, TimeIndex, TxnIndex]:
        return self.offsets, self.times, self.txns

    @property
    def max_offset(self) -> int:
        """Offsets are indexed relative to the base, in 32 bits."""
        return self.base_offset + INT32_MAX

    # -- files --

    def create(self, now_ms: int, *, when_used: bool = False) -> None:
        """Make the log file; leftovers of a crash under the same name are cleared. An index comes with the first
        flush. With `when_used` nothing is made before the first use: for a log that has nothing to lose."""
        self.created_ms = self.modified_ms = now_ms
        self.txns.replace([])
        self._make = os.O_CREAT | os.O_TRUNC
        if not when_used:
            for kind in (INDEX_SUFFIX, TIME_INDEX_SUFFIX):
                self.path(kind).unlink(missing_ok=True)
            self.file()

    @property
    def is_made(self) -> bool:
        return self._make == 0

    def attach(self, size: int, modified_ms: int) -> None:
        """Take over existing files without looking into them."""
        self.size = size
        self.created_ms = self.modified_ms = modified_ms
        self.max_timestamp = UNKNOWN_TIMESTAMP if size else NO_TIMESTAMP
        self.offsets.attach_later()
        self.times.attach_later()

    def file(self) -> OpenFile:
        """The log file, opened at the first use."""
        self.used = True
        if self._file is None:
            self._file = self.disk.open(self._path_text(LOG_SUFFIX), os.O_RDWR | self._make)
            self._make = 0
        return self._file

    def release(self) -> None:
        """Give back descriptor and index memory; slices in flight keep theirs."""
        self._file = None
        self.offsets.release()
        self.times.release()
        self.txns.release()

    def rename_to(self, suffix: str) -> None:
        """Give all files of the segment this suffix; what is not there is not missed."""
        for kind in SEGMENT_SUFFIXES:
            try:
                self.disk.rename(self.path(kind), self.directory / (file_name(self.base_offset, kind) + suffix))
            except FileNotFoundError:
                continue
        self.suffix = suffix
        self._follow_paths()

    def moved_to(self, directory: Path) -> None:
        """The folder has another name now; open files stay as they are."""
        self.directory = directory
        self._follow_paths()

    def _follow_paths(self) -> None:
        self.offsets.path = self._path_text(INDEX_SUFFIX)
        self.times.path = self._path_text(TIME_INDEX_SUFFIX)
        self.txns.path = self._path_text(TXN_INDEX_SUFFIX)

    # -- appending --

    def get_ready_to_append(self) -> None:
        """Read what an append has to know of the files. Once the bytes of a batch are written nothing may fail."""
        self.largest_timestamp()
        self._ask_index(self.times.last_timestamp)

    def note_batch(self, position: int, size: int, last_offset: int, max_timestamp: int) -> None:
        """Account for one batch that is in the file, at `position`: Kafka's rules for index entries."""
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        if self.bytes_since_index > self.index_interval:
            self.offsets.append(last_offset, position)
            self.times.maybe_append(self.max_timestamp, self.max_timestamp_offset)
            self.bytes_since_index = 0
        self.bytes_since_index += size
        self.size = position + size

    def is_index_full(self, index_bytes: int) -> bool:
        # Kafka keeps one time entry free for the one added on roll.
        offsets = self._ask_index(self.offsets.__len__)
        return offsets >= index_bytes // 8 or self._ask_index(self.times.__len__) >= index_bytes // 12 - 1

    def index_bytes(self) -> tuple[int, int]:
        """Of offsets and times."""
        offsets, times = self._ask_index(self.offsets.__len__), self._ask_index(self.times.__len__)
        return offsets * self.offsets.ENTRY_BYTES, times * self.times.ENTRY_BYTES

    def finish(self) -> None:
        """Bring the indexes on disk to what a closed segment has."""
        if not self.is_made or self.max_timestamp == UNKNOWN_TIMESTAMP:
            return  # nothing was written since it was attached
        if self.size:
            self.times.maybe_append(self.max_timestamp, self.max_timestamp_offset)
        for index in self.indexes:
            index.persist()

    def give_up_indexes(self) -> None:
        """They cannot be written. Offsets and times are found again from what is there; aborted transactions only if
        their index is known to be missing."""
        if self.txns.is_behind:
            self.txns.discard()

    # -- looking up --

    def find(self, offset: int) -> tuple[int, int, int, int] | None:
        """(position, base offset, last offset, size) of the first batch that ends at or after `offset`."""
        try:
            indexed, position = self.offsets.lookup(offset)
            return find_batch(self.file().fd, position, self.size, offset, indexed if position else None)
        except (CorruptIndex, BrokenChain) as error:
            if not self.damaged:
                logger.warning("%s: %s; making the indexes again", self, error)
                self.rebuild_indexes()
            # If it happens again it is not the index.
            self.damaged = isinstance(error, BrokenChain)
        _, start = self._ask_index(lambda: self.offsets.lookup(offset))
        for position, header in self.headers(start):
            if header.last_offset >= offset:
                return position, header.base_offset, header.last_offset, header.size
        return None

    def _ask_index(self, ask: Callable[[], Answer]) -> Answer:
        try:
            return ask()
        except CorruptIndex as error:
            logger.warning("%s: %s; making the indexes again", self, error)
            self.rebuild_indexes()
            return ask()

    def next_index_offset(self, position: int) -> int | None:
        """Offset of the first index entry at or behind `position`."""
        return self._ask_index(lambda: self.offsets.next_after_position(position))

    def index_position_before(self, position: int) -> int:
        """Position of the last indexed batch at or before `position`."""
        return self._ask_index(lambda: self.offsets.position_before(position))

    def last_offset_up_to(self, timestamp: int) -> int:
        """An offset up to which nothing is later than `timestamp`, from the time index."""
        return self._ask_index(lambda: self.times.lookup(timestamp))[1]

    def position_of(self, offset: int) -> int:
        """Where the first batch that holds or follows `offset` starts; the end when there is none."""
        found = self.find(offset)
        return found[0] if found else self.size

    def headers(self, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
        """(position, header) of the batches from `position` on. Damaged ones are stepped over, never an error."""
        return self._walk(position, self.size)

    def _walk(self, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
        # Held to the end: the segment may be released between two steps, and the descriptor be of another file then.
        file, trail = self.file(), Trail()
        while True:
            try:
                for at, header in scan_headers(file.fd, position, end, trail.previous):
                    yield at, header
                    trail.passed(at, header.last_offset)
                return
            except BrokenChain as broken:
                found = trail.resume(file.fd, broken.position, end)
                # Nothing is known of what stands before a walk that begins in the middle.
                hole = max(trail.previous + 1, self.base_offset)
                self.hole = hole if self.hole is None else min(self.hole, hole)
                logger.error("%s: %s; %s", self, broken, "nothing follows" if found is None else f"goes on at {found}")
                if found is None:
                    return
                position = found

    def next_offset(self) -> int:
        """One past the last offset: a walk from the last index entry on."""
        indexed, position = self._ask_index(self.offsets.last)
        if position and not self._holds(indexed, position):
            self.rebuild_indexes()
            _, position = self.offsets.last()
        next_offset = self.base_offset
        for _, header in self.headers(position):
            next_offset = header.last_offset + 1
        return next_offset

    def _holds(self, indexed: int, position: int) -> bool:
        """Whether what an index entry says of the batch at `position` can be."""
        try:
            return find_batch(self.file().fd, position, self.size, indexed, indexed) is not None
        except BrokenChain:
            return False

    def headers_from(self, offset: int) -> Iterator[tuple[int, BatchHeader]]:
        """The batches from the one that holds `offset` on."""
        found = self.find(offset)
        return self.headers(found[0]) if found else iter(())

    def _whole_before(self, offset: int) -> int:
        """Where the last batch before `offset` ends, if what follows may be damaged."""
        _, end = self._ask_index(lambda: self.offsets.lookup(offset))
        try:
            for position, header in scan_headers(self.file().fd, end, self.size):
                if header.last_offset >= offset:
                    break
                end = position + header.size
        except BrokenChain:
            pass
        return end

    def largest_timestamp(self) -> int:
        """The last time entry has it, unless batches behind it say otherwise."""
        if self.max_timestamp == UNKNOWN_TIMESTAMP:
            self._ask_index(self._load_largest_timestamp)
        return self.max_timestamp

    def _load_largest_timestamp(self) -> None:
        timestamp, offset = self.times.last()
        confirmed = timestamp == NO_TIMESTAMP
        for _, header in self.headers_from(offset):
            if header.base_offset <= offset <= header.last_offset and header.max_timestamp == timestamp:
                confirmed = True
            if header.max_timestamp > timestamp:
                timestamp, offset = header.max_timestamp, header.last_offset
        if not confirmed:
            raise CorruptIndex(f"{self.times.name} names a timestamp that is not there")
        self.max_timestamp, self.max_timestamp_offset = timestamp, offset

    def aborted_transactions(self) -> list[AbortedTxn]:
        """The entries of the transaction index. Raises CorruptIndex when it is missing or of another segment."""
        known = self.txns.loaded
        entries = self.txns.entries()
        if not known:
            for entry in entries[:1] + entries[-1:]:
                header = next((header for _, header in self.headers_from(entry.last_offset)), None)
                if header is None or not header.is_control or header.producer_id != entry.producer_id:
                    self.txns.release()
                    raise CorruptIndex(f"{self.txns.name} names a marker that is not there")
        return entries

    def begins_batch(self, position: int, indexed: int) -> bool:
        """Whether a batch with a right CRC starts here, and ends no later than the index says."""
        try:
            found = next(scan_batches(self.file().fd, position, self.size), None)
            return found is not None and found[1].last_offset <= indexed
        except BrokenChain:
            return False

    def first_batch_timestamp(self) -> int:
        """The largest timestamp of the first batch, -1 when there is none."""
        if self.first_timestamp is None:
            first = next(self.headers(), None)
            self.first_timestamp = first[1].max_timestamp if first else NO_TIMESTAMP
        return self.first_timestamp

    # -- changing --

    def forget_batches(self) -> None:
        """Back to an empty segment in memory; `note_batch` fills it again."""
        self.size = 0
        self.offsets.reset()
        self.times.reset()
        self.bytes_since_index = 0
        self.max_timestamp = NO_TIMESTAMP
        self.max_timestamp_offset = self.base_offset
        self.first_timestamp = None

    def rebuild_indexes(self) -> None:
        """From the batch headers, as if each batch were appended again."""
        size, headers = self.size, self.headers()
        self.forget_batches()
        for position, header in headers:
            self.note_batch(position, header.size, header.last_offset, header.max_timestamp)
        self.size = size
        self.times.maybe_append(self.max_timestamp, self.max_timestamp_offset)

    def truncate_to(self, offset: int) -> None:
        """Drop the batches from the one that holds `offset` on."""
        self.cuts += 1
        self.size = self.position_of(offset)
        if self.damaged:
            self.size = self._whole_before(offset)
        self.disk.ftruncate(self.file().fd, self.size)
        self._ask_index(lambda: self.offsets.truncate_to(offset))
        self._ask_index(lambda: self.times.truncate_to(offset))
        try:
            self.txns.truncate_to(offset)
        except CorruptIndex:
            self.txns.discard()
        self.bytes_since_index = 0
        self.first_timestamp = None
        self.max_timestamp = UNKNOWN_TIMESTAMP
        self.largest_timestamp()
