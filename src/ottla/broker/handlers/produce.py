"""Produce v3-13 (v0-2 are refused). Validates each batch, appends it, answers when it is as durable as asked.

Works on the frame itself: records go from the receive buffer to the log file without a copy in Python. On one node
acks=1 and acks=all mean the same unless the topic flushes on each write; then the answer waits for the disk.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.broker.context import RequestContext
from ottla.broker.partitions import Partition
from ottla.common.errors import ApiError, CloseConnection, ErrorCode
from ottla.protocol.codec import MalformedMessage, read_uvarint
from ottla.protocol.framing import response_prefix
from ottla.records.transform import needs_records, prepare_records
from ottla.records.validate import RecordErrors, validate_batch

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.server.connection import Answer

_FLEXIBLE = 9
_WITH_TOPIC_IDS = 13
_WITH_RECORD_ERRORS = 8
_WITH_LOG_START = 5

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_ACKS_TIMEOUT = struct.Struct(">hi")
_OK_V5 = struct.Struct(">ihqqq")
_OK_V3 = struct.Struct(">ihqq")


class Piece(NamedTuple):
    """One partition's records in a request."""

    partition: int
    records: memoryview | None


class Outcome(NamedTuple):
    """One partition's line in the answer."""

    partition: int
    error: int = 0
    base_offset: int = -1
    log_append_time: int = -1
    log_start_offset: int = -1
    message: str | None = None
    record_errors: tuple[tuple[int, str], ...] = ()


Topics = list[tuple[bytes, list[Piece]]]
Outcomes = list[tuple[bytes, list[Outcome]]]


def handle_frame(
    broker: Broker, context: RequestContext, frame: memoryview, position: int
) -> Answer | Awaitable[Answer]:
    version, correlation_id = context.version, context.correlation_id
    if version < 3:
        raise MalformedMessage("produce versions below 3 are not served")
    try:
        acks, topics = _decode(frame, position, version)
    except (struct.error, IndexError):
        raise MalformedMessage(f"Produce v{version} ends too early") from None
    waiting: list[tuple[list[Outcome], int, Awaitable[Outcome]]] = []
    outcomes: Outcomes = []
    for key, pieces in topics:
        lines: list[Outcome] = []
        for piece in pieces:
            done = _produce(broker, context, key, piece, acks)
            if not isinstance(done, Outcome):
                waiting.append((lines, len(lines), done))
                done = Outcome(piece.partition)
            lines.append(done)
        outcomes.append((key, lines))
    if waiting:
        return _answer_later(broker, context.version, correlation_id, acks, outcomes, waiting)
    return _answer(version, correlation_id, acks, outcomes)


async def _answer_later(
    broker: Broker,
    version: int,
    correlation_id: int,
    acks: int,
    outcomes: Outcomes,
    waiting: list[tuple[list[Outcome], int, Awaitable[Outcome]]],
) -> Answer:
    done = await asyncio.gather(*(one for _, _, one in waiting))
    for (lines, place, _), outcome in zip(waiting, done, strict=True):
        lines[place] = outcome
    return _answer(version, correlation_id, acks, outcomes)


def _answer(version: int, correlation_id: int, acks: int, outcomes: Outcomes) -> Answer:
    if acks == 0:
        if any(line.error for _, lines in outcomes for line in lines):
            # As Kafka: the only way to tell such a producer that something is wrong.
            raise CloseConnection("a produce request with acks=0 failed")
        return None
    return _encode(version, correlation_id, outcomes)


# --- one partition


def _produce(
    broker: Broker, context: RequestContext, key: bytes, piece: Piece, acks: int
) -> Outcome | Awaitable[Outcome]:
    partition = broker.partitions.get_by_key(key, piece.partition)
    if partition is None:
        unknown_id = context.version >= _WITH_TOPIC_IDS and not broker.partitions.knows(key)
        code = ErrorCode.UNKNOWN_TOPIC_ID if unknown_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return Outcome(piece.partition, code)
    try:
        if partition.is_internal:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"clients may not write to {partition.topic}")
        if acks not in (-1, 0, 1):
            raise ApiError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks is -1, 0 or 1, not {acks}")
        if acks == -1 and partition.config.min_insync_replicas > 1:
            raise ApiError(ErrorCode.NOT_ENOUGH_REPLICAS, "min.insync.replicas asks for more brokers than there are")
        if not piece.records:
            raise ApiError(ErrorCode.INVALID_RECORD, "no records")
        now_ms = broker.clock.now_ms()
        header = validate_batch(piece.records, partition.rules, context.version, now_ms)
        if needs_records(partition.rules, header):
            return _prepare_then_append(broker, partition, bytes(piece.records), now_ms)
        return _append(broker, partition, piece.records, now_ms)
    except ApiError as error:
        return _refused(partition, error)


async def _prepare_then_append(broker: Broker, partition: Partition, batch: bytes, now_ms: int) -> Outcome:
    try:
        data = await prepare_records(batch, partition.rules, broker.run_in_thread)
        done = _append(broker, partition, data, now_ms)
    except ApiError as error:
        return _refused(partition, error)
    return done if isinstance(done, Outcome) else await done


def _append(broker: Broker, partition: Partition, data: Any, now_ms: int) -> Outcome | Awaitable[Outcome]:
    log = partition.log
    result = log.append(data, leader_epoch=partition.leader_epoch, now_ms=now_ms)
    outcome = Outcome(
        partition.index,
        0,
        result.base_offset,
        now_ms if partition.rules.log_append_time else -1,
        log.log_start_offset,
    )
    if result.flush_due:
        return _flush_then(broker, partition, outcome, len(data))
    partition.advance_high_watermark(len(data))
    return outcome


async def _flush_then(broker: Broker, partition: Partition, outcome: Outcome, size: int) -> Outcome:
    try:
        await partition.log.flush_async()  # type: ignore[attr-defined]
    except ApiError as error:
        return _refused(partition, error)
    partition.advance_high_watermark(size)
    return outcome


def _refused(partition: Partition, error: ApiError) -> Outcome:
    details = error.details if isinstance(error, RecordErrors) else ()
    # The log start lets a client tell that its earlier batches were deleted, not lost.
    return Outcome(partition.index, error.code, -1, -1, partition.log.log_start_offset, error.message, details)


# --- bytes


def _decode(frame: memoryview, p: int, version: int) -> tuple[int, Topics]:
    flexible = version >= _FLEXIBLE
    size = len(frame)
    if flexible:
        length, p = read_uvarint(frame, p)
        p += max(length - 1, 0)
    else:
        (length,) = _INT16.unpack_from(frame, p)
        p += 2 + max(length, 0)
    acks, _timeout_ms = _ACKS_TIMEOUT.unpack_from(frame, p)
    count, p = _array_length(frame, p + 6, flexible, size)
    topics: Topics = []
    for _ in range(count):
        key, p = _topic_key(frame, p, version, size)
        partition_count, p = _array_length(frame, p, flexible, size)
        pieces: list[Piece] = []
        for _ in range(partition_count):
            (index,) = _INT32.unpack_from(frame, p)
            p += 4
            if flexible:
                length, p = read_uvarint(frame, p)
                length -= 1
            else:
                (length,) = _INT32.unpack_from(frame, p)
                p += 4
            if length < 0:
                pieces.append(Piece(index, None))
            else:
                end = p + length
                if end > size:
                    raise MalformedMessage("records run past the end of the request")
                pieces.append(Piece(index, frame[p:end]))
                p = end
            if flexible:
                p = _skip_tags(frame, p)
        if flexible:
            p = _skip_tags(frame, p)
        topics.append((key, pieces))
    return acks, topics


def _array_length(frame: memoryview, p: int, flexible: bool, size: int) -> tuple[int, int]:
    if flexible:
        count, p = read_uvarint(frame, p)
        count -= 1
    else:
        (count,) = _INT32.unpack_from(frame, p)
        p += 4
    if count < 0 or count > size - p:
        raise MalformedMessage(f"array of {count} elements in {size - p} bytes")
    return count, p


def _topic_key(frame: memoryview, p: int, version: int, size: int) -> tuple[bytes, int]:
    if version >= _WITH_TOPIC_IDS:
        end = p + 16
    elif version >= _FLEXIBLE:
        length, p = read_uvarint(frame, p)
        end = p + length - 1
    else:
        (length,) = _INT16.unpack_from(frame, p)
        p += 2
        end = p + length
    if end < p or end > size:
        raise MalformedMessage("topic runs past the end of the request")
    return bytes(frame[p:end]), end


def _skip_tags(frame: memoryview, p: int) -> int:
    count = frame[p]
    p += 1
    if count:
        count, p = read_uvarint(frame, p - 1)
        for _ in range(count):
            _, p = read_uvarint(frame, p)
            length, p = read_uvarint(frame, p)
            p += length
    return p


def _encode(version: int, correlation_id: int, outcomes: Outcomes) -> bytes:
    flexible = version >= _FLEXIBLE
    out = bytearray()
    _write_length(out, len(outcomes), flexible)
    for key, lines in outcomes:
        if version >= _WITH_TOPIC_IDS:
            out += key
        elif flexible:
            _write_length(out, len(key), True)
            out += key
        else:
            out += _INT16.pack(len(key))
            out += key
        _write_length(out, len(lines), flexible)
        for line in lines:
            _encode_line(out, line, version, flexible)
        if flexible:
            out.append(0)
    out += b"\x00\x00\x00\x00\x00" if flexible else b"\x00\x00\x00\x00"  # throttle time, tags
    return response_prefix(len(out), correlation_id, flexible) + out


def _encode_line(out: bytearray, line: Outcome, version: int, flexible: bool) -> None:
    if version >= _WITH_LOG_START:
        out += _OK_V5.pack(line.partition, line.error, line.base_offset, line.log_append_time, line.log_start_offset)
    else:
        out += _OK_V3.pack(line.partition, line.error, line.base_offset, line.log_append_time)
    if version >= _WITH_RECORD_ERRORS:
        _write_length(out, len(line.record_errors), flexible)
        for batch_index, message in line.record_errors:
            out += _INT32.pack(batch_index)
            _write_text(out, message, flexible)
            if flexible:
                out.append(0)
        _write_text(out, line.message, flexible)
    if flexible:
        out.append(0)


def _write_length(out: bytearray, length: int, flexible: bool) -> None:
    if not flexible:
        out += _INT32.pack(length)
        return
    length += 1
    while length > 0x7F:
        out.append((length & 0x7F) | 0x80)
        length >>= 7
    out.append(length)


def _write_text(out: bytearray, text: str | None, flexible: bool) -> None:
    if text is None:
        out += b"\x00" if flexible else b"\xff\xff"
        return
    raw = text.encode()
    if flexible:
        _write_length(out, len(raw), True)
    else:
        out += _INT16.pack(len(raw))
    out += raw
