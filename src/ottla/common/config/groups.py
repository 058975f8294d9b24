"""Settings of consumer groups and their committed offsets."""

from __future__ import annotations

from ottla.common.config.checks import at_least, between, one_of_any_case, some_of
from ottla.common.config.configuration import Configuration
from ottla.common.config.setting import Scope, Unit, integer, long, names, short, string

INT_MAX = 2**31 - 1


class ClassicGroupSettings(Configuration):
    group_min_session_timeout_ms = integer(
        "group.min.session.timeout.ms", 6_000, "The shortest session timeout a member may ask for.", unit=Unit.MS
    )
    group_max_session_timeout_ms = integer(
        "group.max.session.timeout.ms", 1_800_000, "The longest session timeout a member may ask for.", unit=Unit.MS
    )
    group_initial_rebalance_delay_ms = integer(
        "group.initial.rebalance.delay.ms",
        3_000,
        "How long an empty group waits for more members before its first rebalance.",
        unit=Unit.MS,
    )
    group_max_size = integer(
        "group.max.size", INT_MAX, "The most members of one classic group.", unit=Unit.COUNT, check=at_least(1)
    )


class ConsumerGroupSettings(Configuration):
    """The protocol of KIP-848."""

    group_coordinator_rebalance_protocols = names(
        "group.coordinator.rebalance.protocols",
        ("classic", "consumer", "streams"),
        "The group protocols that are served; streams and share are accepted as names but not served yet.",
        check=some_of("consumer", "classic", "share", "streams"),
    )
    group_consumer_session_timeout_ms = integer(
        "group.consumer.session.timeout.ms",
        45_000,
        "A member without a heartbeat for so long is removed.",
        unit=Unit.MS,
        check=at_least(1),
    )
    group_consumer_min_session_timeout_ms = integer(
        "group.consumer.min.session.timeout.ms",
        45_000,
        "The shortest session timeout that a group's own setting may have.",
        unit=Unit.MS,
        check=at_least(1),
    )
    group_consumer_max_session_timeout_ms = integer(
        "group.consumer.max.session.timeout.ms",
        60_000,
        "The longest session timeout that a group's own setting may have.",
        unit=Unit.MS,
        check=at_least(1),
    )
    group_consumer_heartbeat_interval_ms = integer(
        "group.consumer.heartbeat.interval.ms",
        5_000,
        "How often members are told to send heartbeats.",
        unit=Unit.MS,
        check=at_least(1),
    )
    group_consumer_min_heartbeat_interval_ms = integer(
        "group.consumer.min.heartbeat.interval.ms",
        5_000,
        "The shortest heartbeat interval that a group's own setting may have.",
        unit=Unit.MS,
        check=at_least(1),
    )
    group_consumer_max_heartbeat_interval_ms = integer(
        "group.consumer.max.heartbeat.interval.ms",
        15_000,
        "The longest heartbeat interval that a group's own setting may have.",
        unit=Unit.MS,
        check=at_least(1),
    )
    group_consumer_max_size = integer(
        "group.consumer.max.size",
        INT_MAX,
        "The most members of one consumer group.",
        unit=Unit.COUNT,
        check=at_least(1),
    )
    group_consumer_assignors = names(
        "group.consumer.assignors",
        ("uniform", "range"),
        "The server-side assignors that members may ask for; the first is the default.",
        check=some_of("uniform", "range"),
    )
    group_consumer_migration_policy = string(
        "group.consumer.migration.policy",
        "bidirectional",
        "Which way a group with members may change between the classic and the consumer protocol.",
        check=one_of_any_case("disabled", "downgrade", "upgrade", "bidirectional"),
    )
    group_consumer_regex_refresh_interval_ms = integer(
        "group.consumer.regex.refresh.interval.ms",
        600_000,
        "How often subscriptions by pattern are matched again with the topics there are.",
        unit=Unit.MS,
        check=at_least(10_000),
        internal=True,
    )
    group_consumer_assignment_interval_ms = integer(
        "group.consumer.assignment.interval.ms",
        1_000,
        "The least time between two assignments of one group.",
        unit=Unit.MS,
        check=at_least(0),
        scope=Scope.CLUSTER_WIDE,
    )
    group_consumer_min_assignment_interval_ms = integer(
        "group.consumer.min.assignment.interval.ms",
        0,
        "The shortest assignment interval that a group's own setting may have.",
        unit=Unit.MS,
        check=at_least(0),
    )
    group_consumer_max_assignment_interval_ms = integer(
        "group.consumer.max.assignment.interval.ms",
        15_000,
        "The longest assignment interval that a group's own setting may have.",
        unit=Unit.MS,
        check=at_least(0),
    )


class OffsetSettings(Configuration):
    """Committed offsets and the topic that holds them."""

    offset_metadata_max_bytes = integer(
        "offset.metadata.max.bytes", 4096, "The longest text that may go with a committed offset.", unit=Unit.BYTES
    )
    offsets_retention_minutes = integer(
        "offsets.retention.minutes",
        10_080,
        "How long the offsets of a group without members are kept.",
        unit=Unit.MINUTES,
        check=at_least(1),
    )
    offsets_retention_check_interval_ms = long(
        "offsets.retention.check.interval.ms",
        600_000,
        "How often the broker looks for offsets to forget.",
        unit=Unit.MS,
        check=at_least(1),
    )
    offsets_commit_timeout_ms = integer(
        "offsets.commit.timeout.ms",
        5_000,
        "How long what a coordinator writes may take to reach the in-sync replicas; then clients are told to try again."
        " A single node waits for nobody.",
        unit=Unit.MS,
        check=at_least(1),
    )
    offsets_topic_num_partitions = integer(
        "offsets.topic.num.partitions",
        50,
        "Partitions of __consumer_offsets; not to be changed once the topic is there.",
        unit=Unit.COUNT,
        check=at_least(1),
    )
    offsets_topic_replication_factor = short(
        "offsets.topic.replication.factor",
        3,
        "Replicas of __consumer_offsets, or as many as there are brokers if that is fewer.",
        unit=Unit.COUNT,
        check=at_least(1),
    )
    offsets_topic_segment_bytes = integer(
        "offsets.topic.segment.bytes",
        104_857_600,
        "Segment size of __consumer_offsets, small so that compaction and loading stay quick.",
        unit=Unit.BYTES,
        check=at_least(1),
    )
    offsets_topic_compression_codec = integer(
        "offsets.topic.compression.codec",
        0,
        "Codec id of the batches written to __consumer_offsets: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
        check=between(0, 4),
    )
