"""TxnOffsetCommit v0-5. Offsets that count when the transaction commits, fenced by generation and member (KIP-447).

Up to v4 the client has added the group with AddOffsetsToTxn before; with v5 (transactions v2) this request adds it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.context import RequestContext
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import ZERO_TOPIC_ID
from ottla.groups.offset_requests import CommitTopic
from ottla.protocol.messages import TxnOffsetCommitRequest, TxnOffsetCommitResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

_R = TxnOffsetCommitResponse
_V2_SINCE = 5


async def handle(broker: Broker, context: RequestContext, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    known = [one for one in request.topics if one.name in broker.image.topics]
    try:
        if not request.transactional_id:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        await _join_transaction(broker, context.version, request)
        topics = [CommitTopic(one.name, ZERO_TOPIC_ID, one.partitions) for one in known]
        out = broker.groups.shard(request.group_id).commit_transactional(request, topics)
        await broker.groups.settled(out)
    except ApiError as error:
        return _answer(request, {}, _code(error.code))
    rows = dict(zip((one.name for one in known), out.reply, strict=True))
    return _answer(request, rows, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


async def _join_transaction(broker: Broker, version: int, request: TxnOffsetCommitRequest) -> None:
    await broker.groups.make_topic()
    partition = broker.groups.offsets_partition(request.group_id)
    identity = (request.transactional_id, request.producer_id, request.producer_epoch)
    if version < _V2_SINCE:
        if broker.config.transaction_partition_verification_enable:
            broker.transactions.verify(*identity, partition)
        return
    shard = broker.transactions.add_partitions(*identity, [partition], 2)
    if shard is not None:
        await shard.log.durable()


def _code(code: ErrorCode) -> ErrorCode:
    """As Kafka: a producer knows no other words for these."""
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code


def _answer(
    request: TxnOffsetCommitRequest, rows: dict[str, list[ErrorCode]], otherwise: ErrorCode
) -> TxnOffsetCommitResponse:
    topics = []
    for topic in request.topics:
        codes = rows.get(topic.name) or [otherwise] * len(topic.partitions)
        topics.append(
            _R.TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    _R.TxnOffsetCommitResponsePartition(partition_index=one.partition_index, error_code=code)
                    for one, code in zip(topic.partitions, codes, strict=True)
                ],
            )
        )
    return _R(topics=topics)
