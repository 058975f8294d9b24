"""Compression of record batches with what every executor has: pyarrow, and zlib.

Java's clients read LZ4 frames of independent blocks only, and pyarrow links the blocks of its frames: so the frame is
made here, of raw blocks. Snappy goes into the framing of Java's xerial library, which every Kafka client speaks.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import Any

import pyarrow as pa

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
NUMBERS = {"none": NONE, "uncompressed": NONE, "gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD}
_NAMES = {GZIP: "gzip", SNAPPY: "snappy", LZ4: "lz4_raw", ZSTD: "zstd"}
_DEFAULT_LEVELS = {GZIP: 6, ZSTD: 3}

_XERIAL_HEADER = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32 * 1024

# Version 1, independent blocks of up to 64 KB, no checksums; the last byte is the header's own checksum.
_LZ4_HEADER = b"\x04\x22\x4d\x18\x60\x40\x82"
_LZ4_BLOCK_BYTES = 64 * 1024
_LZ4_STORED = 0x80000000

# A batch that does not get smaller by this part is sent as it is: whoever reads it would pay for nothing.
_WORTH_SHARE = 1 / 16
_SAMPLE_BYTES = 32 * 1024


@cache
def _codec(number: int, level: int | None) -> Any:
    return pa.Codec(_NAMES[number], compression_level=_DEFAULT_LEVELS.get(number) if level is None else level)


def compress(codec: int, data: Any, level: int | None = None) -> bytes:
    if codec == NONE:
        return bytes(data)
    native = _codec(codec, level)
    if codec == SNAPPY:
        return _xerial(native, memoryview(data))
    if codec == LZ4:
        return _lz4_frame(native, memoryview(data))
    return bytes(native.compress(data, asbytes=True))


class Compressor:
    """For the batches of one encoder. Where a batch did not get smaller, of the next ones only a part is tried, until
    that gets smaller: to try all of what does not compress takes a tenth of the time of a task."""

    def __init__(self, codec: int, level: int | None) -> None:
        self._codec = codec
        self._level = level
        self._is_in_doubt = False

    def compress(self, data: Any) -> bytes | None:
        """None: it is better left as it is."""
        if self._codec == NONE:
            return None
        view = memoryview(data)
        if self._is_in_doubt and len(view) > 2 * _SAMPLE_BYTES:
            middle = len(view) // 2
            if self._tried(view[middle : middle + _SAMPLE_BYTES]) is None:
                return None
        body = self._tried(view)
        self._is_in_doubt = body is None
        return body

    def _tried(self, view: memoryview) -> bytes | None:
        body = compress(self._codec, view, self._level)
        return body if len(body) <= (1 - _WORTH_SHARE) * len(view) else None


def _xerial(native: Any, view: memoryview) -> bytes:
    parts = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = native.compress(view[start : start + _XERIAL_BLOCK_BYTES], asbytes=True)
        parts += (struct.pack(">i", len(block)), block)
    return b"".join(parts)


def _lz4_frame(native: Any, view: memoryview) -> bytes:
    parts = [_LZ4_HEADER]
    for start in range(0, len(view), _LZ4_BLOCK_BYTES):
        plain = view[start : start + _LZ4_BLOCK_BYTES]
        block = native.compress(plain, asbytes=True)
        if len(block) < len(plain):
            parts += (struct.pack("<I", len(block)), block)
        else:
            parts += (struct.pack("<I", len(plain) | _LZ4_STORED), bytes(plain))
    parts.append(bytes(4))
    return b"".join(parts)
