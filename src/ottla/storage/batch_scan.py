"""Walk the batch headers of a segment file without reading the records between them.

Reads go in chunks while batches are small, and header by header once they are large: a gigabyte of 16 KB batches costs
65,000 small reads, a gigabyte of 100-byte batches costs 16,000 chunks.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

from ottla.records import batch as v2

CHUNK_BYTES = 64 * 1024
_SMALL_CHUNK_BYTES = 4 * 1024
# Base offset, length, last offset delta: all that a look-up needs.
_OFFSETS = struct.Struct(">qi11xi")


class BrokenChain(ValueError):
    """The bytes at `position` are not a batch header that can follow what came before."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"no valid batch at position {position}: {reason}")
        self.position = position


def scan_headers(fd: int, position: int, end: int) -> Iterator[tuple[int, v2.BatchHeader]]:
    """(position, header) of each batch in [position, end). Raises BrokenChain where the chain stops making sense.

    Nothing but structure is checked: magic, a length that fits, offsets that grow. CRCs are `verify_batch`'s part.
    """
    chunk = b""
    chunk_start = position
    chunk_bytes = CHUNK_BYTES
    previous = -1
    while position < end:
        at = position - chunk_start
        if at < 0 or at + v2.HEADER_SIZE > len(chunk):
            chunk = os.pread(fd, min(chunk_bytes, end - position), position)
            chunk_start, at = position, 0
            if len(chunk) < v2.HEADER_SIZE:
                raise BrokenChain(position, "the file ends inside a header")
        header = v2.read_header(chunk, at)
        if header.magic != 2:
            raise BrokenChain(position, f"magic {header.magic}")
        if header.length < v2.HEADER_SIZE - v2.LOG_OVERHEAD or position + header.size > end:
            raise BrokenChain(position, f"length {header.length} with {end - position} bytes left")
        if header.last_offset_delta < 0 or header.base_offset <= previous:
            raise BrokenChain(position, f"offset {header.base_offset} after {previous}")
        yield position, header
        previous = header.last_offset
        position += header.size
        # Chunks pay only while several headers share one.
        chunk_bytes = CHUNK_BYTES if header.size < CHUNK_BYTES // 4 else v2.HEADER_SIZE


def find_batch(fd: int, position: int, end: int, offset: int) -> tuple[int, int, int, int] | None:
    """First batch from `position` on that ends at or after `offset`: (position, base offset, last offset, size)."""
    unpack_from = _OFFSETS.unpack_from
    chunk_bytes = _SMALL_CHUNK_BYTES
    while position < end:
        chunk = os.pread(fd, min(chunk_bytes, end - position), position)
        at = 0
        last_header = len(chunk) - v2.HEADER_SIZE
        if last_header < 0:
            return None
        while at <= last_header:
            base, length, delta = unpack_from(chunk, at)
            if length < v2.HEADER_SIZE - v2.LOG_OVERHEAD or chunk[at + v2.MAGIC_OFFSET] != 2:
                raise BrokenChain(position + at, f"length {length}")
            if base + delta >= offset:
                return position + at, base, base + delta, length + v2.LOG_OVERHEAD
            at += length + v2.LOG_OVERHEAD
        position += at
        chunk_bytes = CHUNK_BYTES
    return None


def verify_batch(fd: int, position: int, header: v2.BatchHeader) -> bool:
    """Whether the whole batch is there and its CRC is right."""
    data = os.pread(fd, header.size, position)
    return len(data) == header.size and v2.compute_crc(data, 0, header.size) == header.crc
