"""TxnOffsetCommit v0-5. Offsets that count when the transaction commits, fenced by generation and member (KIP-447).

Up to v4 the client has added the group with AddOffsetsToTxn before; with v5 (transactions v2) this request adds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.broker.coordinators.coordinator_shard import answered
from ottla.broker.coordinators.groups.offset_pieces import answered_in_pieces
from ottla.broker.coordinators.transactions.transaction_errors import for_offsets
from ottla.broker.coordinators.transactions.transaction_peers import Question
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import ZERO_TOPIC_ID, TopicPartition
from ottla.common.steps import Steps
from ottla.groups.offset_requests import CommitTopic
from ottla.protocol.messages import TxnOffsetCommitRequest, TxnOffsetCommitResponse

_R = TxnOffsetCommitResponse
_Codes = dict[tuple[str, int], ErrorCode]
_V2_SINCE = 5
_V2 = 2


def handle(broker: Broker, context: RequestContext, request: TxnOffsetCommitRequest) -> Steps[TxnOffsetCommitResponse]:
    return answered_in_pieces(request, partial(_commit, broker, context.version))


def _commit(broker: Broker, version: int, request: TxnOffsetCommitRequest) -> Steps[TxnOffsetCommitResponse]:
    topics = _known_topics(broker, request)
    if not topics:
        return _answer(request, {}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    try:
        if not request.transactional_id:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        if not request.group_id:
            raise ApiError(ErrorCode.INVALID_GROUP_ID)
        yield from _join_transaction(broker, version, request)
        topics = _known_topics(broker, request)  # some may have been deleted while we waited
        out = broker.groups.shard(request.group_id).commit_transactional(request, topics)
        rows: Sequence[Sequence[ErrorCode]] = yield from answered(out)
    except ApiError as error:
        code = for_offsets(error.code, version)
        rows = [[code] * len(topic.partitions) for topic in topics]
    codes = {
        (topic.name, partition.partition_index): code
        for topic, row in zip(topics, rows, strict=True)
        for partition, code in zip(topic.partitions, row, strict=True)
    }
    return _answer(request, codes, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _known_topics(broker: Broker, request: TxnOffsetCommitRequest) -> list[CommitTopic]:
    """Without the partitions that are not there."""
    topics = []
    for topic in request.topics:
        image = broker.image.topics.get(topic.name)
        if image is not None:
            count = len(image.partitions)
            known = [partition for partition in topic.partitions if 0 <= partition.partition_index < count]
            if known:
                topics.append(CommitTopic(topic.name, ZERO_TOPIC_ID, known))
    return topics


def _join_transaction(broker: Broker, version: int, request: TxnOffsetCommitRequest) -> Steps[None]:
    """When this is done the group's partition is known to belong to the open transaction."""
    if not broker.groups.runtime.has_topic:
        yield broker.groups.runtime.make_topic()
    broker.groups.shard(request.group_id)  # a group of somebody else is theirs to add
    partition = broker.groups.runtime.partition_of(request.group_id)
    transactions = broker.transactions
    identity = (request.transactional_id, request.producer_id, request.producer_epoch)
    adds = version >= _V2_SINCE
    if not (adds or broker.config.transaction_partition_verification_enable):
        return
    elsewhere = transactions.coordinator_elsewhere(request.transactional_id)
    if elsewhere is not None:
        yield from _ask(broker, elsewhere, Question(*identity, verify_only=not adds), partition)
        return
    if adds:
        yield from answered(transactions.add_partitions(*identity, [partition], _V2))
    transactions.verify(*identity, partition)  # it may have ended while its record went to the disk


def _ask(broker: Broker, coordinator: int, question: Question, where: TopicPartition) -> Steps[None]:
    led = broker.partitions.get(*where)
    if led is None:
        raise ApiError(ErrorCode.NOT_COORDINATOR)
    producers = led.log.producers
    guard = producers.guard(question.producer_id, broker.clock.now_ms())
    yield broker.transactions.peers.ask(coordinator, question, where)
    entry = producers.entries.get(question.producer_id)
    is_open = entry is not None and entry.epoch == question.epoch and entry.txn_first_offset >= 0
    if not (is_open or producers.is_guarded_by(question.producer_id, guard)):
        raise ApiError(ErrorCode.INVALID_TXN_STATE, "the transaction ended while its coordinator was asked")


def _answer(request: TxnOffsetCommitRequest, codes: _Codes, otherwise: ErrorCode) -> TxnOffsetCommitResponse:
    return _R(
        topics=[
            _R.TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    _R.TxnOffsetCommitResponsePartition(
                        partition_index=partition.partition_index,
                        error_code=codes.get((topic.name, partition.partition_index), otherwise),
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
