"""Record batches (v2) to Arrow columns, in plain Python: the twin of `decode.pyx`, which must behave the same.

A fetch answer holds whole batches and perhaps a cut one at its end. Walking it, a batch is

- cut off: the walk ends, the next fetch brings it whole;
- outside of the offsets asked for, or a control batch, or of an aborted transaction: skipped;
- else checked (CRC), decompressed, and its records appended to the columns.

An aborted transaction runs from its first offset, which the broker lists in the answer, to its abort marker, which
stands in the log. A producer has one transaction at a time, so one set of producer ids is all the state there is.

Memory is bounded: `next_columns` ends a piece when it has enough rows or bytes, headers included, even in the middle of
a batch, so there is the answer itself, one decompressed batch (capped) and one piece. Nothing is allocated on the word
of the bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from ottla.kernel import codecs
from ottla.kernel.checksum import crc32c
from ottla.kernel.errors import CorruptRecords

# base offset, length, leader epoch, magic, crc, attributes, last offset delta, base timestamp, max timestamp,
# producer id, producer epoch, base sequence, record count
_HEADER = struct.Struct(">qiibIhiqqqhii")
_HEADER_BYTES = 61
_OVERHEAD_BYTES = 12
_CRC_FROM = 21
_CODEC, _APPEND_TIME, _TRANSACTIONAL, _CONTROL = 0x07, 0x08, 0x10, 0x20
_ABORT_MARKER = 0
_INT64_MAX = 2**63 - 1
# What an empty header takes in Arrow, which may be four times what it takes in a record; and the most of one record.
_HEADER_COST_BYTES = 8
_HEADERS_MAX = 1_000_000
# Far beyond any log, and sums with it cannot overflow.
_OFFSET_MAX = 2**62

ROWS_MAX = 10_000
BYTES_MAX = 8 * 1024 * 1024
DECOMPRESSED_BYTES_MAX = 256 * 1024 * 1024

HEADERS_TYPE = pa.list_(pa.field("element", pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])))
_TIMESTAMP = pa.timestamp("us", tz="UTC")

_Row = tuple[Any, Any, int, int, int, Any]


def fetched_until(data: Any, start: int) -> int:
    """The offset after the last whole batch in `data`: where the next fetch begins. `start` if there is none."""
    view = memoryview(data)
    position, until = 0, start
    while position + _HEADER_BYTES <= len(view):
        base, length, _, magic, _, _, last_delta = _HEADER.unpack_from(view, position)[:7]
        _check_shape(base, magic, length, last_delta)
        if position + _OVERHEAD_BYTES + length > len(view):
            break
        until = max(until, base + last_delta + 1)
        position += _OVERHEAD_BYTES + length
    return until


def _check_shape(base: int, magic: int, length: int, last_delta: int) -> None:
    if magic != 2:
        raise CorruptRecords(f"a batch has the format {magic}: only format 2, of Kafka 0.11 and newer, is read")
    if length < _HEADER_BYTES - _OVERHEAD_BYTES or last_delta < 0 or not 0 <= base <= _OFFSET_MAX:
        raise CorruptRecords("the header of a batch does not add up")


class Decoder:
    """The records with `start` <= offset < `end` in the `data` of one fetch answer, piece by piece."""

    def __init__(
        self,
        data: Any,
        start: int,
        end: int,
        aborted: Sequence[tuple[int, int]] = (),
        with_headers: bool = False,
        check_crcs: bool = True,
        decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
    ) -> None:
        """`aborted` has (producer id, first offset) of each aborted transaction; leave it empty to read them too."""
        self._data = memoryview(data).cast("B")
        self._start, self._end = start, end
        self._aborted = sorted(aborted, key=lambda transaction: transaction[1])
        self._with_headers = with_headers
        self._check_crcs = check_crcs
        self._limit_bytes = decompressed_bytes_max
        self._rows = self._walk()

    def next_columns(self, rows_max: int = ROWS_MAX, bytes_max: int = BYTES_MAX) -> list[Any] | None:
        """Arrays of key, value, offset, timestamp, timestamp type and, if wanted, headers; None after the last.

        Raises CorruptRecords."""
        rows: list[_Row] = []
        size = 0
        for row in self._rows:
            rows.append(row)
            size += len(row[0] or b"") + len(row[1] or b"")
            if row[5]:
                size += sum(_HEADER_COST_BYTES + len(name) + len(value or b"") for name, value in row[5])
            if len(rows) >= rows_max or size >= bytes_max:
                break
        return self._columns(rows) if rows else None

    def _columns(self, rows: list[_Row]) -> list[Any]:
        keys, values, offsets, stamps, kinds, headers = zip(*rows, strict=True)
        columns = [
            pa.array(keys, pa.binary()),
            pa.array(values, pa.binary()),
            pa.array(offsets, pa.int64()),
            pa.array(stamps, pa.int64()).cast(_TIMESTAMP),
            pa.array(kinds, pa.int32()),
        ]
        if self._with_headers:
            pairs = [row and [{"key": name, "value": value} for name, value in row] for row in headers]
            columns.append(pa.array(pairs, HEADERS_TYPE))
        return columns

    def _walk(self) -> Iterator[_Row]:
        position, data = 0, self._data
        open_aborted: set[int] = set()
        upcoming = iter(self._aborted)
        following = next(upcoming, None)
        while position + _HEADER_BYTES <= len(data):
            header = _HEADER.unpack_from(data, position)
            base, length, _, magic, crc, attributes, last_delta, _, _, producer_id = header[:10]
            _check_shape(base, magic, length, last_delta)
            batch = data[position : position + _OVERHEAD_BYTES + length]
            if len(batch) < _OVERHEAD_BYTES + length or base >= self._end:
                return
            position += len(batch)
            while following is not None and following[1] <= base + last_delta:
                open_aborted.add(following[0])
                following = next(upcoming, None)
            is_wanted = base + last_delta >= self._start
            if attributes & _CONTROL:
                if producer_id in open_aborted and _is_abort_marker(batch, base + last_delta):
                    open_aborted.discard(producer_id)
                continue
            if not is_wanted or (attributes & _TRANSACTIONAL and producer_id in open_aborted):
                continue
            if self._check_crcs and crc32c(batch[_CRC_FROM:]) != crc:
                raise CorruptRecords(f"the batch at offset {base} fails its checksum")
            yield from self._records(batch, header)

    def _records(self, batch: memoryview, header: tuple[Any, ...]) -> Iterator[_Row]:
        base, _, _, _, _, attributes, last_delta, base_ms, max_ms, _, _, _, count = header
        raw: Any = batch[_HEADER_BYTES:]
        if attributes & _CODEC:
            raw = codecs.decompress(attributes & _CODEC, raw, self._limit_bytes)
        plain = bytes(raw)
        kind = 1 if attributes & _APPEND_TIME else 0
        at = 0
        try:
            for _ in range(count):
                length, at = _varint(plain, at)
                end = at + length
                if length < 0 or end > len(plain):
                    raise CorruptRecords(f"a record runs past the batch at offset {base}")
                delta_ms, at = _varint(plain, at + 1)
                delta, at = _varint(plain, at)
                if not 0 <= delta <= last_delta:
                    raise CorruptRecords(f"a record is outside of its batch at offset {base}")
                key, at = _sized(plain, at, end)
                value, at = _sized(plain, at, end)
                is_wanted = self._start <= base + delta < self._end
                headers, at = self._headers(plain, at, end, is_wanted and self._with_headers)
                if at != end:
                    raise CorruptRecords(f"a record does not end where it says in the batch at offset {base}")
                if is_wanted:
                    yield key, value, base + delta, _micros(max_ms if kind else base_ms + delta_ms), kind, headers
        except IndexError:
            raise CorruptRecords(f"the batch at offset {base} ends inside a record") from None
        if at != len(plain):
            raise CorruptRecords(f"the batch at offset {base} has bytes left over")

    def _headers(
        self, data: bytes, at: int, end: int, is_wanted: bool
    ) -> tuple[list[tuple[str, bytes | None]] | None, int]:
        """None where there are none, as Spark's own connector has it."""
        count, at = _varint(data, at)
        if count < 0 or count > end - at:
            raise CorruptRecords(f"a record says it has {count} headers")
        if is_wanted and count > _HEADERS_MAX:
            raise CorruptRecords(f"a record has {count} headers, of which {_HEADERS_MAX} at most are read")
        headers = []
        for _ in range(count):
            name, at = _sized(data, at, end)
            if name is None:
                raise CorruptRecords("a header has no key")
            value, at = _sized(data, at, end)
            if is_wanted:
                headers.append((name.decode(errors="replace"), value))
        return headers or None, at


def _is_abort_marker(batch: memoryview, offset: int) -> bool:
    """A control record's key is two int16: a version and a type. Control batches are never compressed."""
    data = bytes(batch[_HEADER_BYTES:])
    try:
        _, at = _varint(data, 0)
        _, at = _varint(data, at + 1)
        _, at = _varint(data, at)
        key, _ = _sized(data, at, len(data))
    except IndexError:
        key = None
    if key is None or len(key) < 4:
        raise CorruptRecords(f"the control batch at offset {offset} has no type")
    return int.from_bytes(key[2:4], "big") == _ABORT_MARKER


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 63:
            raise CorruptRecords("a number in a record is longer than ten bytes")
    value &= 0xFFFFFFFFFFFFFFFF
    return (value >> 1) ^ -(value & 1), at


def _sized(data: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    length, at = _varint(data, at)
    if length == -1:
        return None, at
    if length < 0 or at + length > end:
        raise CorruptRecords("a field runs past its record")
    return data[at : at + length], at + length


def _micros(ms: int) -> int:
    """Milliseconds that do not fit as microseconds become the last moment that does."""
    return max(-_INT64_MAX, min(_INT64_MAX, ms * 1000))
