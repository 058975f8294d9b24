"""Find a record by its time inside one batch: what ListOffsets needs of a batch that anybody wrote.

The log stores batches unopened, so this one may be a bomb, or noise behind a right header. Only the few bytes that hold
each record's time are looked at, no more of them than a sane batch has; where that fails the header must do. Both parts
take their time: `open_batch` may run in any thread, and the walk stops every few hundred records.
"""

from __future__ import annotations

from typing import Any

from ottla.common.steps import Pauses
from ottla.records.batch import BatchHeader
from ottla.records.compression import DecompressionError
from ottla.records.record import CorruptRecords, read_varint, records_buffer

# A batch of a megabyte that was compressed thirty-fold; more than a tenth of a second to walk.
PLAIN_BYTES_MAX = 32 * 1024 * 1024
_RECORDS_MAX = 200_000
_RECORDS_PER_STEP = 256


def needs_records(header: BatchHeader) -> bool:
    """Whether the header alone does not say it."""
    return not header.uses_log_append_time and 0 < header.record_count <= _RECORDS_MAX


def open_batch(batch: Any, header: BatchHeader) -> bytes | bytearray | None:
    """The records of the batch, if they can be had."""
    try:
        return records_buffer(batch, 0, header, PLAIN_BYTES_MAX)
    except DecompressionError:
        return None


def first_record_since(
    records: bytes | bytearray | None, header: BatchHeader, timestamp: int, start_offset: int
) -> Pauses[tuple[int, int] | None]:
    """(time, offset) of the first record at or after `timestamp`; None if that lies below `start_offset` alone, or if
    compaction took all records of the batch and left it as the memory of its producer.

    The batch's header says that it holds such a record. If the records cannot be read, or the header lied, the answer
    is as far as the header goes: the batch's first offset, or its last.
    """
    if header.record_count == 0:
        return None
    if records is None:
        return header.max_timestamp, max(header.base_offset, start_offset)
    below = False
    at = 0
    try:
        for number in range(1, header.record_count + 1):
            length, at = read_varint(records, at)
            delta_ms, delta_at = read_varint(records, at + 1)
            at += length
            if length < 0 or at > len(records):
                raise CorruptRecords("a record runs past its batch")
            if header.base_timestamp + delta_ms >= timestamp:
                offset = header.base_offset + read_varint(records, delta_at)[0]
                if offset >= start_offset:
                    return header.base_timestamp + delta_ms, offset
                below = True
            if number % _RECORDS_PER_STEP == 0:
                yield
    except (CorruptRecords, IndexError):
        return header.max_timestamp, max(header.base_offset, start_offset)
    return None if below else (header.max_timestamp, header.last_offset)
