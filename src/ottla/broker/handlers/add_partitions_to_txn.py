"""AddPartitionsToTxn v0-5. Partitions that a transaction is about to write to; all of a request's are added, or none.

Up to v3 it is a client's request for one transaction; from v4 on brokers ask for several at once, or only whether
partitions belong (`verify_only`). Works on the frame itself and in turns: see `protocol.add_partitions_frames`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING

from ottla.broker.context import RequestContext
from ottla.broker.steps import Steps, run
from ottla.broker.transaction_errors import for_version
from ottla.common.errors import ApiError, CloseConnection, ErrorCode
from ottla.common.ids import TopicPartition
from ottla.protocol.add_partitions_frames import BATCHED, FLEXIBLE, Addition, Pauses, Result, Topic, decode, encode
from ottla.protocol.codec import MalformedMessage
from ottla.protocol.framing import response_prefix

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.server.connection import Answer

_KNOWS_FENCED_SINCE = 2
# What a client's AddPartitionsToTxn says about the protocol it speaks.
_CLASSIC, _V2 = 0, 2
# A request up to this size is read at once.
_SMALL_BYTES = 32 * 1024
_TURN_S = 0.002
# Partitions of one topic that are looked at between two pauses.
_PAUSE_PARTITIONS = 4096


def handle_frame(
    broker: Broker, context: RequestContext, frame: memoryview, position: int
) -> Answer | Awaitable[Answer]:
    if len(frame) > _SMALL_BYTES:
        frame = memoryview(bytes(frame))  # the connection's buffer is ours only until we wait
    return run(_add_all(broker, context.version, context.correlation_id, frame, position))


def _add_all(broker: Broker, version: int, correlation_id: int, frame: memoryview, position: int) -> Steps[Answer]:
    turn = _Turn()
    asked: list[Addition] = []
    try:
        yield from turn.through(decode(frame, position, version, asked))
    except MalformedMessage as error:
        raise CloseConnection(str(error)) from None
    results = []
    for one in asked:
        rows = yield from _add(broker, version, one, turn)
        results.append((one.transactional_id, rows))
    body = bytearray()
    yield from turn.through(encode(version, results, body))
    return response_prefix(len(body), correlation_id, version >= FLEXIBLE) + body


class _Turn:
    """How long others have waited for this request."""

    def __init__(self) -> None:
        self._ends = time.perf_counter() + _TURN_S

    def through(self, pauses: Pauses) -> Steps[None]:
        for _ in pauses:
            yield from self.pause()

    def pause(self) -> Steps[None]:
        if time.perf_counter() > self._ends:
            yield asyncio.sleep(0)
            self._ends = time.perf_counter() + _TURN_S


def _add(broker: Broker, version: int, asked: Addition, turn: _Turn) -> Steps[list[Result]]:
    partitions: dict[TopicPartition, None] = {}
    refused: list[Result] = []
    any_missing = False
    for topic in asked.topics:
        codes = yield from _collect(broker, topic, partitions, turn)
        any_missing = any_missing or bool(codes)
        refused.append(Result(topic, codes or ErrorCode.OPERATION_NOT_ATTEMPTED))
    if any_missing:
        return refused
    name, producer_id, epoch = asked[:3]
    try:
        if not name:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        if asked.verify_only:
            return (yield from _verify_all(broker, asked, turn))
        client_version = _V2 if version >= BATCHED else _CLASSIC
        yield from broker.transactions.add_partitions(name, producer_id, epoch, partitions, client_version)
        code = ErrorCode.NONE
    except ApiError as error:
        code = for_version(error.code, version, _KNOWS_FENCED_SINCE)
    return [Result(topic, code) for topic in asked.topics]


def _collect(broker: Broker, topic: Topic, into: dict[TopicPartition, None], turn: _Turn) -> Steps[Sequence[int]]:
    """Take up the partitions of a topic. If some are not there: an error code for each of them all."""
    name = topic.name.decode(errors="replace")
    count = len(broker.partitions.of_topic(name))
    codes: list[int] = []
    any_missing = False
    for start in range(0, len(topic), _PAUSE_PARTITIONS):
        for index in topic.numbers(start, start + _PAUSE_PARTITIONS):
            if 0 <= index < count:
                into[TopicPartition(name, index)] = None
                codes.append(ErrorCode.OPERATION_NOT_ATTEMPTED)
            else:
                any_missing = True
                codes.append(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        yield from turn.pause()
    return codes if any_missing else ()


def _verify_all(broker: Broker, asked: Addition, turn: _Turn) -> Steps[list[Result]]:
    results: list[Result] = []
    for topic in asked.topics:
        name, codes = topic.name.decode(errors="replace"), list[int]()
        for start in range(0, len(topic), _PAUSE_PARTITIONS):
            for index in topic.numbers(start, start + _PAUSE_PARTITIONS):
                codes.append(_verify(broker, asked, TopicPartition(name, index)))
            yield from turn.pause()
        results.append(Result(topic, codes))
    return results


def _verify(broker: Broker, asked: Addition, partition: TopicPartition) -> ErrorCode:
    try:
        broker.transactions.verify(*asked[:3], partition)
    except ApiError as error:
        return error.code
    return ErrorCode.NONE
