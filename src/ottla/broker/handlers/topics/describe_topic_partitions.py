"""DescribeTopicPartitions v0 (KIP-966). Topics in order of their names, a page at a time.

At most `max.request.partition.size.limit` partitions go into one answer; `next_cursor` says where the next begins.
"""

from __future__ import annotations

from functools import partial

from ottla.broker.authorized_operations import TOPIC_OPERATIONS
from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.common.errors import ErrorCode
from ottla.common.steps import Steps, each
from ottla.metadata.image import INTERNAL_TOPICS, TopicImage
from ottla.metadata.topic_names import name_fault
from ottla.protocol.messages import DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse

Topic = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
Partition = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition


def handle(
    broker: Broker, context: RequestContext, request: DescribeTopicPartitionsRequest
) -> Steps[DescribeTopicPartitionsResponse]:
    topics = broker.image.topics
    names = sorted({topic.name for topic in request.topics} or topics)
    first = 0
    cursor = request.cursor
    if cursor is not None:
        if cursor.partition_index < 0 or (request.topics and cursor.topic_name not in names):
            return _refused(request)
        names = [name for name in names if name >= cursor.topic_name]
        # A topic that was deleted between two pages is skipped; its successor starts at its first partition.
        first = cursor.partition_index if names and names[0] == cursor.topic_name else 0
    response = DescribeTopicPartitionsResponse()
    found: list[Topic] = []
    room = max(1, min(request.response_partition_limit, broker.config.max_request_partition_size_limit))
    for name in names:
        if room == 0:
            response.next_cursor = DescribeTopicPartitionsResponse.Cursor(topic_name=name, partition_index=0)
            break
        topic = topics.get(name)
        if topic is None:
            found.append(_unknown(name))
            yield None
            continue
        described = yield from _describe(topic, first, room)
        found.append(described)
        first, end = 0, first + len(described.partitions)
        room -= len(described.partitions)
        if end < len(topic.partitions):
            response.next_cursor = DescribeTopicPartitionsResponse.Cursor(topic_name=name, partition_index=end)
            break
    response.topics = found
    return response


def _refused(request: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
    """A cursor that points nowhere: every topic gets the error, for there is no other place to put it."""
    topic_class = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
    return DescribeTopicPartitionsResponse(
        topics=[topic_class(error_code=ErrorCode.INVALID_REQUEST, name=topic.name) for topic in request.topics]
    )


def _unknown(name: str) -> Topic:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if name_fault(name) is None else ErrorCode.INVALID_TOPIC_EXCEPTION
    return DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic(
        error_code=code,
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _describe(topic: TopicImage, first: int, count: int) -> Steps[Topic]:
    indexes = range(first, min(first + count, len(topic.partitions)))
    partitions = yield from each(indexes, partial(_partition, topic))
    return DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.is_internal,
        partitions=partitions,
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _partition(topic: TopicImage, index: int) -> Partition:
    partition = topic.partitions[index]
    return DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition(
        partition_index=index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=partition.replicas,
        isr_nodes=partition.isr,
        eligible_leader_replicas=(),
        last_known_elr=(),
    )
