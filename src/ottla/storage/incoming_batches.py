"""Several batches that are about to be appended: where each begins, and whether they fit behind each other."""

from __future__ import annotations

from ottla.common.errors import ApiError, ErrorCode
from ottla.records.batch import CRC_START, HEADER, HEADER_SIZE, LOG_OVERHEAD, BatchHeader, read_header, stamp
from ottla.records.checksum import crc32c

# What is appended at a time of what a leader has sent: a millisecond's worth.
_FETCHED_BATCHES_MAX = 256


def check_fetched(data: memoryview, at: int, header: tuple[int, ...], next_offset: int) -> None:
    """Whether a leader's batch is whole, and can follow what is there."""
    end = at + header[1] + LOG_OVERHEAD
    if header[3] != 2 or end < at + HEADER_SIZE or header[6] < 0 or crc32c(data[at + CRC_START : end]) != header[4]:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, f"a batch from the leader at offset {header[0]} is damaged")
    if header[0] < next_offset:
        raise ApiError(
            ErrorCode.OFFSET_OUT_OF_RANGE, f"the log ends at {next_offset}, the leader's batch begins at {header[0]}"
        )


def fetched_batches(data: memoryview, next_offset: int, size_max: int) -> tuple[list[tuple[int, tuple[int, ...]]], int]:
    """Whole batches of a leader, each with its position and header, and where they end. Not more than a segment takes
    (`size_max`), but one at least. Raises ApiError."""
    batches: list[tuple[int, tuple[int, ...]]] = []
    at, size = 0, len(data)
    while at + HEADER_SIZE <= size and len(batches) < _FETCHED_BATCHES_MAX:
        header = HEADER.unpack_from(data, at)
        end = at + header[1] + LOG_OVERHEAD
        if end > size or (end > size_max and batches):
            break
        check_fetched(data, at, header, next_offset)
        batches.append((at, header))
        next_offset, at = header[0] + header[6] + 1, end
    return batches, at


def laid_out(buffer: bytearray, next_offset: int, leader_epoch: int | None) -> list[tuple[int, BatchHeader]]:
    """Give the batches their offsets and epoch; or, where the epoch is None, check the ones they came with."""
    batches: list[tuple[int, BatchHeader]] = []
    at = 0
    while at < len(buffer):
        header = read_header(buffer, at)
        if leader_epoch is not None:
            header = header._replace(base_offset=next_offset, leader_epoch=leader_epoch)
            stamp(buffer, at, next_offset, leader_epoch)
        elif header.base_offset < next_offset:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"the log ends at {next_offset}, the batch begins at {header.base_offset}",
            )
        batches.append((at, header))
        next_offset = header.last_offset + 1
        at += header.size
    return batches
