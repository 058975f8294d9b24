"""How a coordinator reads its partition at start-up: every batch in order.

The end of the log is looked at again when it is reached: meanwhile markers may have been added, and whoever adds one
knows that it will be read. A log that cannot be read to its end raises: a coordinator that knew only half of it would
answer with offsets of long ago, and leave decided transactions open.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from ottla.common.errors import ApiError, ErrorCode
from ottla.records.batch import BatchHeader
from ottla.records.record import iterate_batches
from ottla.storage.log import Log

_READ_BYTES = 256 * 1024


def all_batches(log: Log) -> Iterator[tuple[bytes, int, BatchHeader]]:
    """(buffer, position in it, header) of each batch. Raises ApiError or OSError."""
    offset = log.log_start_offset
    while (offset := max(offset, log.log_start_offset)) < (end := log.log_end_offset):
        part = log.read(offset, _READ_BYTES, upper_offset=end, min_one=True)
        data = os.pread(part.file, part.size, part.position) if part.size else b""
        before = offset
        for position, header in iterate_batches(data):
            # Compaction leaves gaps: the batch says where the next one may begin, not the count (KAFKA-9065).
            offset = header.last_offset + 1
            yield data, position, header
        if offset <= before:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{log.name} cannot be read on from offset {before} to {end}")
