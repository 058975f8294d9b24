"""Find a record by its time inside one batch: what ListOffsets needs, on the event loop, of a batch that anybody wrote.

The log stores batches unopened, so this one may be a bomb, or noise behind a right header. Only the few bytes that hold
each record's time are looked at, no more of them than a sane batch has; where that fails the header must do.
"""

from __future__ import annotations

from typing import Any

from ottla.records.batch import BatchHeader
from ottla.records.compression import DecompressionError
from ottla.records.record import CorruptRecords, read_varint, records_bytes

# A batch of a megabyte that was compressed thirty-fold; more than a tenth of a second to walk.
_PLAIN_BYTES_MAX = 32 * 1024 * 1024
_RECORDS_MAX = 200_000


def first_record_since(batch: Any, header: BatchHeader, timestamp: int, start_offset: int) -> tuple[int, int] | None:
    """(time, offset) of the first record at or after `timestamp`; None if that lies below `start_offset` alone.

    The batch's header says that it holds such a record. If the records cannot be read, or the header lied, the answer
    is as far as the header goes: the batch's first offset, or its last.
    """
    if header.uses_log_append_time:
        return header.max_timestamp, max(header.base_offset, start_offset)
    if header.record_count > _RECORDS_MAX:
        return header.max_timestamp, max(header.base_offset, start_offset)
    below = False
    try:
        data = records_bytes(batch, 0, header, _PLAIN_BYTES_MAX)
        at = 0
        for _ in range(header.record_count):
            length, at = read_varint(data, at)
            delta_ms, delta_at = read_varint(data, at + 1)
            at += length
            if length < 0 or at > len(data):
                raise CorruptRecords("a record runs past its batch")
            if header.base_timestamp + delta_ms >= timestamp:
                offset = header.base_offset + read_varint(data, delta_at)[0]
                if offset >= start_offset:
                    return header.base_timestamp + delta_ms, offset
                below = True
    except (DecompressionError, CorruptRecords, IndexError):
        return header.max_timestamp, max(header.base_offset, start_offset)
    return None if below else (header.max_timestamp, header.last_offset)
