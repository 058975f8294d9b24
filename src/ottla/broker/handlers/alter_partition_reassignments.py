"""AlterPartitionReassignments v0-1. One broker has nowhere to move a replica to: only the same place is fine."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.broker.controller.topic_plan import check_replicas
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.steps import Steps, each
from ottla.protocol.messages import AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse


def handle(
    broker: Broker, context: RequestContext, request: AlterPartitionReassignmentsRequest
) -> Steps[AlterPartitionReassignmentsResponse]:
    responses = []
    for topic in request.topics:
        results = yield from each(topic.partitions, partial(_answer, broker, topic.name))
        responses.append(
            AlterPartitionReassignmentsResponse.ReassignableTopicResponse(name=topic.name, partitions=results)
        )
    return AlterPartitionReassignmentsResponse(error_message=None, responses=responses)


def _answer(
    broker: Broker, name: str, asked: AlterPartitionReassignmentsRequest.ReassignablePartition
) -> AlterPartitionReassignmentsResponse.ReassignablePartitionResponse:
    result = AlterPartitionReassignmentsResponse.ReassignablePartitionResponse(
        partition_index=asked.partition_index, error_message=None
    )
    try:
        _check(broker, name, asked.partition_index, asked.replicas)
    except ApiError as error:
        result.error_code, result.error_message = error.code, error.message
    return result


def _check(broker: Broker, name: str, index: int, replicas: Sequence[int] | None) -> None:
    topic = broker.image.topics.get(name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    if not 0 <= index < len(topic.partitions):
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{index}.")
    if replicas is None:
        raise ApiError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    check_replicas(replicas, [broker.node_id])
