"""Rows to record batches, in plain Python: the twin of `encode.pyx`, used where no compiled kernel is there.

    slots = route(keys, partitions, topics, bases, counts, sticky)      which partition each row goes to
    encoder = BatchEncoder(codec=LZ4, batch_bytes=512 * 1024)
    done = encoder.append(slots, keys, values, headers, timestamps_ms)   [(slot, batch, record count), ...]
    done += encoder.finish()

Columns are Arrow arrays: `binary` keys and values, `list<struct<key: string, value: binary>>` headers, `int64`
milliseconds. A slot is a number that the caller gives to a partition of a topic. One pass over the rows appends each
record to the open batch of its slot; a batch that is full is compressed, if that makes it smaller, and closed. What is
open is bounded by `open_bytes`: beyond it all open batches are closed, so a thousand partitions cost no more memory
than one.

Batches carry no producer yet: `ottla.kernel.patching` puts it in without reading the records again.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ottla.kernel.checksum import crc32c
from ottla.kernel.compressing import Compressor
from ottla.kernel.patching import TRANSACTIONAL_BIT

HEADER_BYTES = 61
_HEADER = struct.Struct(">qiibIhiqqqhii")
_CRC = struct.Struct(">I")
_CRC_AT, _ATTRIBUTES_AT = 17, 21
_NOT_SET = -1

Encoded = tuple[int, bytes, int]


def murmur2(data: bytes) -> int:
    """The hash by which Kafka's clients choose a partition (their seed, as an unsigned number)."""
    length = len(data)
    h = (0x9747B28C ^ length) & 0xFFFFFFFF
    for (k,) in struct.iter_unpack("<I", data[: length & ~3]):
        k = (k * 0x5BD1E995) & 0xFFFFFFFF
        k ^= k >> 24
        h = ((h * 0x5BD1E995) & 0xFFFFFFFF) ^ ((k * 0x5BD1E995) & 0xFFFFFFFF)
    rest = data[length & ~3 :]
    if rest:
        h = ((h ^ int.from_bytes(rest, "little")) * 0x5BD1E995) & 0xFFFFFFFF
    h = ((h ^ (h >> 13)) * 0x5BD1E995) & 0xFFFFFFFF
    return h ^ (h >> 15)


def partition_for_key(key: bytes, partitions: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def route(
    keys: Any, partitions: Any, topics: Any, bases: Sequence[int], counts: Sequence[int], sticky: Sequence[int]
) -> array[int]:
    """The slot of each row: `bases[topic] + partition`.

    `topics` are int32 indexes into the three lists (None: all rows are of topic 0). A row goes to the partition that it
    names, else to that of its key, else to `sticky[topic]`. Raises ValueError for a partition that is not there.
    """
    slots = array("i")
    rows = len(keys)
    named = partitions.to_pylist() if partitions is not None else [None] * rows
    indexes = topics.to_pylist() if topics is not None else [0] * rows
    for topic, partition, key in zip(indexes, named, keys.to_pylist(), strict=True):
        if partition is None:
            partition = partition_for_key(key, counts[topic]) if key is not None else sticky[topic]
        elif not 0 <= partition < counts[topic]:
            raise ValueError(f"partition {partition} is not one of the {counts[topic]} of its topic")
        slots.append(bases[topic] + partition)
    return slots


@dataclass
class _Open:
    """A batch that still takes records."""

    base_timestamp: int
    max_timestamp: int
    count: int = 0
    body: bytearray = field(default_factory=bytearray)


class BatchEncoder:
    def __init__(
        self,
        *,
        codec: int = 0,
        level: int | None = None,
        batch_bytes: int = 512 * 1024,
        open_bytes: int = 64 * 1024 * 1024,
        transactional: bool = True,
    ) -> None:
        self._codec = codec
        self._compressor = Compressor(codec, level)
        self._batch_bytes = batch_bytes
        self._open_bytes_max = open_bytes
        self._attributes = TRANSACTIONAL_BIT if transactional else 0
        self._open: dict[int, _Open] = {}
        self._open_bytes = 0

    def append(self, slots: array[int], keys: Any, values: Any, headers: Any, timestamps: Any) -> list[Encoded]:
        """Batches that got full. `headers` may be None; rows keep their order within a slot."""
        done: list[Encoded] = []
        header_rows = headers.to_pylist() if headers is not None else [None] * len(keys)
        rows = zip(slots, keys.to_pylist(), values.to_pylist(), header_rows, timestamps.to_pylist(), strict=True)
        for slot, key, value, row_headers, timestamp in rows:
            opened = self._open.get(slot)
            if opened is None:
                opened = self._open[slot] = _Open(timestamp, timestamp)
            record = _record(key, value, row_headers, timestamp - opened.base_timestamp, opened.count)
            if opened.count and len(opened.body) + len(record) > self._batch_bytes:
                done.append(self._close(slot))
                opened = self._open[slot] = _Open(timestamp, timestamp)
                record = _record(key, value, row_headers, 0, 0)
            opened.body += record
            opened.count += 1
            opened.max_timestamp = max(opened.max_timestamp, timestamp)
            self._open_bytes += len(record)
            if self._open_bytes > self._open_bytes_max:
                done += self.finish()
        return done

    def finish(self) -> list[Encoded]:
        """Close what is open; the encoder may be used again."""
        return [self._close(slot) for slot in sorted(self._open)]

    def _close(self, slot: int) -> Encoded:
        opened = self._open.pop(slot)
        self._open_bytes -= len(opened.body)
        compressed = self._compressor.compress(opened.body)
        body = opened.body if compressed is None else compressed
        batch = bytearray(
            _HEADER.pack(
                0,
                HEADER_BYTES - 12 + len(body),
                _NOT_SET,
                2,
                0,
                self._attributes | (0 if compressed is None else self._codec),
                opened.count - 1,
                opened.base_timestamp,
                opened.max_timestamp,
                _NOT_SET,
                _NOT_SET,
                _NOT_SET,
                opened.count,
            )
        )
        batch += body
        _CRC.pack_into(batch, _CRC_AT, crc32c(memoryview(batch)[_ATTRIBUTES_AT:]))
        return slot, bytes(batch), opened.count


def _record(key: bytes | None, value: bytes | None, headers: Any, timestamp_delta: int, offset_delta: int) -> bytearray:
    body = bytearray(1)  # record attributes: none are defined
    _write_varint(body, timestamp_delta)
    _write_varint(body, offset_delta)
    _write_sized(body, key)
    _write_sized(body, value)
    _write_varint(body, len(headers) if headers else 0)
    for header in headers or ():
        _write_sized(body, (header["key"] or "").encode())
        _write_sized(body, header["value"])
    record = bytearray()
    _write_varint(record, len(body))
    record += body
    return record


def _write_sized(out: bytearray, data: bytes | None) -> None:
    if data is None:
        out.append(1)  # varint -1
    else:
        _write_varint(out, len(data))
        out += data


def _write_varint(out: bytearray, value: int) -> None:
    value = (value << 1) ^ (value >> 63)
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
