"""DescribeProducers v0. The producers whose sequences a partition remembers, with their open transactions."""

from __future__ import annotations

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.common.errors import ErrorCode
from ottla.common.steps import Steps, each
from ottla.metadata.topic_names import name_fault
from ottla.protocol.messages import DescribeProducersRequest, DescribeProducersResponse
from ottla.storage.producers.producer_state import ProducerDescription

Found = DescribeProducersResponse.PartitionResponse

_UNKNOWN_TOPIC = "This server does not host this topic-partition."


def handle(
    broker: Broker, context: RequestContext, request: DescribeProducersRequest
) -> Steps[DescribeProducersResponse]:
    """What is named twice is told once: otherwise a small request could ask for an answer without end."""
    topics = []
    for topic in request.topics:
        found = []
        for index in dict.fromkeys(topic.partition_indexes):
            found.append((yield from _describe(broker, topic.name, index)))
            yield None
        topics.append(DescribeProducersResponse.TopicResponse(name=topic.name, partitions=found))
    return DescribeProducersResponse(topics=topics)


def _describe(broker: Broker, topic: str, index: int) -> Steps[Found]:
    fault = name_fault(topic)
    partition = broker.partitions.get(topic, index)
    if partition is None:
        return DescribeProducersResponse.PartitionResponse(
            partition_index=index,
            error_code=ErrorCode.INVALID_TOPIC_EXCEPTION if fault else broker.partitions.error_for(topic, index),
            error_message=fault or (None if topic in broker.image.topics else _UNKNOWN_TOPIC),
        )
    active = yield from each(partition.log.producers.describe(), _state)
    return DescribeProducersResponse.PartitionResponse(partition_index=index, active_producers=active)


def _state(producer: ProducerDescription) -> DescribeProducersResponse.ProducerState:
    return DescribeProducersResponse.ProducerState(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        last_sequence=producer.last_sequence,
        last_timestamp=producer.last_timestamp,
        coordinator_epoch=producer.coordinator_epoch,
        current_txn_start_offset=producer.current_txn_start_offset,
    )
