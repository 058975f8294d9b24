"""DescribeTransactions v0. State, identity, age and partitions of transactional ids."""

from __future__ import annotations

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.broker.coordinators.coordinator_shard import answered
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import partitions_by_topic
from ottla.common.steps import Steps, all_of
from ottla.protocol.messages import DescribeTransactionsRequest, DescribeTransactionsResponse

_State = DescribeTransactionsResponse.TransactionState


def handle(
    broker: Broker, context: RequestContext, request: DescribeTransactionsRequest
) -> Steps[DescribeTransactionsResponse]:
    """What is named twice is told once: otherwise a small request could ask for an answer without end."""
    names = dict.fromkeys(request.transactional_ids)
    states = yield from all_of(_describe(broker, name) for name in names)
    return DescribeTransactionsResponse(transaction_states=states)


def _describe(broker: Broker, transactional_id: str) -> Steps[_State]:
    if not transactional_id:
        return _State(transactional_id=transactional_id, error_code=ErrorCode.INVALID_REQUEST)
    try:
        shard = broker.transactions.shard(transactional_id)
        known = yield from answered(shard.read(lambda coordinator: coordinator.get(transactional_id)))
    except ApiError as error:
        if error.code is not ErrorCode.NOT_COORDINATOR or broker.transactions.runtime.has_topic:
            return _State(transactional_id=transactional_id, error_code=error.code)
        known = None
    if known is None:
        return _State(transactional_id=transactional_id, error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    topics = partitions_by_topic(known.partitions)
    return _State(
        transactional_id=transactional_id,
        transaction_state=known.state.text,
        transaction_timeout_ms=known.timeout_ms,
        transaction_start_time_ms=known.started_ms,
        producer_id=known.producer_id,
        producer_epoch=known.producer_epoch,
        topics=[
            DescribeTransactionsResponse.TopicData(topic=topic, partitions=partitions)
            for topic, partitions in topics.items()
        ],
    )
