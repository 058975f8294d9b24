"""Who this broker is, what topics it makes, and its producers' state."""

from __future__ import annotations

from ottla.common.config.checks import at_least
from ottla.common.config.configuration import Configuration
from ottla.common.config.setting import Scope, Unit, boolean, integer, long, string


class IdentitySettings(Configuration):
    node_id = integer(
        "node.id", 1, "This broker's number, unique in the cluster (Kafka has no default for it).", check=at_least(0)
    )
    broker_id = integer("broker.id", -1, "The older name of node.id; if both are given they must agree.")
    broker_rack = string("broker.rack", None, "The rack or machine of this broker; replicas are spread over racks.")


class LeaderSettings(Configuration):
    auto_leader_rebalance_enable = boolean(
        "auto.leader.rebalance.enable",
        True,
        "Whether partitions go back to their first replica when it is in sync again.",
    )
    leader_imbalance_check_interval_seconds = long(
        "leader.imbalance.check.interval.seconds",
        300,
        "How often the controller looks whether leaders are where they should be.",
        unit=Unit.SECONDS,
        check=at_least(1),
    )


class TopicCreationSettings(Configuration):
    num_partitions = integer(
        "num.partitions",
        1,
        "Partitions of a topic that is created without saying how many.",
        unit=Unit.COUNT,
        check=at_least(1),
    )
    default_replication_factor = integer(
        "default.replication.factor",
        1,
        "Replicas of a topic that is created without saying how many.",
        unit=Unit.COUNT,
    )
    auto_create_topics_enable = boolean(
        "auto.create.topics.enable", True, "Whether a topic that a client asks for is created on the spot."
    )
    delete_topic_enable = boolean("delete.topic.enable", True, "Whether topics may be deleted.")
    ottla_adopt_logs = boolean(
        "ottla.adopt.logs",
        False,
        "Whether partition folders that the metadata does not know become topics when the broker starts.",
    )
    min_insync_replicas = integer(
        "min.insync.replicas",
        1,
        "Replicas that must have a batch before a produce with acks=all succeeds.",
        unit=Unit.COUNT,
        check=at_least(1),
        scope=Scope.CLUSTER_WIDE,
    )


class ProducerSettings(Configuration):
    producer_id_expiration_ms = integer(
        "producer.id.expiration.ms",
        86_400_000,
        "How long the state of an idempotent producer is kept after its last batch.",
        unit=Unit.MS,
        check=at_least(1),
        scope=Scope.CLUSTER_WIDE,
    )
