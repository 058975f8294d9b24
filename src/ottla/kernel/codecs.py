"""Decompression with what every executor has: PyArrow's codecs, and zlib.

What comes out is capped: a few hostile bytes must not become gigabytes. Snappy states its size up front, so it is
refused before anything is allocated; the others are read piece by piece until the cap.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

import pyarrow as pa

from ottla.kernel.errors import CorruptRecords

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
NAMES = ("none", "gzip", "snappy", "lz4", "zstd")

# Java's xerial framing of snappy: every Kafka client writes it; librdkafka also reads and sends bare blocks.
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16
_BLOCK_SIZE = struct.Struct(">i")
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
_PIECE_BYTES_MIN = 64 * 1024
_snappy = pa.Codec("snappy")


def decompress(codec: int, data: memoryview, limit_bytes: int) -> Any:
    """The plain bytes, as an object with a buffer of at most `limit_bytes`. Raises CorruptRecords."""
    try:
        if codec == GZIP:
            return _gunzip(data, limit_bytes)
        if codec == SNAPPY:
            return _unsnap(data, limit_bytes)
        if codec in (LZ4, ZSTD):
            return _stream(NAMES[codec], data, limit_bytes)
    except CorruptRecords:
        raise
    except (OSError, ValueError, struct.error, zlib.error, MemoryError) as error:
        raise CorruptRecords(f"a batch is not valid {NAMES[codec]}: {error}") from None
    raise CorruptRecords(f"a batch has codec {codec}, which does not exist")


def _too_much(limit_bytes: int) -> CorruptRecords:
    return CorruptRecords(f"a batch decompresses to more than {limit_bytes} bytes")


def _gunzip(data: memoryview, limit_bytes: int) -> bytes:
    parts: list[bytes] = []
    left = limit_bytes
    while True:
        member = zlib.decompressobj(_GZIP_OR_ZLIB)
        part = member.decompress(data, left + 1)
        left -= len(part)
        if left < 0:
            raise _too_much(limit_bytes)
        if not member.eof:
            raise CorruptRecords("a batch is not valid gzip: it ends too early")
        parts.append(part)
        if not member.unused_data:
            return parts[0] if len(parts) == 1 else b"".join(parts)
        data = memoryview(member.unused_data)


def _stream(name: str, data: memoryview, limit_bytes: int) -> bytes:
    parts: list[bytes] = []
    total = 0
    piece_bytes = max(_PIECE_BYTES_MIN, len(data) * 4)
    with pa.CompressedInputStream(pa.BufferReader(data), name) as stream:
        while True:
            part = stream.read(min(piece_bytes, limit_bytes - total + 1))
            total += len(part)
            if total > limit_bytes:
                raise _too_much(limit_bytes)
            if not part:
                return parts[0] if len(parts) == 1 else b"".join(parts)
            parts.append(part)


def _unsnap(data: memoryview, limit_bytes: int) -> Any:
    if data[:8] != _XERIAL_MAGIC:
        return _unsnap_block(data, limit_bytes, limit_bytes)
    parts: list[Any] = []
    left, at = limit_bytes, _XERIAL_HEADER_BYTES
    while at < len(data):
        (size,) = _BLOCK_SIZE.unpack_from(data, at)
        at += _BLOCK_SIZE.size
        if size < 0 or at + size > len(data):
            raise CorruptRecords("a batch is not valid snappy: a block runs past the end")
        part = _unsnap_block(data[at : at + size], left, limit_bytes)
        left -= len(part)
        parts.append(part)
        at += size
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _unsnap_block(block: memoryview, left: int, limit_bytes: int) -> Any:
    size = _stated_size(block)
    if size > left:
        raise _too_much(limit_bytes)
    return _snappy.decompress(block, decompressed_size=size, asbytes=True)


def _stated_size(block: memoryview) -> int:
    size = shift = 0
    for byte in block[:5]:
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            return size
        shift += 7
    raise CorruptRecords("a batch is not valid snappy: it does not begin with its size")
