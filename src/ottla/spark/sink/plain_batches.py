"""Keys and values of uncompressed record batches, such as markers are: a few lines that need no decoder."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

_HEADER = struct.Struct(">qiibIhiqqqhii")
_LOG_OVERHEAD = 12
_CONTROL_BIT = 0x20


class PlainBatch(NamedTuple):
    producer_id: int
    is_control: bool
    last_offset: int
    records: list[tuple[bytes | None, bytes | None]]


def read_plain(buffer: bytes | memoryview) -> Iterator[PlainBatch]:
    """All whole batches; one that is cut off at the end is left for the next fetch."""
    data = bytes(buffer)
    at = 0
    while at + _HEADER.size <= len(data):
        header = _HEADER.unpack_from(data, at)
        end = at + _LOG_OVERHEAD + header[1]
        if end > len(data):
            return
        records = []
        position = at + _HEADER.size
        for _ in range(header[12]):
            size, position = _varint(data, position)
            records.append(_key_and_value(data, position))
            position += size
        yield PlainBatch(header[9], bool(header[5] & _CONTROL_BIT), header[0] + header[6], records)
        at = end


def _key_and_value(data: bytes, position: int) -> tuple[bytes | None, bytes | None]:
    position += 1  # attributes
    _, position = _varint(data, position)  # timestamp
    _, position = _varint(data, position)  # offset
    key, position = _sized(data, position)
    value, position = _sized(data, position)
    return key, value


def _sized(data: bytes, position: int) -> tuple[bytes | None, int]:
    size, position = _varint(data, position)
    if size < 0:
        return None, position
    return data[position : position + size], position + size


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
