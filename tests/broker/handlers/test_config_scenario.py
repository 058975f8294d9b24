"""Ottla answers requests about configuration as Kafka does; see config_scenario."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.testing import Broker
from tests.broker.handlers.config_scenario import KAFKA_PAUSE_S, PROPERTIES, RECORDED, transcript
from tests.support.config_client import ConfigClient
from tests.support.kafka_jars import require_kafka_libs
from tests.support.kafka_peer import KafkaPeer

# What a broker for tests sets otherwise.
_FOR_TESTS = (
    "group.consumer.assignment.interval.ms",
    "group.consumer.heartbeat.interval.ms",
    "group.consumer.min.heartbeat.interval.ms",
)


@pytest.fixture
def _level_of_loggers_is_put_back() -> Iterator[None]:
    top = logging.getLogger("ottla")
    before = top.level
    yield
    top.setLevel(before)


@pytest.mark.usefixtures("_level_of_loggers_is_put_back")
def test_ottla_answers_as_kafka_did() -> None:
    with Broker({**dict.fromkeys(_FOR_TESTS), **PROPERTIES}) as broker:
        host, port = broker.bootstrap_servers.split(":")
        with ConfigClient(host, int(port)) as client:
            answers = transcript(client)
    recorded = json.loads(RECORDED.read_text())
    assert len(answers) == len(recorded)
    for ours, kafkas in zip(answers, recorded, strict=True):
        assert ours == kafkas


@pytest.mark.jvm
@pytest.mark.slow
def test_kafka_still_answers_as_recorded(tmp_path: Path) -> None:
    require_kafka_libs()
    with KafkaPeer(tmp_path, PROPERTIES) as kafka, ConfigClient(kafka.host, kafka.port) as client:
        assert transcript(client, KAFKA_PAUSE_S) == json.loads(RECORDED.read_text())
