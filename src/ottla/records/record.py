"""Single records inside a v2 batch: decoding and building.

The broker itself only decodes for compaction, coordinator replay and topics that ask for validation; clients' batches
pass through as bytes. `build_batch` serves the coordinators' own writes, tools and tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ottla.records.batch import (
    CODEC_MASK,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    BatchHeader,
    read_header,
    restamp_crc,
)
from ottla.records.compression import Codec, compress, decompress_buffer

# What one batch may decompress to unless the caller says otherwise.
DECOMPRESSED_BYTES_MAX = 256 * 1024 * 1024


class CorruptRecords(ValueError):
    """The records inside a batch do not add up."""


class Record(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def read_varint(data: bytes | bytearray, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
        if shift > 63:
            raise CorruptRecords("varint is longer than ten bytes")


def write_varint(out: bytearray, value: int) -> None:
    value = (value << 1) ^ (value >> 63)
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)


def _read_sized(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    length, position = read_varint(data, position)
    if length < 0:
        if length != -1:
            raise CorruptRecords(f"length {length}")
        return None, position
    if position + length > end:
        raise CorruptRecords("a field runs past its record")
    return data[position : position + length], position + length


def records_bytes(buffer: Any, position: int, header: BatchHeader, limit_bytes: int) -> bytes:
    """The records of the batch at `position`, decompressed. Raises DecompressionError."""
    return bytes(records_buffer(buffer, position, header, limit_bytes))


def records_buffer(buffer: Any, position: int, header: BatchHeader, limit_bytes: int) -> bytes | bytearray:
    """The same without a copy."""
    raw = memoryview(buffer)[position + HEADER_SIZE : position + header.size]
    return decompress_buffer(Codec(header.codec), raw, limit_bytes)


def read_records(buffer: Any, position: int = 0, limit_bytes: int = DECOMPRESSED_BYTES_MAX) -> Iterator[Record]:
    """Records of one batch, in order. Raises CorruptRecords or DecompressionError."""
    header = read_header(buffer, position)
    data = records_bytes(buffer, position, header, limit_bytes)
    stamp = header.max_timestamp if header.uses_log_append_time else None
    at = 0
    try:
        for _ in range(header.record_count):
            length, at = read_varint(data, at)
            end = at + length
            if length < 0 or end > len(data):
                raise CorruptRecords("a record runs past its batch")
            delta_ms, at = read_varint(data, at + 1)
            delta_offset, at = read_varint(data, at)
            key, at = _read_sized(data, at, end)
            value, at = _read_sized(data, at, end)
            headers, at = _read_headers(data, at, end)
            if at != end:
                raise CorruptRecords("a record has bytes left over")
            timestamp = header.base_timestamp + delta_ms if stamp is None else stamp
            yield Record(header.base_offset + delta_offset, timestamp, key, value, headers)
    except IndexError:
        raise CorruptRecords("the batch ends inside a record") from None
    if at != len(data):
        raise CorruptRecords("the batch has bytes left over")


def _read_headers(data: bytes, at: int, end: int) -> tuple[tuple[tuple[str, bytes | None], ...], int]:
    count, at = read_varint(data, at)
    if count == 0:
        return (), at
    if count < 0 or count > end - at:
        raise CorruptRecords(f"{count} headers")
    headers = []
    for _ in range(count):
        name, at = _read_sized(data, at, end)
        if name is None:
            raise CorruptRecords("a header without a key")
        value, at = _read_sized(data, at, end)
        try:
            headers.append((name.decode(), value))
        except UnicodeDecodeError:
            raise CorruptRecords("a header key is not UTF-8") from None
    return tuple(headers), at


def encode_record(out: bytearray, record: Record, base_offset: int, base_timestamp: int) -> None:
    """Append one record, length first, as it stands inside a batch."""
    offset, timestamp, key, value, headers = record
    if offset == base_offset and timestamp == base_timestamp:  # the first one, and mostly the only one
        body = bytearray(3)
    else:
        body = bytearray(1)  # record attributes: none are defined
        write_varint(body, timestamp - base_timestamp)
        write_varint(body, offset - base_offset)
    _write_sized(body, key)
    _write_sized(body, value)
    if headers:
        write_varint(body, len(headers))
        for name, content in headers:
            _write_sized(body, name.encode())
            _write_sized(body, content)
    else:
        body.append(0)
    write_varint(out, len(body))
    out += body


def _write_sized(out: bytearray, field: bytes | None) -> None:
    if field is None:
        out.append(1)  # varint -1
    else:
        write_varint(out, len(field))
        out += field


def build_batch(
    records: Sequence[Record],
    *,
    codec: Codec = Codec.NONE,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    leader_epoch: int = -1,
    attributes: int = 0,
    base_offset: int | None = None,
    base_timestamp: int | None = None,
    last_offset: int | None = None,
) -> bytearray:
    """One batch of these records. Offsets may have gaps, and `last_offset` may lie past the last record, as after
    compaction; with no records at all it is what remains of a cleaned batch."""
    base = base_offset if base_offset is not None else records[0].offset
    first_ms = base_timestamp if base_timestamp is not None else records[0].timestamp
    max_ms = max([record.timestamp for record in records], default=NO_TIMESTAMP)
    last = last_offset if last_offset is not None else records[-1].offset
    body = bytearray()
    for record in records:
        encode_record(body, record, base, first_ms)
    return assemble_batch(
        compress(codec, body) if codec else body,
        attributes=(attributes & ~CODEC_MASK) | codec,
        base_offset=base,
        leader_epoch=leader_epoch,
        last_offset_delta=last - base,
        base_timestamp=first_ms,
        max_timestamp=max_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        count=len(records),
    )


def assemble_batch(
    body: Any,
    *,
    attributes: int,
    base_offset: int,
    leader_epoch: int,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    count: int,
) -> bytearray:
    """Put a header before records that are encoded (and compressed) already."""
    size = HEADER_SIZE + len(body)
    out = bytearray(HEADER_SIZE)
    HEADER.pack_into(
        out,
        0,
        base_offset,
        size - LOG_OVERHEAD,
        leader_epoch,
        2,
        0,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    )
    out += body
    restamp_crc(out, 0, size)
    return out


def iterate_batches(buffer: Any, start: int = 0, end: int | None = None) -> Iterable[tuple[int, BatchHeader]]:
    """(position, header) of each complete batch in the buffer; stops before one that is cut off."""
    position = start
    limit = len(buffer) if end is None else end
    while position + HEADER_SIZE <= limit:
        header = read_header(buffer, position)
        if header.length < HEADER_SIZE - LOG_OVERHEAD or position + header.size > limit:
            return
        yield position, header
        position += header.size
