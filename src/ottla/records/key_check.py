"""Walk the records of a batch that is to enter a compacted topic: each has a key, and the cleaner can read it.

Plain Python touches every record here, and a few hostile kilobytes decompress to millions of them. So the walk is a
generator that stops every few hundred records, and its caller decides when to go on.
"""

from __future__ import annotations

from collections.abc import Generator

from ottla.records.record import CorruptRecords

_RECORDS_PER_STEP = 256
_RECORD_BYTES_MIN = 7


def keyless_records(data: bytes | bytearray, count: int) -> Generator[None, None, list[int]]:
    """Yields between steps; returns the positions in the batch of the records without a key. Raises CorruptRecords."""
    if count * _RECORD_BYTES_MIN > len(data):
        raise CorruptRecords(f"{count} records cannot be in {len(data)} bytes")
    missing: list[int] = []
    at = 0
    try:
        for number in range(count):
            at, has_key = _walk_record(data, at, number)
            if not has_key:
                missing.append(number)
            if number % _RECORDS_PER_STEP == _RECORDS_PER_STEP - 1:
                yield
    except IndexError:
        raise CorruptRecords("the batch ends inside a record") from None
    if at != len(data):
        raise CorruptRecords("the batch has bytes left over")
    return missing


def _walk_record(data: bytes | bytearray, at: int, number: int) -> tuple[int, bool]:
    """(where the record ends, whether it has a key)"""
    length, at = _varint(data, at)
    end = at + length
    if length < 0 or end > len(data):
        raise CorruptRecords("a record runs past its batch")
    _, at = _varint(data, at + 1)  # attributes, then time
    delta, at = _varint(data, at)
    if delta != number:
        raise CorruptRecords(f"record {number} has offset delta {delta}")
    key_size, at = _varint(data, at)
    at = _skip(at, key_size, end)
    value_size, at = _varint(data, at)
    at = _skip(at, value_size, end)
    headers, at = _varint(data, at)
    if headers < 0 or headers > end - at:
        raise CorruptRecords(f"{headers} headers")
    for _ in range(headers):
        at = _walk_header(data, at, end)
    if at != end:
        raise CorruptRecords("a record is not as long as it says")
    return at, key_size >= 0


def _walk_header(data: bytes | bytearray, at: int, end: int) -> int:
    size, at = _varint(data, at)
    if size < 0:
        raise CorruptRecords("a header without a key")
    name = at
    at = _skip(at, size, end)
    try:
        data[name:at].decode()
    except UnicodeDecodeError:
        raise CorruptRecords("a header key is not UTF-8") from None
    size, at = _varint(data, at)
    return _skip(at, size, end)


def _skip(at: int, size: int, end: int) -> int:
    if size < -1:
        raise CorruptRecords(f"length {size}")
    at += max(size, 0)
    if at > end:
        raise CorruptRecords("a field runs past its record")
    return at


def _varint(data: bytes | bytearray, at: int) -> tuple[int, int]:
    byte = data[at]
    at += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), at
    value, shift = byte & 0x7F, 7
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7
        if shift > 63:
            raise CorruptRecords("varint is longer than ten bytes")
