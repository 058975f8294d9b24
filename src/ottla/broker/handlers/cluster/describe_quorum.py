"""DescribeQuorum v0-2. Who may change the cluster's metadata: its leader is the controller, all brokers are voters.

A broker that cannot reach the metadata store names no leader (-1), as one of Kafka's that is cut off from its quorum:
nobody can change anything through it. Metadata still names the last controller then, because clients that are told of
none wait for one, whatever they want. There is no metadata log, so the offsets tell how often the metadata changed
since the broker started.
"""

from __future__ import annotations

from functools import partial

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.common.errors import ErrorCode
from ottla.common.ids import ZERO_TOPIC_ID
from ottla.common.steps import Steps, each
from ottla.controller.topic_plan import METADATA_TOPIC
from ottla.metadata.image import reachable
from ottla.protocol.messages import DescribeQuorumRequest, DescribeQuorumResponse

_NOBODY = -1
Partition = DescribeQuorumResponse.PartitionData


def handle(broker: Broker, context: RequestContext, request: DescribeQuorumRequest) -> Steps[DescribeQuorumResponse]:
    topics = []
    for topic in request.topics:
        found = yield from each(topic.partitions, partial(_partition, broker, topic.topic_name))
        topics.append(DescribeQuorumResponse.TopicData(topic_name=topic.topic_name, partitions=found))
    known = any(partition.error_code == ErrorCode.NONE for topic in topics for partition in topic.partitions)
    return DescribeQuorumResponse(
        topics=topics,
        nodes=_nodes(broker, context.listener) if known else (),
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
        leader_id=broker.image.controller if broker.is_store_reached else _NOBODY,
        leader_epoch=max(1, broker.image.controller_epoch),
        high_watermark=changes,
        current_voters=[
            DescribeQuorumResponse.ReplicaState(
                replica_id=voter,
                replica_directory_id=ZERO_TOPIC_ID,
                log_end_offset=changes,
                last_fetch_timestamp=now_ms,
                last_caught_up_timestamp=now_ms,
            )
            for voter in sorted(broker.image.brokers)
        ],
    )


def _nodes(broker: Broker, listener: str) -> list[DescribeQuorumResponse.Node]:
    return [
        DescribeQuorumResponse.Node(
            node_id=node.id, listeners=[DescribeQuorumResponse.Listener(name=listener, host=host, port=port)]
        )
        for node, (host, port) in reachable(broker.image, listener)
    ]
