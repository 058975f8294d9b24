"""Guards of the APIs of producers and their transactions."""

from __future__ import annotations

from typing import Any

from ottla.broker.access import shapes
from ottla.broker.access.guarding import TOPIC_DENIED, Request
from ottla.broker.access.rules import DENIED
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.steps import Steps
from ottla.metadata.acls import Operation, ResourceType
from ottla.protocol import messages as m

_UP_TO_V3 = 3


def write_txn_markers(request: Request) -> Steps[Any]:
    ask = request.ask
    if not ask.may_cluster(Operation.ALTER, tells=False) and not ask.may_cluster(Operation.CLUSTER_ACTION):
        return shapes.write_txn_markers(request.message, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return (yield from request.answer())


def init_producer_id(request: Request) -> Steps[Any]:
    ask, name = request.ask, request.message.transactional_id
    if name is not None:
        if not ask.may(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, name):
            raise ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    elif not ask.may_cluster(Operation.IDEMPOTENT_WRITE, tells=False) and not ask.may_on_any(
        Operation.WRITE, ResourceType.TOPIC
    ):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return (yield from request.answer())


def add_partitions_to_txn(request: Request) -> Steps[Any]:
    ask, message = request.ask, request.message
    if request.version > _UP_TO_V3:
        if not ask.may_cluster(Operation.CLUSTER_ACTION):
            raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return (yield from request.answer())
    topics, line = message.v3_and_below_topics, shapes.added_topic
    if not ask.may(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, message.v3_and_below_transactional_id):
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return m.AddPartitionsToTxnResponse(results_by_topic_v3_and_below=[line(topic, code) for topic in topics])
    denied = {topic.name for topic in topics if not ask.may_topic(Operation.WRITE, topic.name)}
    if denied:  # all are added, or none
        codes = {True: TOPIC_DENIED, False: ErrorCode.OPERATION_NOT_ATTEMPTED}
        results = [line(topic, codes[topic.name in denied]) for topic in topics]
        return m.AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)
    return (yield from request.answer())


def describe_transactions(request: Request) -> Steps[Any]:
    ask, message, kind = request.ask, request.message, ResourceType.TRANSACTIONAL_ID
    denied = {name: None for name in message.transactional_ids if not ask.may(Operation.DESCRIBE, kind, name)}
    message.transactional_ids = [name for name in message.transactional_ids if name not in denied]
    answer = yield from request.answer()
    for state in answer.transaction_states:
        state.topics = [topic for topic in state.topics if ask.may_topic(Operation.DESCRIBE, topic.topic, tells=False)]
    line = m.DescribeTransactionsResponse.TransactionState
    refused = [line(transactional_id=name, error_code=DENIED[kind]) for name in denied]
    answer.transaction_states = [*answer.transaction_states, *refused]
    return answer


def list_transactions(request: Request) -> Steps[Any]:
    ask, kind = request.ask, ResourceType.TRANSACTIONAL_ID
    answer = yield from request.answer()
    answer.transaction_states = [
        state
        for state in answer.transaction_states
        if ask.may(Operation.DESCRIBE, kind, state.transactional_id, tells=False)
    ]
    return answer
