"""Produce v3-13 (v0-2 are refused). Validates each batch, appends it, answers when it is as durable as asked.

Works on the frame itself: records go from the receive buffer to the log file without a copy in Python. With acks=all
the answer waits for the in-sync replicas, at most as long as the request says; with acks=1 for nobody but our own disk,
if the topic flushes on each write. With one replica both mean the same.

Three ways in, which meet in `_produce`, once for each partition: `handle_frame`, from where a large request goes on in
turns (`_produce_in_turns`); and `handle_known_frame` for one like those before it, which appends by itself what has
nothing unusual about it. All of them ask the authorizer, the last one only when it has not said yes to such a request
since an ACL changed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.broker.access.access import Asker
from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.broker.coordinators.transactions.verification_guard import VerificationGuard, add_together
from ottla.broker.partitions.key_check import check_keys
from ottla.broker.partitions.leader_hints import endpoints_of, leader_hint
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partition_table import Keyed
from ottla.common.errors import ApiError, CloseConnection, ErrorCode
from ottla.common.ids import TopicPartition
from ottla.common.steps import Steps
from ottla.metadata.acls import Operation, ResourceType
from ottla.protocol.codec import MalformedMessage
from ottla.protocol.framing import kept
from ottla.protocol.node_endpoints import NodeEndpoint
from ottla.protocol.produce_frames import (
    PIECES_AT_ONCE,
    WITH_TOPIC_IDS,
    Layout,
    Outcome,
    Outcomes,
    Piece,
    ProduceRequest,
    Topics,
    decode_in_steps,
    encode,
    encode_in_steps,
)
from ottla.records.batch import TRANSACTIONAL_BIT
from ottla.records.transform import needs_records, prepare_records
from ottla.records.validate import HeaderFields, RecordErrors, header_if_valid, validate_batch

if TYPE_CHECKING:
    from ottla.server.client_end import Answer

logger = logging.getLogger("ottla.broker")

_PRODUCE = 0
# A larger request is written in turns.
_BYTES_AT_ONCE = 4 * 1024 * 1024

Waiting = list[tuple[list[Outcome], int, Awaitable[Outcome]]]


class _Answering(NamedTuple):
    """All that an answer depends on beside its outcomes."""

    broker: Broker
    version: int
    correlation_id: int
    listener: str


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
        to = _Answering(broker, version, context.correlation_id, context.listener)
        ask = None if broker.access is None else broker.access.of(context)
        in_turns = _produce_in_turns(broker, version, to, kept(frame), position, ask)
        return broker.turns.queue(in_turns)
    context.produce_prefix_end = broker.produce_layouts.remember(frame, version, request, topics)
    outcomes: Outcomes = []
    waiting: Waiting = []
    if broker.access is not None:
        topics, outcomes = _allowed(broker.access.of(context), _table(broker, version), request, topics)
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
    to = _Answering(broker, version, context.correlation_id, context.listener)
    if waiting:
        return _answer_later(to, request.acks, outcomes, waiting)
    return _answer(to, request.acks, outcomes)


def _table(broker: Broker, version: int) -> Keyed:
    """Where the topics of a request are looked up."""
    return broker.partitions.by_id if version >= WITH_TOPIC_IDS else broker.partitions.by_name


def _allowed(
    ask: Asker, table: Keyed, request: ProduceRequest, topics: Sequence[tuple[bytes, list[Piece]]]
) -> tuple[list[tuple[bytes, list[Piece]]], Outcomes]:
    """What may be written, and the answers to what may not."""
    allowed: list[tuple[bytes, list[Piece]]] = []
    refused: Outcomes = []
    transaction = request.transactional_id
    is_denied = transaction is not None and not ask.may(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transaction)
    for key, pieces in topics:
        name = table.name_of(key)
        if is_denied:
            code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        elif name is None:
            code = ErrorCode.UNKNOWN_TOPIC_ID
        elif not ask.may_topic(Operation.WRITE, name):
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        else:
            allowed.append((key, pieces))
            continue
        refused.append((key, [Outcome(piece.partition, code) for piece in pieces]))
    return allowed, refused


def _produce_in_turns(
    broker: Broker, version: int, to: _Answering, frame: memoryview, position: int, ask: Asker | None
) -> Steps[Answer]:
    """The same for many partitions, or many bytes."""
    try:
        request, topics = yield from decode_in_steps(frame, position, version)
    except MalformedMessage as error:
        raise CloseConnection(str(error)) from None
    outcomes: Outcomes = []
    if ask is not None:
        topics, outcomes = _allowed(ask, _table(broker, version), request, topics)
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
        return _answer(to, request.acks, outcomes)
    return (yield from encode_in_steps(version, to.correlation_id, *_hinted(to, outcomes)))


def handle_known_frame(broker: Broker, context: RequestContext, frame: memoryview) -> Answer | Awaitable[Answer] | None:
    """The common case, before anything else has looked at the frame: records for one partition, in a request like one
    that was here before. None if it is something else."""
    layout, correlation_id = broker.produce_layouts.find(frame, context.produce_prefix_end)
    if layout is None:
        return None
    records = layout.records(frame)
    if records is None:
        return None
    table = broker.partitions.by_id if layout.is_by_id else broker.partitions.by_name
    access = broker.access
    if access is not None and (layout, context.principal, context.client_host) not in access.writers:
        topics: Topics = [(layout.key, [Piece(layout.partition, records)])]
        if _allowed(access.of(context), table, layout.request, topics)[1]:
            return None
        access.remember_writer(layout, context.principal, context.client_host)
    partition = table.get(layout.key, layout.partition)
    header = None
    if partition is not None and partition.takes_plain_batches:
        now_ms = broker.clock.now_ms()
        header = header_if_valid(records, partition.rules, layout.version, now_ms)
        if header is not None and not header[5] & TRANSACTIONAL_BIT:
            try:
                base_offset = partition.append_next(records, header, now_ms)
            except ApiError as error:
                to = _Answering(broker, layout.version, correlation_id, context.listener)
                return _encode(to, [(layout.key, [_refused(partition, error)])])
            if base_offset >= 0:
                if partition.replication is not None and layout.request.acks == -1:
                    to = _Answering(broker, layout.version, correlation_id, context.listener)
                    return _answer_known_once_committed(to, partition, layout, base_offset, header)
                return layout.answer(correlation_id, base_offset, -1, partition.log.log_start_offset)
    if partition is not None and header is not None:
        done = _write(broker, layout.version, partition, layout.request, records, header, now_ms)
    else:
        done = _produce(broker, layout.version, layout.key, Piece(layout.partition, records), layout.request)
    return _answer_known(_Answering(broker, layout.version, correlation_id, context.listener), layout, done)


def _answer_known_once_committed(
    to: _Answering, partition: Partition, layout: Layout, base_offset: int, header: HeaderFields
) -> Answer | Awaitable[Answer]:
    """The usual batch of a partition with replicas: a bare future, because a task would cost as much as the append."""
    end_offset = base_offset + header[6] + 1
    if partition.log.high_watermark >= end_offset:
        return layout.answer(to.correlation_id, base_offset, -1, partition.log.log_start_offset)
    promise: asyncio.Future[Answer] = to.broker.loop.create_future()

    def done(error: Exception | None) -> None:
        if promise.done():
            return  # the client has gone
        if error is None:
            answer = layout.answer(to.correlation_id, base_offset, -1, partition.log.log_start_offset)
        else:
            answer = _encode(to, [(layout.key, [_refused(partition, error)])])
        promise.set_result(answer)

    partition.when_committed(end_offset, done, layout.request.timeout_ms)
    return promise


def _answer_known(to: _Answering, layout: Layout, done: Outcome | Awaitable[Outcome]) -> Answer | Awaitable[Answer]:
    """Of a request of a known layout whose records, or whose topic, needed a closer look."""
    if type(done) is Outcome:
        if not done.error:
            return layout.answer(to.correlation_id, done.base_offset, done.log_append_time, done.log_start_offset)
        return _encode(to, [(layout.key, [done])])
    lines = [Outcome(layout.partition)]
    waiting: Waiting = [(lines, 0, done)]  # type: ignore[list-item]
    return _answer_later(to, layout.request.acks, [(layout.key, lines)], waiting)


async def _answer_later(to: _Answering, acks: int, outcomes: Outcomes, waiting: Waiting) -> Answer:
    await _all_done(waiting)
    return _answer(to, acks, outcomes)


async def _all_done(waiting: Waiting) -> None:
    done = await asyncio.gather(*(promise for _, _, promise in waiting))
    for (lines, place, _), outcome in zip(waiting, done, strict=True):
        lines[place] = outcome


def _answer(to: _Answering, acks: int, outcomes: Outcomes) -> Answer:
    if acks == 0:
        if any(line.error for _, lines in outcomes for line in lines):
            # As Kafka: the only way to tell such a producer that something is wrong.
            raise CloseConnection("a produce request with acks=0 failed")
        return None
    return _encode(to, outcomes)


def _encode(to: _Answering, outcomes: Outcomes) -> bytes:
    return encode(to.version, to.correlation_id, *_hinted(to, outcomes))


def _hinted(to: _Answering, outcomes: Outcomes) -> tuple[Outcomes, Sequence[NodeEndpoint]]:
    """Whoever came to the wrong broker hears which is the right one."""
    leaders = set()
    for key, lines in outcomes:
        for place, line in enumerate(lines):
            if line.error:
                table = _table(to.broker, to.version)
                _count_failure(to.broker, table.get(key, line.partition), line)
                hint = leader_hint(table, line.error, key, line.partition)
                if hint is not None:
                    leaders.add(hint[0])
                    lines[place] = line._replace(current_leader=hint)
    return outcomes, endpoints_of(to.broker, leaders, to.listener) if leaders else ()


def _count_failure(broker: Broker, partition: Partition | None, line: Outcome) -> None:
    if broker.observer is not None:
        broker.observer.failed(_PRODUCE, line.error)
    if partition is not None:
        partition.traffic.produces_failed += 1


# --- one partition


def _produce(
    broker: Broker, version: int, key: bytes, piece: Piece, request: ProduceRequest
) -> Outcome | Awaitable[Outcome]:
    index, records = piece
    table = _table(broker, version)
    partition = table.get(key, index)
    if partition is None:
        return Outcome(index, _not_led(broker, table, key, piece))
    try:
        if partition.is_internal:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"clients may not write to {partition.topic}")
        if request.acks != 1:
            _check_acks(broker, partition, request.acks, records)
        if not records:
            raise ApiError(ErrorCode.INVALID_RECORD, "no records")
        now_ms = broker.clock.now_ms()
        header = validate_batch(records, partition.rules, version, now_ms)
    except Exception as error:
        return _refused(partition, error)
    return _write(broker, version, partition, request, records, header, now_ms)


def _write(
    broker: Broker,
    version: int,
    partition: Partition,
    request: ProduceRequest,
    records: memoryview,
    header: HeaderFields,
    now_ms: int,
) -> Outcome | Awaitable[Outcome]:
    """A batch that was found to be good."""
    try:
        guard, joining = None, None
        if header[5] & TRANSACTIONAL_BIT:
            guard = VerificationGuard(broker, partition, version, request.transactional_id, *header[9:12])
            joining = guard.admit()
        rules = partition.rules
        if joining is not None or (rules.may_open_records and needs_records(rules, header)):
            return _append_later(broker, partition, request, bytes(records), header, now_ms, guard, joining)
        return _append(partition, request, records, now_ms)
    except Exception as error:
        return _refused(partition, error)


def _not_led(broker: Broker, table: Keyed, key: bytes, piece: Piece) -> ErrorCode:
    """Why a partition cannot be written to here. It may be led here before the batch behind this one comes."""
    code, name = table.error_for(key, piece.partition), table.name_of(key)
    if code is ErrorCode.NOT_LEADER_OR_FOLLOWER and name is not None:
        log = broker.logs.get(TopicPartition(name, piece.partition))
        if log is not None and piece.records:
            log.note_refused(piece.records, code, broker.clock.now_ms())
    return code


def _check_acks(broker: Broker, partition: Partition, acks: int, records: Any) -> None:
    """Raises ApiError if too few replicas are in sync. That may be over before the batch behind this one comes."""
    try:
        partition.check_acks(acks)
    except ApiError as error:
        if error.code is ErrorCode.NOT_ENOUGH_REPLICAS and records:
            partition.log.note_refused(records, error.code, broker.clock.now_ms())
        raise


def _append(partition: Partition, request: ProduceRequest, data: Any, now_ms: int) -> Outcome | Awaitable[Outcome]:
    result = partition.append(data, now_ms)
    append_time = now_ms if partition.rules.log_append_time else -1
    if result.duplicate:
        append_time = result.timestamp
    outcome = Outcome(partition.index, 0, result.base_offset, append_time, partition.log.log_start_offset)
    if request.acks == -1:
        timeout_ms = None if partition.replication is None else request.timeout_ms
        waiting = partition.wait_for_commit(result.last_offset + 1, timeout_ms)
    else:
        waiting = partition.wait_for_own_disk(result.last_offset + 1)
    return outcome if waiting is None else _once_committed(waiting, partition, outcome)


async def _append_later(
    broker: Broker,
    partition: Partition,
    request: ProduceRequest,
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
        done = _append(partition, request, data, now_ms)
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
