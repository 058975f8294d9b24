"""The settings of one topic: what is set on the topic itself, else the broker's value, else the default.

Most topic settings are a broker setting under a shorter name; `of_broker` takes type, check and unit from there and
makes the broker's property the synonym that supplies the value when the topic has none of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

from ottla.common.config.broker_config import BrokerConfig, Source
from ottla.common.config.checks import Check, at_least
from ottla.common.config.layered import LayeredConfig
from ottla.common.config.logs import DAY_MS, LONG_MAX
from ottla.common.config.setting import Setting, Synonym, Unit, boolean, integer, long, names
from ottla.common.errors import OttlaError

T = TypeVar("T")
_REPLICA = re.compile(r"[0-9]+:[0-9]+")
_NO_TIERS = "Accepted for Kafka's sake, without effect: there is no tiered storage."


def of_broker(name: str, setting: Setting[T]) -> Setting[T]:
    return Setting(
        name,
        setting.kind,
        setting.default,
        setting.doc,
        check=setting.check,
        unit=setting.unit,
        synonyms=(Synonym(setting.name),),
    )


def _are_replicas(values: Sequence[str]) -> bool:
    return values == ("*",) or all(_REPLICA.fullmatch(value) for value in values)


_REPLICAS = Check("* or PARTITION:BROKER pairs separated by commas", _are_replicas)


class TopicConfig(LayeredConfig):
    what = "topic"
    source = Source.DYNAMIC_TOPIC_CONFIG

    cleanup_policy = of_broker("cleanup.policy", BrokerConfig.log_cleanup_policy)
    compression_type = of_broker("compression.type", BrokerConfig.compression_type)
    compression_gzip_level = of_broker("compression.gzip.level", BrokerConfig.compression_gzip_level)
    compression_lz4_level = of_broker("compression.lz4.level", BrokerConfig.compression_lz4_level)
    compression_zstd_level = of_broker("compression.zstd.level", BrokerConfig.compression_zstd_level)
    delete_retention_ms = of_broker("delete.retention.ms", BrokerConfig.log_cleaner_delete_retention_ms)
    file_delete_delay_ms = of_broker("file.delete.delay.ms", BrokerConfig.log_segment_delete_delay_ms)
    flush_messages = of_broker("flush.messages", BrokerConfig.log_flush_interval_messages)
    flush_ms = long(
        "flush.ms",
        LONG_MAX,
        "How long records may wait before the log is forced to disk.",
        unit=Unit.MS,
        check=at_least(0),
        synonyms=(Synonym("log.flush.interval.ms"), Synonym("log.flush.scheduler.interval.ms")),
    )
    follower_replication_throttled_replicas = names(
        "follower.replication.throttled.replicas",
        (),
        "Followers that fetch no faster than follower.replication.throttled.rate while they are not in sync.",
        check=_REPLICAS,
    )
    index_interval_bytes = of_broker("index.interval.bytes", BrokerConfig.log_index_interval_bytes)
    internal_segment_bytes = integer(
        "internal.segment.bytes",
        None,
        "A segment size below the least that segment.bytes allows, for tests.",
        unit=Unit.BYTES,
        internal=True,
    )
    leader_replication_throttled_replicas = names(
        "leader.replication.throttled.replicas",
        (),
        "Leaders that send no faster than leader.replication.throttled.rate to replicas that are not in sync.",
        check=_REPLICAS,
    )
    local_retention_bytes = long(
        "local.retention.bytes",
        -2,
        _NO_TIERS,
        unit=Unit.BYTES,
        check=at_least(-2),
        synonyms=(Synonym("log.local.retention.bytes"),),
    )
    local_retention_ms = long(
        "local.retention.ms",
        -2,
        _NO_TIERS,
        unit=Unit.MS,
        check=at_least(-2),
        synonyms=(Synonym("log.local.retention.ms"),),
    )
    max_compaction_lag_ms = of_broker("max.compaction.lag.ms", BrokerConfig.log_cleaner_max_compaction_lag_ms)
    max_message_bytes = of_broker("max.message.bytes", BrokerConfig.message_max_bytes)
    message_timestamp_after_max_ms = of_broker(
        "message.timestamp.after.max.ms", BrokerConfig.log_message_timestamp_after_max_ms
    )
    message_timestamp_before_max_ms = of_broker(
        "message.timestamp.before.max.ms", BrokerConfig.log_message_timestamp_before_max_ms
    )
    message_timestamp_type = of_broker("message.timestamp.type", BrokerConfig.log_message_timestamp_type)
    min_cleanable_dirty_ratio = of_broker("min.cleanable.dirty.ratio", BrokerConfig.log_cleaner_min_cleanable_ratio)
    min_compaction_lag_ms = of_broker("min.compaction.lag.ms", BrokerConfig.log_cleaner_min_compaction_lag_ms)
    min_insync_replicas = of_broker("min.insync.replicas", BrokerConfig.min_insync_replicas)
    preallocate = boolean(
        "preallocate",
        False,
        "Accepted for Kafka's sake, without effect: files grow as they are written.",
        synonyms=(Synonym("log.preallocate"),),
    )
    remote_log_copy_disable = boolean("remote.log.copy.disable", False, _NO_TIERS)
    remote_log_delete_on_disable = boolean("remote.log.delete.on.disable", False, _NO_TIERS)
    remote_storage_enable = boolean("remote.storage.enable", False, "Must be false: there is no tiered storage.")
    retention_bytes = of_broker("retention.bytes", BrokerConfig.log_retention_bytes)
    retention_ms = long(
        "retention.ms",
        7 * DAY_MS,
        "How long records are kept, -1 without limit.",
        unit=Unit.MS,
        check=at_least(-1),
        synonyms=(
            Synonym("log.retention.ms"),
            Synonym("log.retention.minutes", 60_000),
            Synonym("log.retention.hours", 3_600_000),
        ),
    )
    segment_bytes = of_broker("segment.bytes", BrokerConfig.log_segment_bytes)
    segment_index_bytes = of_broker("segment.index.bytes", BrokerConfig.log_index_size_max_bytes)
    segment_jitter_ms = long(
        "segment.jitter.ms",
        0,
        "The most that is taken off segment.ms at random, so that segments do not all roll at once.",
        unit=Unit.MS,
        check=at_least(0),
        synonyms=(Synonym("log.roll.jitter.ms"), Synonym("log.roll.jitter.hours", 3_600_000)),
    )
    segment_ms = long(
        "segment.ms",
        7 * DAY_MS,
        "Age at which a segment is closed even if it is not full.",
        unit=Unit.MS,
        check=at_least(1),
        synonyms=(Synonym("log.roll.ms"), Synonym("log.roll.hours", 3_600_000)),
    )
    unclean_leader_election_enable = boolean(
        "unclean.leader.election.enable",
        False,
        "Whether a replica that may lack records can become leader when no other is left; a single node has none.",
        synonyms=(Synonym("unclean.leader.election.enable"),),
    )

    def check_together(self) -> None:
        """Rules over more than one setting, as Kafka has them; for values that a client brings."""
        if self.min_compaction_lag_ms > self.max_compaction_lag_ms:
            raise OttlaError(
                f"min.compaction.lag.ms ({self.min_compaction_lag_ms}) must not be greater than "
                f"max.compaction.lag.ms ({self.max_compaction_lag_ms})."
            )
        if self.remote_storage_enable:
            raise OttlaError("remote.storage.enable must be false: there is no tiered storage.")
