"""AddPartitionsToTxn v0-5. Partitions that a transaction is about to write to; all of a request's are added, or none.

Up to v3 it is a client's request for one transaction; from v4 on brokers ask for several at once, or only whether
partitions belong (`verify_only`).
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.broker.coordinators.coordinator_shard import answered
from ottla.broker.coordinators.transactions.transaction_errors import for_version
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicPartition
from ottla.common.result import Result
from ottla.common.steps import Steps, all_of, in_pieces
from ottla.metadata.image import INTERNAL_TOPICS
from ottla.protocol.messages import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse

_BATCHED_SINCE = 4
_KNOWS_FENCED_SINCE = 2
# What a client's AddPartitionsToTxn says about the protocol it speaks.
_CLASSIC, _V2 = 0, 2

_Asked = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
_Topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
_TopicResult = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
_PartitionResult = AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult
# The answer, and the operation that it rests on, if it has come so far.
_Outcome = tuple[Result | None, list[_TopicResult]]


def handle(
    broker: Broker, context: RequestContext, request: AddPartitionsToTxnRequest
) -> Steps[AddPartitionsToTxnResponse]:
    version = context.version
    if version < _BATCHED_SINCE:
        asked = _Asked(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
        topics = yield from _committed(version, asked, (yield from _add(broker, version, asked)))
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=topics)
    # All are written before the first is waited for.
    outcomes = yield from all_of(_add(broker, version, asked) for asked in request.transactions)
    results = []
    for asked, outcome in zip(request.transactions, outcomes, strict=True):
        topics = yield from _committed(version, asked, outcome)
        result = AddPartitionsToTxnResponse.AddPartitionsToTxnResult
        results.append(result(transactional_id=asked.transactional_id, topic_results=topics))
    return AddPartitionsToTxnResponse(results_by_transaction=results)


def _committed(version: int, asked: _Asked, outcome: _Outcome) -> Steps[list[_TopicResult]]:
    """What was found rests on the log of the coordinator, so it is told when that is committed."""
    out, topics = outcome
    if out is not None:
        try:
            yield from answered(out)
        except ApiError as error:
            return (yield from _all(asked, for_version(error.code, version, _KNOWS_FENCED_SINCE)))
    return topics


def _add(broker: Broker, version: int, asked: _Asked) -> Steps[_Outcome]:
    partitions: dict[TopicPartition, None] = {}
    refused = yield from _collect_all(broker, version, asked.topics, partitions)
    if refused is not None:
        return None, refused
    name = asked.transactional_id
    try:
        if not name:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        if asked.verify_only:
            shard = broker.transactions.shard(name)
            verified = yield from _verify_all(broker, asked)
            return shard.read(lambda _: None), verified
        client_version = _V2 if version >= _BATCHED_SINCE else _CLASSIC
        out = broker.transactions.add_partitions(
            name, asked.producer_id, asked.producer_epoch, partitions, client_version
        )
    except ApiError as error:
        return None, (yield from _all(asked, for_version(error.code, version, _KNOWS_FENCED_SINCE)))
    return out, (yield from _all(asked, ErrorCode.NONE))


def _all(asked: _Asked, code: ErrorCode) -> Steps[list[_TopicResult]]:
    return all_of(_result(topic, [code] * len(topic.partitions)) for topic in asked.topics)


def _collect_all(
    broker: Broker, version: int, topics: Sequence[_Topic], into: dict[TopicPartition, None]
) -> Steps[list[_TopicResult] | None]:
    """Take up the partitions. If some are not there or closed: the answer, for none will be added."""
    # Up to v3 it is a client that asks, and our own topics are not a client's to write to.
    closed = INTERNAL_TOPICS if version < _BATCHED_SINCE else frozenset()
    all_codes = []
    for topic in topics:
        if topic.name in closed:
            codes = [ErrorCode.TOPIC_AUTHORIZATION_FAILED] * len(topic.partitions)
        else:
            codes = yield from _collect(broker, topic, into)
        all_codes.append(codes)
    if not any(code for codes in all_codes for code in codes):
        return None
    told = [[code or ErrorCode.OPERATION_NOT_ATTEMPTED for code in codes] for codes in all_codes]
    return (yield from all_of(_result(*row) for row in zip(topics, told, strict=True)))


def _collect(broker: Broker, topic: _Topic, into: dict[TopicPartition, None]) -> Steps[list[ErrorCode]]:
    image = broker.image.topics.get(topic.name)
    count = 0 if image is None else len(image.partitions)

    def collect(indexes: Sequence[int]) -> list[ErrorCode]:
        into.update({TopicPartition(topic.name, index): None for index in indexes if 0 <= index < count})
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return [ErrorCode.NONE if 0 <= index < count else unknown for index in indexes]

    return (yield from in_pieces(topic.partitions, collect))


def _verify_all(broker: Broker, asked: _Asked) -> Steps[list[_TopicResult]]:
    results = []
    for topic in asked.topics:
        name = topic.name

        def verify(indexes: Sequence[int], name: str = name) -> list[ErrorCode]:
            return [_verify(broker, asked, TopicPartition(name, index)) for index in indexes]

        codes = yield from in_pieces(topic.partitions, verify)
        results.append((yield from _result(topic, codes)))
    return results


def _verify(broker: Broker, asked: _Asked, partition: TopicPartition) -> ErrorCode:
    try:
        broker.transactions.verify(asked.transactional_id, asked.producer_id, asked.producer_epoch, partition)
    except ApiError as error:
        return error.code
    return ErrorCode.NONE


def _result(topic: _Topic, codes: Sequence[ErrorCode]) -> Steps[_TopicResult]:
    def told(pairs: Sequence[tuple[int, ErrorCode]]) -> list[_PartitionResult]:
        return [_PartitionResult(partition_index=index, partition_error_code=code) for index, code in pairs]

    rows = yield from in_pieces(list(zip(topic.partitions, codes, strict=True)), told)
    return _TopicResult(name=topic.name, results_by_partition=rows)
