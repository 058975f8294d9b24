"""DescribeQuorum v0-2. A quorum of one: this broker keeps the cluster's metadata itself.

There is no metadata log, so the offsets tell how often the metadata changed since the broker started.
"""

from __future__ import annotations

from functools import partial

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.common.errors import ErrorCode
from ottla.common.ids import ZERO_TOPIC_ID
from ottla.common.steps import Steps, each
from ottla.controller.topic_plan import METADATA_TOPIC
from ottla.protocol.messages import DescribeQuorumRequest, DescribeQuorumResponse

Partition = DescribeQuorumResponse.PartitionData


def handle(broker: Broker, context: RequestContext, request: DescribeQuorumRequest) -> Steps[DescribeQuorumResponse]:
    host, port = broker.endpoint(context.listener)
    listener = DescribeQuorumResponse.Listener(name=context.listener, host=host, port=port)
    topics = []
    for topic in request.topics:
        found = yield from each(topic.partitions, partial(_partition, broker, topic.topic_name))
        topics.append(DescribeQuorumResponse.TopicData(topic_name=topic.topic_name, partitions=found))
    known = any(partition.error_code == ErrorCode.NONE for topic in topics for partition in topic.partitions)
    return DescribeQuorumResponse(
        topics=topics,
        nodes=[DescribeQuorumResponse.Node(node_id=broker.node_id, listeners=[listener])] if known else (),
    )


def _partition(broker: Broker, topic: str, asked: DescribeQuorumRequest.PartitionData) -> Partition:
    index = asked.partition_index
    if topic != METADATA_TOPIC or index != 0:
        return DescribeQuorumResponse.PartitionData(
            partition_index=index,
            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            error_message="This server does not host this topic-partition.",
        )
    changes = broker.topics.changes
    now_ms = broker.clock.now_ms()
    return DescribeQuorumResponse.PartitionData(
        partition_index=index,
        leader_id=broker.node_id,
        leader_epoch=1,
        high_watermark=changes,
        current_voters=[
            DescribeQuorumResponse.ReplicaState(
                replica_id=broker.node_id,
                replica_directory_id=ZERO_TOPIC_ID,
                log_end_offset=changes,
                last_fetch_timestamp=now_ms,
                last_caught_up_timestamp=now_ms,
            )
        ],
    )
