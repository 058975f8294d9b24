"""Ottla answers about transactions as Kafka does, a thousand right and wrong requests; see transaction_scenario."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ottla.testing import Broker
from tests.broker.handlers.transaction_scenario import PROPERTIES, RECORDED, transcript
from tests.support.kafka_jars import require_kafka_libs
from tests.support.kafka_peer import KafkaPeer
from tests.support.raw_client import RawClient


def test_ottla_answers_as_kafka_did() -> None:
    with Broker(PROPERTIES) as broker, RawClient.to(broker.bootstrap_servers) as client:
        ours = transcript(client)
    kafkas = json.loads(RECORDED.read_text())
    assert list(ours) == list(kafkas)
    for label, answer in ours.items():
        assert answer == kafkas[label], label


@pytest.mark.jvm
@pytest.mark.slow
@pytest.mark.xdist_group("kafka-peer")
def test_kafka_still_answers_as_recorded(tmp_path: Path) -> None:
    require_kafka_libs()
    with KafkaPeer(tmp_path, PROPERTIES) as kafka, RawClient.to(kafka.bootstrap) as client:
        assert transcript(client) == json.loads(RECORDED.read_text())
