"""Kafka's own kafka-configs, pointed at Ottla."""

from __future__ import annotations

import logging
import subprocess

import pytest

from ottla.testing import Broker
from tests.support.kafka_jars import class_path, quick_java, require_kafka_libs

pytestmark = pytest.mark.jvm


def _kafka_configs(broker: Broker, *arguments: str) -> str:
    libs = require_kafka_libs()
    tool = [*quick_java(), "-cp", class_path(libs), "kafka.admin.ConfigCommand"]
    command = [*tool, "--bootstrap-server", broker.bootstrap_servers, *arguments]
    outcome = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    return outcome.stdout


def test_topics_and_brokers_are_altered_and_described() -> None:
    require_kafka_libs()
    with Broker() as broker:
        broker.create_topic("t", configs={"retention.ms": "7"})
        topic = ("--entity-type", "topics", "--entity-name", "t")
        _kafka_configs(broker, *topic, "--alter", "--add-config", "cleanup.policy=[compact,delete],segment.ms=9")
        _kafka_configs(
            broker, "--entity-type", "brokers", "--entity-default", "--alter", "--add-config", "log.preallocate=true"
        )
        described = _kafka_configs(broker, *topic, "--describe")
        assert "cleanup.policy=compact,delete" in described
        assert "segment.ms=9" in described and "retention.ms=7" in described
        brokers = _kafka_configs(broker, "--entity-type", "brokers", "--describe")
        assert "DYNAMIC_DEFAULT_BROKER_CONFIG:log.preallocate=true" in brokers


def test_levels_of_loggers_are_altered_and_described() -> None:
    require_kafka_libs()
    with Broker() as broker:
        loggers = ("--entity-type", "broker-loggers", "--entity-name", "1")
        _kafka_configs(broker, *loggers, "--alter", "--add-config", "ottla.request=DEBUG")
        assert logging.getLogger("ottla.request").level == logging.DEBUG
        assert "ottla.request=DEBUG" in _kafka_configs(broker, *loggers, "--describe")
        _kafka_configs(broker, *loggers, "--alter", "--delete-config", "ottla.request")
        assert logging.getLogger("ottla.request").level == logging.NOTSET
