"""The sparse indexes of a segment, in Kafka's formats: offset -> file position, and timestamp -> offset.

    .index      int32 offset - base offset, int32 position of the batch that ends with that offset
    .timeindex  int64 largest timestamp so far, int32 offset - base offset of the batch that holds it

An index is a cache of the log: entries gather in memory and reach the file on flush, roll and close, after which the
file is what Kafka would have after trimming. Entries of earlier runs stay on disk until a look-up needs them, so a
start reads a few bytes per partition, not the indexes.
"""

from __future__ import annotations

import operator
import os
import struct
import sys
from abc import ABC, abstractmethod
from array import array
from bisect import bisect_left, bisect_right
from pathlib import Path

from ottla.storage.disk import DISK, Disk, OpenFile

INT32_MAX = 2**31 - 1


class CorruptIndex(ValueError):
    """The file cannot be the index of this segment; it is rebuilt from the log."""


class _Index(ABC):
    """Entries [0, _unloaded) are only on disk, the rest are in memory; [0, _persisted) are on disk.

    -1 in both: there is a file that nobody has looked at.
    """

    __slots__ = ("_on_disk", "_persisted", "_unloaded", "base_offset", "disk", "path", "unsynced")
    ENTRY_BYTES: int

    def __init__(self, path: str | Path, base_offset: int, disk: Disk = DISK) -> None:
        self.path = str(path)
        self.base_offset = base_offset
        self.disk = disk
        self._unloaded = 0
        self._persisted = 0
        # Whether the file is as long as `_persisted` says.
        self._on_disk = False
        # Whether the file has content that no flush has synced.
        self.unsynced = False
        self._clear()

    @property
    def name(self) -> str:
        return os.path.basename(self.path)

    @abstractmethod
    def _clear(self) -> None: ...
    @abstractmethod
    def _in_memory(self) -> int: ...
    @abstractmethod
    def _decode(self, raw: bytes) -> None:
        """Put these entries before the ones in memory."""

    @abstractmethod
    def _encode(self, start: int) -> bytes:
        """Entries in memory from the start-th on."""

    @abstractmethod
    def _truncate_memory(self, keep: int) -> None: ...
    @abstractmethod
    def _check(self, raw: bytes) -> None:
        """Raise CorruptIndex unless these are the strictly growing entries of this segment."""

    def __len__(self) -> int:
        if self._unloaded < 0:
            self._attach()
        return self._unloaded + self._in_memory()

    def attach_later(self) -> None:
        """Take over the file as it is, when it is first needed."""
        self._clear()
        self._unloaded = self._persisted = -1

    def _attach(self) -> None:
        """Only the size is looked at. Raises CorruptIndex."""
        try:
            size = os.stat(self.path).st_size
        except FileNotFoundError:
            raise CorruptIndex(f"{self.name} is missing") from None
        if size % self.ENTRY_BYTES:
            raise CorruptIndex(f"{self.name} is {size} bytes long")
        self._unloaded = self._persisted = size // self.ENTRY_BYTES
        self._on_disk = True

    def load(self) -> None:
        """Bring all entries into memory. Raises CorruptIndex."""
        if self._unloaded < 0:
            self._attach()
        if not self._unloaded:
            return
        raw = self._read(0, self._unloaded)
        self._check(raw)
        self._decode(raw)
        self._unloaded = 0

    def release(self) -> None:
        """Forget what is on disk as well; the next look-up reads it again."""
        if self._persisted >= 0 and self._persisted == len(self):
            self._clear()
            self._unloaded = self._persisted

    def _read(self, start: int, count: int) -> bytes:
        try:
            file = OpenFile(os.open(self.path, os.O_RDONLY))
        except FileNotFoundError:
            raise CorruptIndex(f"{self.name} is missing") from None
        size = self.ENTRY_BYTES
        raw = os.pread(file.fd, count * size, start * size)
        if len(raw) != count * size:
            raise CorruptIndex(f"{self.name} is shorter than it was")
        return raw

    def reset(self) -> None:
        """Drop every entry; the file follows at the next persist."""
        self._clear()
        self._unloaded = self._persisted = 0
        self._on_disk = False

    def persist(self) -> None:
        """Write what the file lacks."""
        if self._unloaded < 0 or (self._persisted == len(self) and self._on_disk):
            return
        self.unsynced = True
        count = len(self)
        file = self.disk.open(self.path, os.O_WRONLY | os.O_CREAT)
        start = min(self._persisted, count)
        if start < count:
            # Overwrite from the start-th entry, which may be stale after a truncation.
            self.disk.write_all(file.fd, self._encode(start - self._unloaded), start * self.ENTRY_BYTES)
        if os.fstat(file.fd).st_size != count * self.ENTRY_BYTES:
            self.disk.ftruncate(file.fd, count * self.ENTRY_BYTES)
        self._persisted = count
        self._on_disk = True

    def open_unsynced(self) -> list[OpenFile]:
        """The file, unless it is synced. Who syncs it says so in `unsynced`."""
        return [self.disk.open(self.path, os.O_WRONLY | os.O_CREAT)] if self.unsynced else []

    def _truncate_entries(self, keep: int) -> None:
        self.load()
        self._truncate_memory(keep)
        if keep < self._persisted:
            self._persisted = keep
            self._on_disk = False


class OffsetIndex(_Index):
    __slots__ = ("_offsets", "_positions")
    ENTRY_BYTES = 8

    def _clear(self) -> None:
        self._offsets = array("i")
        self._positions = array("i")

    def _in_memory(self) -> int:
        return len(self._offsets)

    def append(self, offset: int, position: int) -> None:
        self._offsets.append(offset - self.base_offset)
        self._positions.append(position)

    def lookup(self, offset: int) -> tuple[int, int]:
        """(offset, position) of the last entry at or below `offset`; the start of the segment when there is none."""
        relative = offset - self.base_offset
        offsets = self._offsets
        if self._unloaded != 0 and (not offsets or offsets[0] > relative):
            self.load()
            offsets = self._offsets
        at = bisect_right(offsets, relative) - 1
        if at < 0:
            return self.base_offset, 0
        return self.base_offset + offsets[at], self._positions[at]

    def next_after_position(self, position: int) -> int | None:
        """Offset of the first entry at or behind `position`: an upper bound for what stands before it."""
        self.load()
        at = bisect_left(self._positions, position)
        return self.base_offset + self._offsets[at] if at < len(self._positions) else None

    def position_before(self, position: int) -> int:
        """The last indexed position at or before this one."""
        self.load()
        at = bisect_right(self._positions, position) - 1
        return self._positions[at] if at >= 0 else 0

    def last(self) -> tuple[int, int]:
        """The last entry, without loading the others; the start of the segment when there is none."""
        if self._offsets:
            return self.base_offset + self._offsets[-1], self._positions[-1]
        if len(self) == 0:
            return self.base_offset, 0
        raw = self._read(self._unloaded - 1, 1)
        self._check(raw)
        relative, position = struct.unpack(">ii", raw)
        return self.base_offset + relative, position

    def truncate_to(self, offset: int) -> None:
        """Keep the entries below `offset`."""
        self.load()
        self._truncate_entries(bisect_left(self._offsets, offset - self.base_offset))

    def entries(self) -> list[tuple[int, int]]:
        self.load()
        return [(self.base_offset + relative, at) for relative, at in zip(self._offsets, self._positions, strict=True)]

    def _truncate_memory(self, keep: int) -> None:
        del self._offsets[keep:]
        del self._positions[keep:]

    def _check(self, raw: bytes) -> None:
        # The first entry comes after index.interval.bytes: neither of its fields can be zero.
        numbers = _big_endian_ints(raw)
        for column in (numbers[0::2], numbers[1::2]):
            if column[0] <= 0 or not all(map(operator.lt, column, column[1:])):
                raise CorruptIndex(f"{self.name} has entries out of order")

    def _decode(self, raw: bytes) -> None:
        numbers = _big_endian_ints(raw)
        self._offsets = numbers[0::2] + self._offsets
        self._positions = numbers[1::2] + self._positions

    def _encode(self, start: int) -> bytes:
        numbers = array("i", bytes(8 * (len(self._offsets) - start)))
        numbers[0::2] = self._offsets[start:]
        numbers[1::2] = self._positions[start:]
        _swap(numbers)
        return numbers.tobytes()


class TimeIndex(_Index):
    __slots__ = ("_last_timestamp", "_offsets", "_timestamps")
    ENTRY_BYTES = 12
    _ENTRY = struct.Struct(">qi")

    def _clear(self) -> None:
        self._timestamps = array("q")
        self._offsets = array("i")
        self._last_timestamp: int | None = None

    def _in_memory(self) -> int:
        return len(self._offsets)

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Entries grow in time; a segment without a newer timestamp adds none."""
        if timestamp > self.last_timestamp():
            self._timestamps.append(timestamp)
            self._offsets.append(offset - self.base_offset)
            self._last_timestamp = timestamp

    def last_timestamp(self) -> int:
        """Read from the file once; -1 when there is no entry."""
        if self._last_timestamp is None:
            self._last_timestamp = self.last()[0]
        return self._last_timestamp

    def lookup(self, timestamp: int) -> tuple[int, int]:
        """(timestamp, offset) of the last entry at or before `timestamp`; (-1, base offset) when there is none."""
        self.load()
        at = bisect_right(self._timestamps, timestamp) - 1
        if at < 0:
            return -1, self.base_offset
        return self._timestamps[at], self.base_offset + self._offsets[at]

    def last(self) -> tuple[int, int]:
        if self._timestamps:
            return self._timestamps[-1], self.base_offset + self._offsets[-1]
        if len(self) == 0:
            return -1, self.base_offset
        raw = self._read(self._unloaded - 1, 1)
        self._check(raw)
        timestamp, relative = self._ENTRY.unpack(raw)
        return timestamp, self.base_offset + relative

    def truncate_to(self, offset: int) -> None:
        """Keep the entries whose offset is below `offset`."""
        self.load()
        self._truncate_entries(bisect_left(self._offsets, offset - self.base_offset))
        self._last_timestamp = None

    def entries(self) -> list[tuple[int, int]]:
        self.load()
        return [
            (timestamp, self.base_offset + at) for timestamp, at in zip(self._timestamps, self._offsets, strict=True)
        ]

    def _truncate_memory(self, keep: int) -> None:
        del self._timestamps[keep:]
        del self._offsets[keep:]

    def _check(self, raw: bytes) -> None:
        previous_ms, previous = -1, -1
        for timestamp, relative in self._ENTRY.iter_unpack(raw):
            # Kafka allows equal offsets never, equal timestamps never: both grow.
            if timestamp <= previous_ms or relative < previous or relative < 0:
                raise CorruptIndex(f"{self.name} has entries out of order")
            previous_ms, previous = timestamp, relative

    def _decode(self, raw: bytes) -> None:
        pairs = list(self._ENTRY.iter_unpack(raw))
        self._timestamps = array("q", [timestamp for timestamp, _ in pairs]) + self._timestamps
        self._offsets = array("i", [offset for _, offset in pairs]) + self._offsets

    def _encode(self, start: int) -> bytes:
        pack = self._ENTRY.pack
        pairs = zip(self._timestamps[start:], self._offsets[start:], strict=True)
        return b"".join([pack(timestamp, offset) for timestamp, offset in pairs])


def _big_endian_ints(raw: bytes) -> array[int]:
    numbers = array("i")
    numbers.frombytes(raw)
    _swap(numbers)
    return numbers


def _swap(numbers: array[int]) -> None:
    if sys.byteorder == "little":
        numbers.byteswap()
