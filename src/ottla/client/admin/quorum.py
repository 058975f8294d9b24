"""Whether a broker knows who may change the cluster's metadata (DescribeQuorum)."""

from __future__ import annotations

from ottla.client.cluster import ClusterClient
from ottla.common.errors import ErrorCode, OttlaError
from ottla.protocol.messages import DescribeQuorumRequest as Request

METADATA_TOPIC = "__cluster_metadata"


def is_cut_off(cluster: ClusterClient, broker: int) -> bool:
    """It knows of nobody, so that nothing can be changed through it. One of Kafka's that has no such quorum is never
    cut off from it. Raises OttlaError when it does not tell, OSError when it is gone."""
    connection = cluster.broker(broker)
    if not connection.knows("DescribeQuorumRequest"):
        return False
    asked = Request.TopicData(topic_name=METADATA_TOPIC, partitions=[Request.PartitionData(partition_index=0)])
    answer = connection.call(Request(topics=[asked]))
    told = answer.topics[0].partitions[0] if answer.topics else answer
    if code := answer.error_code or told.error_code:
        raise OttlaError(f"broker {broker} does not tell: {ErrorCode(code).name}")
    return bool(told.leader_id < 0)
