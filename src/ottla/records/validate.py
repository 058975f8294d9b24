"""What a produced batch must be before it may enter a log: Kafka's rules, checked on the header where possible.

The records inside stay unread unless the topic asks for it (keys on a compacted topic, recompression). Where a rule
needs the batch to change (log-append time), the caller's buffer is patched in place and its CRC renewed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ottla.common.errors import ApiError, ErrorCode
from ottla.records.batch import (
    CODEC_MASK,
    CRC_START,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    BatchHeader,
    compute_crc,
    read_header,
    set_log_append_time,
)
from ottla.records.checksum import crc32c

_PRODUCE_VERSION_WITH_ZSTD = 7
ZSTD = 4

# Anything but a codec and the transactional bit.
_UNUSUAL_BITS = ~(CODEC_MASK | TRANSACTIONAL_BIT)

# What `length` says of a batch without records; and the smallest length that Kafka takes for a length at all.
_HEADER_LENGTH = HEADER_SIZE - LOG_OVERHEAD
_LENGTH_MIN = 14

_unpack = HEADER.unpack_from

# The fields of BatchHeader, in its order; a plain tuple where speed matters.
HeaderFields = tuple[int, int, int, int, int, int, int, int, int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Rules:
    """The part of a topic's settings that validation needs."""

    max_message_bytes: int
    segment_bytes: int
    log_append_time: bool
    timestamp_before_max_ms: int
    timestamp_after_max_ms: int
    keys_required: bool = False
    codec_name: str = "producer"
    codec_levels: Mapping[int, int] = field(default_factory=dict)
    # What the records of one batch may decompress to before we call it a bomb.
    decompressed_bytes_max: int = 128 * 1024 * 1024
    size_max: int = field(init=False)
    # Whether a batch may have to be opened at all.
    may_open_records: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size_max", min(self.max_message_bytes, self.segment_bytes))
        object.__setattr__(self, "may_open_records", self.keys_required or self.codec_name != "producer")


class RecordErrors(ApiError):
    """Single records of a batch were refused; the whole batch is not written."""

    def __init__(self, message: str, details: tuple[tuple[int, str], ...]) -> None:
        super().__init__(ErrorCode.INVALID_RECORD, message)
        self.details = details


def validate_batch(data: Any, rules: Rules, produce_version: int, now_ms: int) -> HeaderFields:
    """Check the one batch that `data` must consist of; raises ApiError with Kafka's code."""
    return header_if_valid(data, rules, produce_version, now_ms) or _explain(data, rules, produce_version, now_ms)


def header_if_valid(data: Any, rules: Rules, produce_version: int, now_ms: int) -> HeaderFields | None:
    """One condition lets the usual good batch through; `_explain` finds what is wrong with, or special about, the
    rest."""
    size = len(data)
    if HEADER_SIZE <= size <= rules.size_max:
        header: HeaderFields = _unpack(data)
        _, length, _, magic, crc, attributes, delta, first_ms, last_ms, producer_id, epoch, sequence, count = header
        if (
            length + LOG_OVERHEAD == size
            and magic == 2
            and 0 < count == delta + 1
            and not attributes & _UNUSUAL_BITS
            and (attributes & 7 < ZSTD or (attributes & 7 == ZSTD and produce_version >= _PRODUCE_VERSION_WITH_ZSTD))
            and ((producer_id >= 0 <= epoch and sequence >= 0) or (producer_id == -1 and attributes <= ZSTD))
            and now_ms - first_ms <= rules.timestamp_before_max_ms
            and last_ms - now_ms <= rules.timestamp_after_max_ms
            and not rules.log_append_time
            and crc32c(data[CRC_START:]) == crc
            and (attributes or count * 7 <= length - _HEADER_LENGTH)
            and first_ms >= 0
        ):
            return header
    return None


def _explain(data: Any, rules: Rules, produce_version: int, now_ms: int) -> HeaderFields:
    size = len(data)
    _check_shape(data)
    header = read_header(data)
    check_size(size, rules)
    if compute_crc(data, 0, size) != header.crc:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, "the batch does not match its CRC")
    _check_counts(header)
    _check_attributes(header, produce_version)
    if rules.log_append_time:
        return _stamp_append_time(data, header, now_ms)
    _check_timestamps(header, rules, now_ms)
    return header


def check_size(size: int, rules: Rules) -> None:
    if size > rules.max_message_bytes:
        raise ApiError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the batch has {size} bytes, max.message.bytes of the topic is {rules.max_message_bytes}",
        )
    if size > rules.segment_bytes:
        raise ApiError(
            ErrorCode.RECORD_LIST_TOO_LARGE, f"the batch has {size} bytes, a segment holds {rules.segment_bytes}"
        )


def _check_shape(data: Any) -> None:
    """Exactly one batch of magic 2, in the order in which Kafka looks at the bytes: a code that clients retry
    (CORRUPT_MESSAGE) is for bytes that may have suffered on the way, the final one for what they meant to send."""
    size = len(data)
    length = int.from_bytes(data[8:12], "big", signed=True) if size >= LOG_OVERHEAD else _LENGTH_MIN
    if length < _LENGTH_MIN:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, f"no batch has a length of {length}")
    magic = data[MAGIC_OFFSET] if size > MAGIC_OFFSET else 2
    if magic > 2:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, f"there are no record batches of magic {magic}")
    if size < LOG_OVERHEAD or size < length + LOG_OVERHEAD:
        raise ApiError(ErrorCode.INVALID_RECORD, "the batch is cut short")
    if magic < 2:
        raise ApiError(ErrorCode.INVALID_RECORD, f"produce requests carry record batches of magic 2, not {magic}")
    if length < _HEADER_LENGTH:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, f"a batch is longer than {length} bytes")
    if size > length + LOG_OVERHEAD:
        raise ApiError(ErrorCode.INVALID_RECORD, "a produce request carries exactly one batch for each partition")


def _check_counts(header: BatchHeader) -> None:
    if header.record_count <= 0 or header.record_count != header.last_offset_delta + 1:
        raise ApiError(
            ErrorCode.INVALID_RECORD,
            f"{header.record_count} records cannot span {header.last_offset_delta + 1} offsets",
        )
    # The smallest record takes seven bytes; compressed ones can be smaller than their count.
    room = header.size - HEADER_SIZE
    if not header.codec and header.record_count * 7 > room:
        raise ApiError(ErrorCode.INVALID_RECORD, f"{header.record_count} records cannot be in {room} bytes")


def _check_attributes(header: BatchHeader, produce_version: int) -> None:
    if header.codec > ZSTD:
        raise ApiError(ErrorCode.INVALID_RECORD, f"there is no compression codec {header.codec}")
    if header.codec == ZSTD and produce_version < _PRODUCE_VERSION_WITH_ZSTD:
        raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs produce version 7 or newer")
    if header.is_control:
        raise ApiError(ErrorCode.INVALID_RECORD, "clients may not write control batches")
    if header.producer_id >= 0:
        if header.producer_epoch < 0 or header.base_sequence < 0:
            raise ApiError(ErrorCode.INVALID_RECORD, "an idempotent batch has an epoch and a sequence")
    elif header.is_transactional:
        raise ApiError(ErrorCode.INVALID_RECORD, "a transactional batch has a producer id")


def _check_timestamps(header: BatchHeader, rules: Rules, now_ms: int) -> None:
    if header.uses_log_append_time:
        raise ApiError(ErrorCode.INVALID_TIMESTAMP, "clients may not set log-append time")
    latest, earliest = header.max_timestamp, header.base_timestamp
    if latest != NO_TIMESTAMP and latest - now_ms > rules.timestamp_after_max_ms:
        raise ApiError(
            ErrorCode.INVALID_TIMESTAMP,
            f"timestamp {latest} is more than message.timestamp.after.max.ms ({rules.timestamp_after_max_ms}) ahead",
        )
    if earliest != NO_TIMESTAMP and now_ms - earliest > rules.timestamp_before_max_ms:
        raise ApiError(
            ErrorCode.INVALID_TIMESTAMP,
            f"timestamp {earliest} is more than message.timestamp.before.max.ms ({rules.timestamp_before_max_ms}) old",
        )


def _stamp_append_time(data: Any, header: BatchHeader, now_ms: int) -> BatchHeader:
    """KIP-32: the broker's time replaces the maximum; readers then ignore the records' own deltas."""
    set_log_append_time(data, 0, header, now_ms)
    return read_header(data)
