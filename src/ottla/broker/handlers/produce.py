"""Produce v3-13 (v0-2 are refused). Validates each batch, appends it, answers when it is as durable as asked.

Works on the frame itself: records go from the receive buffer to the log file without a copy in Python. On one node
acks=1 and acks=all mean the same unless the topic flushes on each write; then the answer waits for the disk.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from functools import partial
from typing import TYPE_CHECKING, Any

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.broker.coordinators.verification_guard import VerificationGuard, add_together
from ottla.broker.partitions.key_check import check_keys
from ottla.broker.partitions.partition import Partition
from ottla.common.errors import ApiError, CloseConnection, ErrorCode
from ottla.common.steps import Steps
from ottla.protocol.codec import MalformedMessage
from ottla.protocol.framing import kept
from ottla.protocol.produce_frames import (
    PIECES_AT_ONCE,
    WITH_TOPIC_IDS,
    Layout,
    Outcome,
    Outcomes,
    Piece,
    ProduceRequest,
    decode_in_steps,
    encode,
    encode_in_steps,
)
from ottla.records.batch import TRANSACTIONAL_BIT
from ottla.records.transform import needs_records, prepare_records
from ottla.records.validate import HeaderFields, RecordErrors, header_if_valid, validate_batch

if TYPE_CHECKING:
    from ottla.server.connection import Answer

logger = logging.getLogger("ottla.broker")

# A larger request is written in turns.
_BYTES_AT_ONCE = 4 * 1024 * 1024

Waiting = list[tuple[list[Outcome], int, Awaitable[Outcome]]]


def handle_frame(
    broker: Broker, context: RequestContext, frame: memoryview, position: int
) -> Answer | Awaitable[Answer]:
    version = context.version
    if version < 3:
        raise MalformedMessage("produce versions below 3 are not served")
    decoding = decode_in_steps(frame, position, version)
    try:
        next(decoding)
    except StopIteration as end:
        request, topics = end.value
    else:
        topics = None
    if topics is None or len(frame) > _BYTES_AT_ONCE:
        in_turns = _produce_in_turns(broker, version, context.correlation_id, kept(frame), position)
        return broker.turns.queue(in_turns)
    context.produce_prefix_end = broker.produce_layouts.remember(frame, version, request, topics)
    outcomes: Outcomes = []
    waiting: Waiting = []
    add_together(broker, version, request, topics)
    for key, pieces in topics:
        lines: list[Outcome] = []
        for piece in pieces:
            done = _produce(broker, version, key, piece, request)
            if not isinstance(done, Outcome):
                waiting.append((lines, len(lines), done))
                done = Outcome(piece.partition)
            lines.append(done)
        outcomes.append((key, lines))
    if waiting:
        return _answer_later(version, context.correlation_id, request.acks, outcomes, waiting)
    return _answer(version, context.correlation_id, request.acks, outcomes)


def _produce_in_turns(
    broker: Broker, version: int, correlation_id: int, frame: memoryview, position: int
) -> Steps[Answer]:
    """The same for many partitions, or many bytes."""
    try:
        request, topics = yield from decode_in_steps(frame, position, version)
    except MalformedMessage as error:
        raise CloseConnection(str(error)) from None
    outcomes: Outcomes = []
    add_together(broker, version, request, topics)
    for key, pieces in topics:
        lines: list[Outcome] = []
        for start in range(0, len(pieces), PIECES_AT_ONCE):
            waiting: Waiting = []
            for piece in pieces[start : start + PIECES_AT_ONCE]:
                done = _produce(broker, version, key, piece, request)
                if not isinstance(done, Outcome):
                    waiting.append((lines, len(lines), done))
                    done = Outcome(piece.partition)
                lines.append(done)
                yield None
            if waiting:
                yield _all_done(waiting)
        outcomes.append((key, lines))
    if request.acks == 0:
        return _answer(version, correlation_id, request.acks, outcomes)
    return (yield from encode_in_steps(version, correlation_id, outcomes))


def handle_known_frame(broker: Broker, context: RequestContext, frame: memoryview) -> Answer | Awaitable[Answer] | None:
    """The common case, before anything else has looked at the frame: records for one partition, in a request like one
    that was here before. None if it is something else."""
    layout, correlation_id = broker.produce_layouts.find(frame, context.produce_prefix_end)
    if layout is None:
        return None
    records = layout.records(frame)
    if records is None:
        return None
    partition = broker.partitions.get_by_key(layout.key, layout.partition)
    header = None
    if partition is not None and partition.takes_plain_batches:
        now_ms = broker.clock.now_ms()
        header = header_if_valid(records, partition.rules, layout.version, now_ms)
        if header is not None and not header[5] & TRANSACTIONAL_BIT:
            try:
                base_offset = partition.append_next(records, header, now_ms)
            except ApiError as error:
                return encode(layout.version, correlation_id, [(layout.key, [_refused(partition, error)])])
            if base_offset >= 0:
                return layout.answer(correlation_id, base_offset, -1, partition.log.log_start_offset)
    return _produce_known_layout(broker, layout, records, correlation_id, header)


def _produce_known_layout(
    broker: Broker, layout: Layout, records: memoryview, correlation_id: int, header: HeaderFields | None
) -> Answer | Awaitable[Answer]:
    """A request of a known layout whose records, or whose topic, need a closer look."""
    done = _produce(broker, layout.version, layout.key, Piece(layout.partition, records), layout.request, header)
    if type(done) is Outcome:
        if not done.error:
            return layout.answer(correlation_id, done.base_offset, done.log_append_time, done.log_start_offset)
        return encode(layout.version, correlation_id, [(layout.key, [done])])
    lines = [Outcome(layout.partition)]
    waiting: Waiting = [(lines, 0, done)]  # type: ignore[list-item]
    return _answer_later(layout.version, correlation_id, layout.request.acks, [(layout.key, lines)], waiting)


async def _answer_later(version: int, correlation_id: int, acks: int, outcomes: Outcomes, waiting: Waiting) -> Answer:
    await _all_done(waiting)
    return _answer(version, correlation_id, acks, outcomes)


async def _all_done(waiting: Waiting) -> None:
    done = await asyncio.gather(*(promise for _, _, promise in waiting))
    for (lines, place, _), outcome in zip(waiting, done, strict=True):
        lines[place] = outcome


def _answer(version: int, correlation_id: int, acks: int, outcomes: Outcomes) -> Answer:
    if acks == 0:
        if any(line.error for _, lines in outcomes for line in lines):
            # As Kafka: the only way to tell such a producer that something is wrong.
            raise CloseConnection("a produce request with acks=0 failed")
        return None
    return encode(version, correlation_id, outcomes)


# --- one partition


def _produce(
    broker: Broker, version: int, key: bytes, piece: Piece, request: ProduceRequest, header: HeaderFields | None = None
) -> Outcome | Awaitable[Outcome]:
    """`header` is that of a batch which was found to be good already: its checksum is not computed twice."""
    index, records = piece
    partition = broker.partitions.get_by_key(key, index)
    if partition is None:
        unknown_id = version >= WITH_TOPIC_IDS and not broker.partitions.knows(key)
        return Outcome(index, ErrorCode.UNKNOWN_TOPIC_ID if unknown_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    try:
        if partition.is_internal:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"clients may not write to {partition.topic}")
        if request.acks != 1:
            partition.check_acks(request.acks)
        if not records:
            raise ApiError(ErrorCode.INVALID_RECORD, "no records")
        now_ms = broker.clock.now_ms()
        rules = partition.rules
        if header is None:
            header = validate_batch(records, rules, version, now_ms)
        guard, joining = None, None
        if header[5] & TRANSACTIONAL_BIT:
            guard = VerificationGuard(broker, partition, version, request.transactional_id, *header[9:12])
            joining = guard.admit()
        if joining is not None or (rules.may_open_records and needs_records(rules, header)):
            return _append_later(broker, partition, bytes(records), header, now_ms, guard, joining)
        return _append(partition, records, now_ms)
    except Exception as error:
        return _refused(partition, error)


def _append(partition: Partition, data: Any, now_ms: int) -> Outcome | Awaitable[Outcome]:
    result = partition.append(data, now_ms)
    append_time = now_ms if partition.rules.log_append_time else -1
    if result.duplicate:
        append_time = result.timestamp
    outcome = Outcome(partition.index, 0, result.base_offset, append_time, partition.log.log_start_offset)
    waiting = partition.wait_for_commit(result.last_offset + 1)
    return outcome if waiting is None else _once_committed(waiting, partition, outcome)


async def _append_later(
    broker: Broker,
    partition: Partition,
    batch: bytes,
    header: HeaderFields,
    now_ms: int,
    guard: VerificationGuard | None,
    joining: Awaitable[None] | None,
) -> Outcome:
    """A batch that must wait: for its transaction to be written down, or for its records to be made ready."""
    try:
        if joining is not None:
            await joining
        data: Any = batch
        if needs_records(partition.rules, header):
            data = await prepare_records(
                batch, partition.rules, broker.run_in_thread, partial(check_keys, broker), broker.opened_memory
            )
        if guard is not None:
            guard.check_again()
        done = _append(partition, data, now_ms)
    except Exception as error:
        return _refused(partition, error)
    return done if isinstance(done, Outcome) else await done


async def _once_committed(waiting: Awaitable[None], partition: Partition, outcome: Outcome) -> Outcome:
    try:
        await waiting
    except Exception as error:
        return _refused(partition, error)
    return outcome


def _refused(partition: Partition, error: Exception) -> Outcome:
    """What went wrong with one partition is told of that one: the records of the others may be written."""
    if not isinstance(error, ApiError):
        logger.error("cannot append", exc_info=error, extra={"partition": f"{partition.topic}-{partition.index}"})
        storage = isinstance(error, OSError)
        error = ApiError(ErrorCode.KAFKA_STORAGE_ERROR if storage else ErrorCode.UNKNOWN_SERVER_ERROR)
    details = error.details if isinstance(error, RecordErrors) else ()
    # The log start lets a client tell that its earlier batches were deleted, not lost.
    return Outcome(partition.index, error.code, -1, -1, partition.log.log_start_offset, error.message, details)
