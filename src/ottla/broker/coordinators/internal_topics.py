"""How the internal topics are made: partitions and settings as Kafka's coordinators ask for them.

The replication factor is what the configuration says or as many as there are brokers: Kafka's default of 3 would keep
a single node from ever having a group. In a cluster all brokers count that were ever registered, also those that are
away: the topics are made when as many as the factor asks for are alive, and until then clients are told to ask again
(COORDINATOR_NOT_AVAILABLE). So the first client of a cluster whose brokers come up one after the other, or come back,
does not get a topic without copies for good.
"""

from __future__ import annotations

from ottla.common.config import BrokerConfig
from ottla.common.errors import ApiError, ErrorCode
from ottla.controller.topic_plan import NewTopic
from ottla.metadata.image import ClusterImage

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"


def internal_topic(config: BrokerConfig, name: str, broker_count: int) -> NewTopic:
    if name == OFFSETS_TOPIC:
        return NewTopic(
            name,
            config.offsets_topic_num_partitions,
            min(config.offsets_topic_replication_factor, broker_count),
            configs={
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(config.offsets_topic_segment_bytes),
            },
        )
    if name == TRANSACTIONS_TOPIC:
        return NewTopic(
            name,
            config.transaction_state_log_num_partitions,
            min(config.transaction_state_log_replication_factor, broker_count),
            configs={
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": str(min(config.transaction_state_log_min_isr, broker_count)),
                "segment.bytes": str(config.transaction_state_log_segment_bytes),
                "unclean.leader.election.enable": "false",
            },
        )
    raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name} is reserved for a feature that is not here yet")


def internal_topic_of_cluster(config: BrokerConfig, name: str, image: ClusterImage) -> NewTopic:
    """Raises COORDINATOR_NOT_AVAILABLE while too few brokers are alive."""
    topic = internal_topic(config, name, max(1, len(image.registrations)))
    alive = len(image.brokers)
    if alive < topic.replication_factor:
        raise ApiError(
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            f"{name} is made when {topic.replication_factor} brokers are alive; there are {alive}",
        )
    return topic
