"""Walk the records of a batch that is to enter a compacted topic: each has a key, and the cleaner can read it.

A few hostile kilobytes decompress to millions of records, and plain Python touches each of them while it holds the
interpreter lock. So this walk is a generator that stops every few hundred records, and its caller decides when to go
on. The compiled one (`walk.pyx`) releases the lock and needs no such steps.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

from ottla.kernel.errors import CorruptRecords

# Records that are named; a batch may hold millions without a key.
NAMED_MAX = 100

_RECORDS_PER_STEP = 256
_HEADERS_PER_STEP = 256
_RECORD_BYTES_MIN = 7


class Keyless(NamedTuple):
    """The records of a batch that have no key: how many, and the positions in the batch of the first of them."""

    total: int
    first: list[int]


def keyless_records(data: bytes | bytearray, count: int) -> Keyless:
    """All at once. Raises CorruptRecords."""
    steps = keyless_steps(data, count)
    try:
        while True:
            next(steps)
    except StopIteration as end:
        result: Keyless = end.value
        return result


def keyless_steps(data: bytes | bytearray, count: int) -> Generator[None, None, Keyless]:
    """The same, and yields between steps."""
    if count * _RECORD_BYTES_MIN > len(data):
        raise CorruptRecords(f"{count} records cannot be in {len(data)} bytes")
    missing, first = 0, list[int]()
    at = 0
    try:
        for number in range(count):
            at, end, headers, has_key = _walk_record(data, at, number)
            if headers:
                at = yield from _walk_headers(data, at, end, headers)
            if at != end:
                raise CorruptRecords("a record is not as long as it says")
            if not has_key:
                missing += 1
                if missing <= NAMED_MAX:
                    first.append(number)
            if number % _RECORDS_PER_STEP == _RECORDS_PER_STEP - 1:
                yield
    except IndexError:
        raise CorruptRecords("the batch ends inside a record") from None
    if at != len(data):
        raise CorruptRecords("the batch has bytes left over")
    return Keyless(missing, first)


def _walk_record(data: bytes | bytearray, at: int, number: int) -> tuple[int, int, int, bool]:
    """(where its headers begin, where the record ends, how many headers it has, whether it has a key)"""
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
    return at, end, headers, key_size >= 0


def _walk_headers(data: bytes | bytearray, at: int, end: int, count: int) -> Generator[None, None, int]:
    for number in range(count):
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
        at = _skip(at, size, end)
        if number % _HEADERS_PER_STEP == _HEADERS_PER_STEP - 1:
            yield
    return at


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
            if value >> 64:
                raise CorruptRecords("varint has more than 64 bits")
            return (value >> 1) ^ -(value & 1), at
        shift += 7
        if shift > 63:
            raise CorruptRecords("varint is longer than ten bytes")
