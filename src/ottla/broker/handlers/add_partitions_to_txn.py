"""AddPartitionsToTxn v0-5. Partitions that a transaction is about to write to; all of a request's are added, or none.

Up to v3 it is a client's request for one transaction; from v4 on brokers ask for several at once, or only whether
partitions belong (`verify_only`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.broker.context import RequestContext
from ottla.broker.transaction_errors import for_version
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicPartition
from ottla.protocol.messages import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

_R = AddPartitionsToTxnResponse
_Topics = Sequence[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic]
_Errors = dict[TopicPartition, ErrorCode]
_KNOWS_FENCED_SINCE = 2
_BATCHED_SINCE = 4
# What a client's AddPartitionsToTxn says about the protocol it speaks.
_CLASSIC, _V2 = 0, 2


async def handle(
    broker: Broker, context: RequestContext, request: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse:
    version = context.version
    if version >= _BATCHED_SINCE:
        results = []
        for one in request.transactions:
            errors = await _add(
                broker, version, one.transactional_id, one.producer_id, one.producer_epoch, one.topics, one.verify_only
            )
            results.append(
                _R.AddPartitionsToTxnResult(
                    transactional_id=one.transactional_id, topic_results=_topic_results(one.topics, errors)
                )
            )
        return _R(results_by_transaction=results)
    errors = await _add(
        broker,
        version,
        request.v3_and_below_transactional_id,
        request.v3_and_below_producer_id,
        request.v3_and_below_producer_epoch,
        request.v3_and_below_topics,
        False,
    )
    return _R(results_by_topic_v3_and_below=_topic_results(request.v3_and_below_topics, errors))


async def _add(
    broker: Broker, version: int, transactional_id: str, producer_id: int, epoch: int, topics: _Topics, verify: bool
) -> _Errors:
    asked = [TopicPartition(topic.name, index) for topic in topics for index in topic.partitions]
    missing = [one for one in asked if broker.partitions.get(*one) is None]
    if missing:
        untouched = dict.fromkeys(asked, ErrorCode.OPERATION_NOT_ATTEMPTED)
        return untouched | dict.fromkeys(missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    try:
        if not transactional_id:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        if verify:
            for one in asked:
                broker.transactions.verify(transactional_id, producer_id, epoch, one)
        else:
            client_version = _V2 if version >= _BATCHED_SINCE else _CLASSIC
            shard = broker.transactions.add_partitions(transactional_id, producer_id, epoch, asked, client_version)
            if shard is not None:
                await shard.log.durable()
    except ApiError as error:
        code = for_version(error.code, version, _KNOWS_FENCED_SINCE)
        return dict.fromkeys(asked, code)
    return {}


def _topic_results(topics: _Topics, errors: _Errors) -> list[_R.AddPartitionsToTxnTopicResult]:
    return [
        _R.AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                _R.AddPartitionsToTxnPartitionResult(
                    partition_index=index,
                    partition_error_code=errors.get(TopicPartition(topic.name, index), ErrorCode.NONE),
                )
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]
