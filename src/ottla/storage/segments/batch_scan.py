"""Walk the batches of a segment file: headers only for look-ups, every byte for recovery.

Header walks read in chunks while batches are small, and header by header once they are large: a gigabyte of 16 KB
batches costs 65,000 small reads, a gigabyte of 100-byte batches 16,000 chunks.

Where the chain of batches breaks, `Trail.resume` looks further: if a batch with a right CRC follows, the file is
damaged in the middle, and what follows must not be thrown away; if none does, it is a torn tail.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator

from ottla.records.batch import CRC_START, HEADER, HEADER_SIZE, LOG_OVERHEAD, MAGIC_OFFSET, BatchHeader
from ottla.records.checksum import crc32c

CHUNK_BYTES = 64 * 1024
RECOVERY_CHUNK_BYTES = 1024 * 1024
_SMALL_CHUNK_BYTES = 4 * 1024
_LENGTH_MIN = HEADER_SIZE - LOG_OVERHEAD
# Base offset, length, last offset delta: all that a look-up needs.
_OFFSETS = struct.Struct(">qi11xi")
_unpack_from = HEADER.unpack_from
_make = BatchHeader._make


class BrokenChain(ValueError):
    """The bytes at `position` are not a batch that can follow what came before."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"no valid batch at position {position}: {reason}")
        self.position = position


def _fits(header: BatchHeader, previous: int, size: int, room: int) -> bool:
    """Whether this can be the header after a batch that ended with offset `previous`, in `room` bytes."""
    return (
        header.magic == 2
        and HEADER_SIZE <= size <= room
        and header.base_offset > previous
        and header.last_offset_delta >= 0
    )


def _problem(header: BatchHeader, previous: int, room: int) -> str:
    if header.magic != 2:
        return f"magic {header.magic}"
    if not HEADER_SIZE <= header.size <= room:
        return f"length {header.length} with {room} bytes left"
    return f"offset {header.base_offset} after {previous}"


def scan_headers(fd: int, position: int, end: int, previous: int = -1) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of each batch in [position, end). Raises BrokenChain where it stops making sense.

    Only structure is checked: magic, a length that fits, offsets that grow.
    """
    chunk = b""
    chunk_start = position
    chunk_bytes = _SMALL_CHUNK_BYTES
    while position < end:
        at = position - chunk_start
        if at + HEADER_SIZE > len(chunk):
            chunk = os.pread(fd, min(chunk_bytes, end - position), position)
            chunk_start, at = position, 0
            if len(chunk) < HEADER_SIZE:
                raise BrokenChain(position, "the file ends inside a header")
        header = _make(_unpack_from(chunk, at))
        size = header.length + LOG_OVERHEAD
        if not _fits(header, previous, size, end - position):
            raise BrokenChain(position, _problem(header, previous, end - position))
        yield position, header
        previous = header.base_offset + header.last_offset_delta
        position += size
        # Chunks pay only while several headers share one.
        chunk_bytes = CHUNK_BYTES if size < CHUNK_BYTES // 4 else HEADER_SIZE


def scan_batches(fd: int, position: int, end: int, previous: int = -1) -> Iterator[tuple[int, BatchHeader]]:
    """As `scan_headers`, but every batch is read and its CRC must be right. The loop of recovery, hence without calls
    to the helpers of `ottla.records`: a gigabyte may hold millions of batches."""
    chunk = b""
    view = memoryview(chunk)
    chunk_start = position
    while position < end:
        at = position - chunk_start
        if at + HEADER_SIZE > len(chunk):
            chunk = os.pread(fd, min(RECOVERY_CHUNK_BYTES, end - position), position)
            view = memoryview(chunk)
            chunk_start, at = position, 0
            if len(chunk) < HEADER_SIZE:
                raise BrokenChain(position, "the file ends inside a header")
        header = _make(_unpack_from(chunk, at))
        size = header.length + LOG_OVERHEAD
        if not _fits(header, previous, size, end - position):
            raise BrokenChain(position, _problem(header, previous, end - position))
        if at + size > len(chunk):
            chunk = os.pread(fd, max(size, min(RECOVERY_CHUNK_BYTES, end - position)), position)
            view = memoryview(chunk)
            chunk_start, at = position, 0
            if len(chunk) < size:
                raise BrokenChain(position, "the file ends inside a batch")
        if crc32c(view[at + CRC_START : at + size]) != header.crc:
            raise BrokenChain(position, "wrong CRC")
        yield position, header
        previous = header.base_offset + header.last_offset_delta
        position += size


def find_batch(
    fd: int, position: int, end: int, offset: int, indexed: int | None = None
) -> tuple[int, int, int, int] | None:
    """First batch from `position` on that ends at or after `offset`: (position, base offset, last offset, size).

    `indexed` is what the index says of the batch at `position`: it may end there or earlier, but not later, or the
    index is of another log. Raises BrokenChain.
    """
    unpack_from = _OFFSETS.unpack_from
    chunk_bytes = _SMALL_CHUNK_BYTES
    while position < end:
        chunk = os.pread(fd, min(chunk_bytes, end - position), position)
        at = 0
        last_header = len(chunk) - HEADER_SIZE
        if last_header < 0:
            raise BrokenChain(position, "the file ends inside a header")
        while at <= last_header:
            base, length, delta = unpack_from(chunk, at)
            if length < _LENGTH_MIN or chunk[at + MAGIC_OFFSET] != 2:
                raise BrokenChain(position + at, f"length {length}")
            if indexed is not None:
                if base + delta > indexed:
                    raise BrokenChain(position, f"the index has offset {indexed} here, the file {base + delta}")
                indexed = None
            if base + delta >= offset:
                return position + at, base, base + delta, length + LOG_OVERHEAD
            at += length + LOG_OVERHEAD
            if position + at > end:
                raise BrokenChain(position + at, f"a length of {length} leads out of the file")
        position += at
        chunk_bytes = CHUNK_BYTES
    return None


class Trail:
    """Where a walk over headers is, for the case that the chain breaks.

    A batch whose length is damaged looks whole to a walk that checks no CRCs; the break shows only behind it. So the
    search for the next valid batch begins inside the last one unless its CRC is right.
    """

    __slots__ = ("_before", "_last_at", "previous")

    def __init__(self, base_offset: int = 0) -> None:
        # The last offset before the position, and the one before the batch that ends there.
        self.previous = base_offset - 1
        self._before = self.previous
        self._last_at: int | None = None

    def passed(self, position: int, last_offset: int) -> None:
        self._last_at = position
        self._before, self.previous = self.previous, last_offset

    def resume(self, fd: int, broken_at: int, end: int) -> int | None:
        """Position of the next valid batch; None when nothing valid follows."""
        if self._last_at is not None and not _is_valid_batch(fd, self._last_at, end, self._before):
            broken_at, self.previous = self._last_at, self._before
        self._last_at = None
        return _find_next_valid(fd, broken_at, end, self.previous)


def _find_next_valid(fd: int, position: int, end: int, previous: int) -> int | None:
    """Position of the first whole batch behind `position` with a right CRC and offsets above `previous`; None if the
    rest of the file has none."""
    # Offsets of one segment share their upper four bytes, or go one up; batches are shorter than 16 MB as a rule.
    high = max(previous, 0) >> 32
    likely = rb"(?s)(?=(?:%b|%b).{4}\x00.{3}.{4}\x02)" % tuple(
        re.escape(struct.pack(">I", word)) for word in (high, high + 1)
    )
    pattern = re.compile(likely)
    start = position + 1
    while start < end:
        chunk = os.pread(fd, RECOVERY_CHUNK_BYTES + HEADER_SIZE, start)
        for match in pattern.finditer(chunk):
            at = start + match.start()
            if _is_valid_batch(fd, at, end, previous):
                return at
        start += RECOVERY_CHUNK_BYTES
    return None


def _is_valid_batch(fd: int, position: int, end: int, previous: int) -> bool:
    try:
        next(scan_batches(fd, position, end, previous))
    except (BrokenChain, StopIteration, struct.error):
        return False
    return True
