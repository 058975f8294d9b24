"""Topic settings: own value, the broker's, the default."""

from __future__ import annotations

import pytest

from ottla.broker.log_configs import topic_log_config
from ottla.common.config import BrokerConfig, Source, TopicConfig
from ottla.common.errors import OttlaError
from ottla.storage.log_config import LogConfig


def test_without_overrides_a_log_has_its_defaults() -> None:
    assert topic_log_config(BrokerConfig.load({}), {}) == LogConfig()


def test_own_value_wins_over_the_broker() -> None:
    broker = BrokerConfig.load({"log.segment.bytes": "2000000", "log.retention.bytes": "9"})
    topic = TopicConfig(broker, {"segment.bytes": "3000000"})
    assert (topic.segment_bytes, topic.retention_bytes) == (3_000_000, 9)


def test_hours_and_minutes_of_the_broker_become_milliseconds() -> None:
    hours = BrokerConfig.load({"log.retention.hours": "2", "log.roll.hours": "3"})
    assert TopicConfig(hours, {}).retention_ms == 7_200_000
    assert TopicConfig(hours, {}).segment_ms == 10_800_000
    minutes = BrokerConfig.load({"log.retention.hours": "2", "log.retention.minutes": "3"})
    assert TopicConfig(minutes, {}).retention_ms == 180_000
    forever = BrokerConfig.load({"log.retention.hours": "-1"})
    assert TopicConfig(forever, {}).retention_ms == -1


def test_a_log_is_flushed_as_the_broker_says() -> None:
    assert topic_log_config(BrokerConfig.load({"log.flush.scheduler.interval.ms": "50"}), {}).flush_ms == 50


def test_both_policies() -> None:
    config = topic_log_config(BrokerConfig.load({}), {"cleanup.policy": "compact,delete"})
    assert (config.cleanup_compact, config.cleanup_delete) == (True, True)


def test_tests_may_have_small_segments() -> None:
    assert topic_log_config(BrokerConfig.load({}), {"internal.segment.bytes": "1000"}).segment_bytes == 1000


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        ({"retention.sm": "1"}, "nearest known one is retention.ms"),
        ({"retention.ms": "-2"}, "at least -1"),
        ({"segment.bytes": "1024"}, "at least 1048576"),
        ({"cleanup.policy": "compact,shred"}, "each one of compact, delete"),
        ({"leader.replication.throttled.replicas": "1-2"}, "PARTITION:BROKER"),
        ({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"}, "must not be greater"),
        ({"remote.storage.enable": "true"}, "no tiered storage"),
    ],
)
def test_mistakes(overrides: dict[str, str], sentence: str) -> None:
    with pytest.raises(OttlaError) as caught:
        TopicConfig(BrokerConfig.load({}), overrides).check_together()
    assert sentence in str(caught.value)


def test_explanation_lists_every_layer() -> None:
    broker = BrokerConfig.load({"log.retention.hours": "2"})
    broker.reconfigure({"log.retention.ms": "5"}, {})
    found = list(TopicConfig.explain("retention.ms", broker, {"retention.ms": "4"}))
    assert [(value.name, value.text, value.source) for value in found] == [
        ("retention.ms", "4", Source.DYNAMIC_TOPIC_CONFIG),
        ("log.retention.ms", "5", Source.DYNAMIC_DEFAULT_BROKER_CONFIG),
        ("log.retention.hours", "2", Source.STATIC_BROKER_CONFIG),
        ("log.retention.hours", "168", Source.DEFAULT_CONFIG),
    ]
