"""How replicas follow their leaders, and when they count as in sync."""

from __future__ import annotations

from ottla.common.config.checks import Check, at_least
from ottla.common.config.configuration import Configuration
from ottla.common.config.setting import Scope, Unit, integer, long, string

# The one that Kafka has beside the default, which is to read from leaders only (KIP-392).
RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


_UNLIMITED = (1 << 63) - 1


class ReplicationSettings(Configuration):
    leader_replication_throttled_rate = long(
        "leader.replication.throttled.rate",
        _UNLIMITED,
        "Bytes per second that this broker sends of replicas in leader.replication.throttled.replicas of their topics.",
        unit=Unit.BYTES,
        check=at_least(0),
        scope=Scope.CLUSTER_WIDE,
    )
    follower_replication_throttled_rate = long(
        "follower.replication.throttled.rate",
        _UNLIMITED,
        "Bytes per second that this broker fetches of replicas in follower.replication.throttled.replicas.",
        unit=Unit.BYTES,
        check=at_least(0),
        scope=Scope.CLUSTER_WIDE,
    )
    replica_alter_log_dirs_io_max_bytes_per_second = long(
        "replica.alter.log.dirs.io.max.bytes.per.second",
        _UNLIMITED,
        "Bytes per second that are copied when replicas move between log directories of this broker.",
        unit=Unit.BYTES,
        check=at_least(0),
        scope=Scope.CLUSTER_WIDE,
    )
    replication_quota_window_num = integer(
        "replication.quota.window.num",
        11,
        "Over how many windows the rates of throttled replicas are measured.",
        check=at_least(1),
    )
    replication_quota_window_size_seconds = integer(
        "replication.quota.window.size.seconds",
        1,
        "How long such a window is.",
        unit=Unit.SECONDS,
        check=at_least(1),
    )
    replica_lag_time_max_ms = long(
        "replica.lag.time.max.ms",
        30_000,
        "How long a replica may be behind its leader before it is not in sync any more.",
        unit=Unit.MS,
        check=at_least(1),
    )
    replica_fetch_wait_max_ms = integer(
        "replica.fetch.wait.max.ms",
        500,
        "How long a leader holds back a follower's fetch without news; less than replica.lag.time.max.ms.",
        unit=Unit.MS,
        check=at_least(0),
    )
    replica_fetch_min_bytes = integer(
        "replica.fetch.min.bytes",
        1,
        "How much has to be there before a follower's fetch is answered early.",
        unit=Unit.BYTES,
        check=at_least(0),
    )
    replica_fetch_max_bytes = integer(
        "replica.fetch.max.bytes",
        1_048_576,
        "What a follower fetches of one partition at a time; a larger batch is sent all the same.",
        unit=Unit.BYTES,
        check=at_least(0),
    )
    replica_fetch_response_max_bytes = integer(
        "replica.fetch.response.max.bytes",
        10_485_760,
        "What a follower fetches at a time in all; a larger batch is sent all the same.",
        unit=Unit.BYTES,
        check=at_least(0),
    )
    replica_fetch_backoff_ms = integer(
        "replica.fetch.backoff.ms",
        1_000,
        "How long a follower waits at most before it tries again what failed.",
        unit=Unit.MS,
        check=at_least(0),
    )
    replica_socket_timeout_ms = integer(
        "replica.socket.timeout.ms",
        30_000,
        "How long a follower waits for the answer to a fetch; at least replica.fetch.wait.max.ms.",
        unit=Unit.MS,
    )
    replica_high_watermark_checkpoint_interval_ms = long(
        "replica.high.watermark.checkpoint.interval.ms",
        5_000,
        "How often the high watermarks of replicas are written down.",
        unit=Unit.MS,
        check=at_least(1),
    )
    replica_selector_class = string(
        "replica.selector.class",
        None,
        "With the name of Kafka's RackAwareReplicaSelector consumers are sent to a replica in their own rack.",
        check=Check(f"{RACK_AWARE_SELECTOR} or nothing", lambda name: name in (None, "", RACK_AWARE_SELECTOR)),
    )
