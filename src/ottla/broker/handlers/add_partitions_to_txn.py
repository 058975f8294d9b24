"""AddPartitionsToTxn v0-5. Partitions that a transaction is about to write to; all of a request's are added, or none.

Up to v3 it is a client's request for one transaction; from v4 on brokers ask for several at once, or only whether
partitions belong (`verify_only`). Works on the frame itself: see `protocol.add_partitions_frames`. A large request is
worked on in turns.
"""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Generator, Sequence
from typing import TYPE_CHECKING, TypeVar

from ottla.broker.context import RequestContext
from ottla.broker.transaction_errors import for_version
from ottla.common.errors import ApiError, CloseConnection, ErrorCode
from ottla.common.ids import TopicPartition
from ottla.common.steps import Steps, run
from ottla.metadata.image import INTERNAL_TOPICS
from ottla.protocol.add_partitions_frames import BATCHED, FLEXIBLE, Addition, Result, Topic, decode, encode
from ottla.protocol.codec import MalformedMessage
from ottla.protocol.framing import response_prefix

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.server.connection import Answer

T = TypeVar("T")
# Stops between small steps.
InTurns = Generator[None, None, T]

_KNOWS_FENCED_SINCE = 2
# What a client's AddPartitionsToTxn says about the protocol it speaks.
_CLASSIC, _V2 = 0, 2
# A request up to this size is dealt with at once.
_SMALL_BYTES = 32 * 1024
# Partitions of one topic that are looked at between two stops.
_PARTITIONS_AT_ONCE = 1024


def handle_frame(
    broker: Broker, context: RequestContext, frame: memoryview, position: int
) -> Answer | Awaitable[Answer]:
    if len(frame) > _SMALL_BYTES:
        frame = memoryview(bytes(frame))  # the connection's buffer is ours only until we wait
    return run(_add_all(broker, context.version, context.correlation_id, frame, position))


def _add_all(broker: Broker, version: int, correlation_id: int, frame: memoryview, position: int) -> Steps[Answer]:
    is_large = len(frame) > _SMALL_BYTES
    asked: list[Addition] = []
    try:
        yield from _all_turns(broker, is_large, decode(frame, position, version, asked))
    except MalformedMessage as error:
        raise CloseConnection(str(error)) from None
    results = []
    for one in asked:
        rows = yield from _add(broker, version, is_large, one)
        results.append((one.transactional_id, rows))
    body = bytearray()
    yield from _all_turns(broker, is_large, encode(version, results, body))
    return response_prefix(len(body), correlation_id, version >= FLEXIBLE) + body


def _all_turns(broker: Broker, is_large: bool, work: InTurns[T]) -> Steps[T]:
    if is_large:
        result: T = yield broker.turns.run(work)
        return result
    while True:
        try:
            next(work)
        except StopIteration as done:
            result = done.value
            return result


def _add(broker: Broker, version: int, is_large: bool, asked: Addition) -> Steps[list[Result]]:
    partitions: dict[TopicPartition, None] = {}
    # Up to v3 it is a client that asks, and our own topics are not a client's to write to.
    closed = INTERNAL_TOPICS if version < BATCHED else ()
    refused = yield from _all_turns(broker, is_large, _collect_all(broker, asked, closed, partitions))
    if refused is not None:
        return refused
    name, producer_id, epoch = asked[:3]
    try:
        if not name:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        if asked.verify_only:
            rows = yield from _all_turns(broker, is_large, _verify_all(broker, asked))
            yield from broker.transactions.durable(broker.transactions.shard(name))
            return rows
        client_version = _V2 if version >= BATCHED else _CLASSIC
        yield from broker.transactions.add_partitions(name, producer_id, epoch, partitions, client_version)
        code = ErrorCode.NONE
    except ApiError as error:
        code = for_version(error.code, version, _KNOWS_FENCED_SINCE)
    return [Result(topic, code) for topic in asked.topics]


def _collect_all(
    broker: Broker, asked: Addition, closed: Collection[str], into: dict[TopicPartition, None]
) -> InTurns[list[Result] | None]:
    """Take up the partitions. If some are not there or closed: the answer, for none will be added."""
    any_refused = False
    refused: list[Result] = []
    for topic in asked.topics:
        codes: ErrorCode | Sequence[int]
        if topic.name.decode(errors="replace") in closed:
            codes = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        else:
            codes = yield from _collect(broker, topic, into)
        any_refused = any_refused or bool(codes)
        refused.append(Result(topic, codes or ErrorCode.OPERATION_NOT_ATTEMPTED))
    return refused if any_refused else None


def _collect(broker: Broker, topic: Topic, into: dict[TopicPartition, None]) -> InTurns[Sequence[int]]:
    """If some partitions of the topic are not there: an error code for each of them all."""
    name = topic.name.decode(errors="replace")
    count = len(broker.partitions.of_topic(name))
    codes: list[int] = []
    any_missing = False
    for start in range(0, len(topic), _PARTITIONS_AT_ONCE):
        for index in topic.numbers(start, start + _PARTITIONS_AT_ONCE):
            if 0 <= index < count:
                into[TopicPartition(name, index)] = None
                codes.append(ErrorCode.OPERATION_NOT_ATTEMPTED)
            else:
                any_missing = True
                codes.append(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        yield
    return codes if any_missing else ()


def _verify_all(broker: Broker, asked: Addition) -> InTurns[list[Result]]:
    results: list[Result] = []
    for topic in asked.topics:
        name, codes = topic.name.decode(errors="replace"), list[int]()
        for start in range(0, len(topic), _PARTITIONS_AT_ONCE):
            for index in topic.numbers(start, start + _PARTITIONS_AT_ONCE):
                codes.append(_verify(broker, asked, TopicPartition(name, index)))
            yield
        results.append(Result(topic, codes))
    return results


def _verify(broker: Broker, asked: Addition, partition: TopicPartition) -> ErrorCode:
    try:
        broker.transactions.verify(*asked[:3], partition)
    except ApiError as error:
        return error.code
    return ErrorCode.NONE
