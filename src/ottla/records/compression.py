"""The four codecs of record batches, with a cap on what may come out: a few bytes must not become gigabytes."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Any

import cramjam

# Snappy blocks in the framing of Java's xerial library, which every Kafka client speaks.
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32 * 1024

# An LZ4 frame of independent blocks of up to 64 KB without checksums: the only kind that Java clients read. The last
# byte is the header's own checksum.
_LZ4_HEADER = b"\x04\x22\x4d\x18\x60\x40\x82"
_LZ4_BLOCK_BYTES = 64 * 1024


class Codec(IntEnum):
    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class DecompressionError(ValueError):
    """The bytes are not of this codec, or more would come out than allowed."""


class TooLarge(DecompressionError):
    """More would come out than allowed."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(f"decompresses to more than {limit_bytes} bytes")


def compress(codec: Codec, data: Any, level: int | None = None) -> bytes:
    if codec is Codec.NONE:
        return bytes(data)
    if codec is Codec.GZIP:
        return bytes(cramjam.gzip.compress(data, level=level if level is not None and level >= 0 else 6))
    if codec is Codec.SNAPPY:
        return _xerial_compress(data)
    if codec is Codec.LZ4:
        return _lz4_compress(data, level if level is not None else 1)
    return bytes(cramjam.zstd.compress(data, level=level if level is not None else 3))


def decompress(codec: Codec, data: Any, limit_bytes: int) -> bytes:
    """The plain bytes, at most `limit_bytes` of them."""
    return bytes(decompress_buffer(codec, data, limit_bytes))


def decompress_buffer(codec: Codec, data: Any, limit_bytes: int) -> bytes | bytearray:
    """The same without a copy, which would hold the interpreter lock for as long as the codec takes without it."""
    if codec is Codec.NONE:
        return bytes(data)
    try:
        if codec is Codec.SNAPPY:
            return _snappy_decompress(data, limit_bytes)
        return _stream_decompress(codec, data, limit_bytes)
    except DecompressionError:
        raise
    except Exception as error:  # cramjam and the slicing below raise several kinds
        raise DecompressionError(f"not valid {codec.name.lower()}: {error}") from None


def _stream_decompress(codec: Codec, data: Any, limit_bytes: int) -> bytearray:
    """Let the decoder write into a buffer of fixed size: a bomb fails when the buffer is full, not when memory is."""
    decode = {
        Codec.GZIP: cramjam.gzip.decompress_into,
        Codec.LZ4: cramjam.lz4.decompress_into,
        Codec.ZSTD: cramjam.zstd.decompress_into,
    }[codec]
    size = min(limit_bytes, size_hint(codec, data))
    while True:
        out = bytearray(size)
        try:
            written = decode(data, out)
        except Exception as error:
            if size >= limit_bytes or "whole buffer" not in str(error):
                if "whole buffer" in str(error):
                    raise TooLarge(limit_bytes) from None
                raise
            size = min(limit_bytes, size * 4)
            continue
        del out[written:]
        return out


def size_hint(codec: Codec, data: Any) -> int:
    """What the data say they grow to, or a guess: a buffer that fits is filled once and wastes little."""
    guess = max(4096, len(data) * 4)
    if codec is Codec.GZIP and len(data) > 18:
        stated = int.from_bytes(data[-4:], "little")
        return stated if len(data) // 2 <= stated <= 1024 * guess else guess
    if codec is Codec.ZSTD and len(data) > 14:
        descriptor = data[4]
        width = (descriptor >> 5 & 1, 2, 4, 8)[descriptor >> 6]
        if width:
            at = 5 + (not descriptor & 0x20) + (0, 1, 2, 4)[descriptor & 3]
            return int.from_bytes(data[at : at + width], "little") + (256 if width == 2 else 0) or guess
    return guess


def _snappy_decompress(data: Any, limit_bytes: int) -> bytes:
    view = memoryview(data)
    if bytes(view[:8]) != _XERIAL_MAGIC:
        return _snappy_block(view, limit_bytes)
    parts: list[bytes] = []
    total, position = 0, 16
    while position < len(view):
        (size,) = struct.unpack_from(">i", view, position)
        position += 4
        if size < 0 or position + size > len(view):
            raise DecompressionError("snappy block runs past the end")
        part = _snappy_block(view[position : position + size], limit_bytes - total)
        total += len(part)
        parts.append(part)
        position += size
    return b"".join(parts)


def _snappy_block(view: memoryview, limit_bytes: int) -> bytes:
    # The block states its size up front: refuse before anything is allocated.
    length = cramjam.snappy.decompress_raw_len(bytes(view[:8]))
    if length > limit_bytes:
        raise TooLarge(limit_bytes)
    return bytes(cramjam.snappy.decompress_raw(view))


def _xerial_compress(data: Any) -> bytes:
    view = memoryview(data)
    parts = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
        parts.append(struct.pack(">i", len(block)))
        parts.append(block)
    return b"".join(parts)


def _lz4_compress(data: Any, level: int) -> bytes:
    """cramjam links the blocks of a frame to one another, so each block is compressed as a frame of its own, whose only
    block cannot be linked, and is then taken out of it."""
    view = memoryview(data)
    parts = [_LZ4_HEADER]
    for start in range(0, len(view), _LZ4_BLOCK_BYTES):
        frame = bytes(cramjam.lz4.compress(view[start : start + _LZ4_BLOCK_BYTES], level=level))
        # The highest bit of the size says that the block is stored as it is.
        size = int.from_bytes(frame[7:11], "little") & 0x7FFFFFFF
        parts.append(frame[7 : 11 + size])
    parts.append(bytes(4))
    return b"".join(parts)
