"""Who may change a cluster's metadata, as one of its brokers sees it (DescribeQuorum)."""

from __future__ import annotations

from ottla.client.cluster import ClusterClient
from ottla.common.errors import ErrorCode, OttlaError
from ottla.protocol.messages import DescribeQuorumRequest as Request

METADATA_TOPIC = "__cluster_metadata"


def metadata_leader(cluster: ClusterClient, broker: int) -> int | None:
    """None: this broker knows of nobody. Raises OttlaError when it does not tell, OSError when it is gone."""
    asked = Request.TopicData(topic_name=METADATA_TOPIC, partitions=[Request.PartitionData(partition_index=0)])
    answer = cluster.broker(broker).call(Request(topics=[asked]))
    told = answer.topics[0].partitions[0] if answer.topics else answer
    if code := answer.error_code or told.error_code:
        raise OttlaError(f"broker {broker} does not tell: {ErrorCode(code).name}")
    return int(told.leader_id) if told.leader_id >= 0 else None
