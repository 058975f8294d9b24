"""Ottla answers requests about groups and offsets as Kafka does; see group_scenario."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ottla.testing import Broker
from tests.broker.handlers.group_scenario import PROPERTIES, RECORDED, transcript
from tests.support.kafka_jars import require_kafka_libs
from tests.support.kafka_peer import KafkaPeer


def test_ottla_answers_as_kafka_did() -> None:
    with Broker(PROPERTIES) as broker:
        ours = transcript(broker.bootstrap_servers)
    kafkas = json.loads(RECORDED.read_text())
    assert list(ours) == list(kafkas)
    for label, answer in ours.items():
        assert answer == kafkas[label], label


@pytest.mark.jvm
@pytest.mark.slow
@pytest.mark.xdist_group("kafka-peer")
def test_kafka_still_answers_as_recorded(tmp_path: Path) -> None:
    require_kafka_libs()
    with KafkaPeer(tmp_path, PROPERTIES) as kafka:
        assert transcript(kafka.bootstrap) == json.loads(RECORDED.read_text())
