"""Settings stored by another version must not keep a broker from starting."""

from __future__ import annotations

import logging

import pytest

from ottla.broker.configs.config_service import ConfigService
from ottla.common.config import BrokerConfig
from ottla.metadata.image import ClusterImage


async def test_a_stored_setting_that_is_no_longer_valid_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    config = BrokerConfig.load({"node.id": "7"})
    stored = {
        "": {"gone.property": "1", "message.max.bytes": "many", "log.preallocate": "true"},
        "7": {"log.retention.ms": "5"},
        "8": {"log.retention.ms": "6"},
    }
    with caplog.at_level(logging.ERROR, "ottla.config"):
        ConfigService(config).load(ClusterImage("c", broker_configs=stored))
    assert (config.value("log.preallocate"), config.log_retention_ms, config.message_max_bytes) == (True, 5, 1_048_588)
    assert len(caplog.records) == 2


async def test_settings_that_do_not_fit_one_another_are_all_left_out(caplog: pytest.LogCaptureFixture) -> None:
    config = BrokerConfig.load({})
    ConfigService(config).load(
        ClusterImage("c", broker_configs={"": {"log.retention.ms": "0", "log.preallocate": "true"}})
    )
    assert config.log_retention_ms is None
    assert "not used" in caplog.text


async def test_a_log_survives_a_stored_topic_setting_that_is_no_longer_valid() -> None:
    service = ConfigService(BrokerConfig.load({}))
    config = service.log_config({"gone": "1", "retention.ms": "x", "flush.ms": "5"})
    assert (config.retention_ms, config.flush_ms) == (604_800_000, 5)


async def test_a_changed_image_is_heard_once() -> None:
    config = BrokerConfig.load({})
    heard: list[frozenset[str]] = []
    config.on_change(heard.append)
    service = ConfigService(config)
    empty, changed = ClusterImage("c"), ClusterImage("c", broker_configs={"": {"message.max.bytes": "5000"}})
    service.on_image(empty, changed)
    service.on_image(changed, changed)
    assert heard == [{"message.max.bytes"}]


async def test_what_the_settings_of_a_topic_come_to_is_remembered_until_those_of_the_broker_change() -> None:
    config = BrokerConfig.load({})
    service = ConfigService(config)
    own = {"flush.ms": "5"}
    known = service.log_config(own)
    assert service.log_config(dict(own)) is known is not service.log_config({})
    config.reconfigure({"log.retention.ms": "7"}, {})
    assert (service.log_config(own).retention_ms, service.log_config(own).flush_ms) == (7, 5)
    assert service.log_config({}).retention_ms == 7
    for number in range(2_000):  # of topics that had many settings one after the other
        service.log_config({"retention.ms": str(number)})
    assert len(service._log_configs) <= 1_000
