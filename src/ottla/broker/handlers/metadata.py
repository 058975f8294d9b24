"""Metadata v0-13. Brokers, and topics with their partitions' leaders; creates missing topics where allowed.

A topic that is created on the way is complete in the same answer, so a producer needs no second round. All topics are
meant by a null list, in v0 by an empty one. Topics can be asked for by id from v12.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING

from ottla.broker.authorized_operations import CLUSTER_OPERATIONS, NOT_ASKED, TOPIC_OPERATIONS
from ottla.broker.context import RequestContext
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import ZERO_TOPIC_ID, TopicId
from ottla.metadata.image import INTERNAL_TOPICS, TopicImage
from ottla.metadata.topic_names import name_fault
from ottla.protocol.messages import MetadataRequest, MetadataResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

    Topic = MetadataResponse.MetadataResponseTopic


def handle(
    broker: Broker, context: RequestContext, request: MetadataRequest
) -> MetadataResponse | Awaitable[MetadataResponse]:
    response = _frame_of(broker, context, request)
    if request.topics is None or (context.version == 0 and not request.topics):
        response.topics = [_describe(topic, request) for topic in broker.image.topics.values()]
        return response
    by_id = [one for one in request.topics if one.topic_id != ZERO_TOPIC_ID]
    if (by_id and context.version < 12) or (not by_id and any(one.name is None for one in request.topics)):
        response.topics = [_failed(one.name or "", ErrorCode.INVALID_REQUEST) for one in request.topics]
        return response
    if by_id:  # as Kafka: ids win, and what is asked for by name besides is not answered
        response.topics = [_by_id(broker, one, request) for one in by_id]
        return response
    names = list(dict.fromkeys(one.name for one in request.topics if one.name is not None))
    missing = [name for name in names if name not in broker.image.topics]
    if missing and request.allow_auto_topic_creation and broker.config.auto_create_topics_enable:
        return _create_and_describe(broker, names, missing, request, response)
    response.topics = [_by_name(broker, name, request) for name in names]
    return response


def _frame_of(broker: Broker, context: RequestContext, request: MetadataRequest) -> MetadataResponse:
    """The answer without its topics."""
    host, port = broker.advertised_address(context.listener)
    return MetadataResponse(
        brokers=[
            MetadataResponse.MetadataResponseBroker(node_id=broker.node_id, host=host, port=port, rack=broker.rack)
        ],
        cluster_id=broker.image.cluster_id,
        controller_id=broker.node_id,
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


async def _create_and_describe(
    broker: Broker,
    names: Sequence[str],
    missing: Sequence[str],
    request: MetadataRequest,
    response: MetadataResponse,
) -> MetadataResponse:
    errors: dict[str, ErrorCode] = {}
    for name in missing:
        try:
            await broker.topics.auto_create(name)
        except ApiError as error:
            errors[name] = error.code
    response.topics = [
        _failed(name, errors[name]) if name in errors else _by_name(broker, name, request) for name in names
    ]
    return response


def _by_name(broker: Broker, name: str, request: MetadataRequest) -> Topic:
    topic = broker.image.topics.get(name)
    if topic is not None:
        return _describe(topic, request)
    return _failed(
        name, ErrorCode.INVALID_TOPIC_EXCEPTION if name_fault(name) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    )


def _by_id(broker: Broker, one: MetadataRequest.MetadataRequestTopic, request: MetadataRequest) -> Topic:
    topic = broker.image.topics_by_id.get(TopicId(one.topic_id))
    if topic is not None:
        return _describe(topic, request)
    return MetadataResponse.MetadataResponseTopic(
        error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=one.topic_id
    )


def _failed(name: str, code: ErrorCode) -> Topic:
    return MetadataResponse.MetadataResponseTopic(error_code=code, name=name, is_internal=name in INTERNAL_TOPICS)


def _describe(topic: TopicImage, request: MetadataRequest) -> Topic:
    partition_class = MetadataResponse.MetadataResponsePartition
    return MetadataResponse.MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.is_internal,
        partitions=[
            partition_class(
                partition_index=index,
                leader_id=partition.leader,
                leader_epoch=partition.leader_epoch,
                replica_nodes=partition.replicas,
                isr_nodes=partition.isr,
            )
            for index, partition in enumerate(topic.partitions)
        ],
        topic_authorized_operations=TOPIC_OPERATIONS if request.include_topic_authorized_operations else NOT_ASKED,
    )
