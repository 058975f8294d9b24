"""The clusters that traces are tried on: our own broker in every run, Apache Kafka too in the slow suite."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.testing import Broker
from tests.support.kafka_jars import require_kafka_libs
from tests.support.kafka_peer import KafkaPeer

KAFKA = pytest.param("kafka", marks=[pytest.mark.jvm, pytest.mark.slow])


@pytest.fixture(scope="package", params=["ottla", KAFKA])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The bootstrap servers of a cluster of one node."""
    if request.param == "kafka":
        require_kafka_libs()
        quick = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "4"}
        with KafkaPeer(tmp_path_factory.mktemp("kafka"), quick) as kafka:
            yield kafka.bootstrap
    else:
        with Broker() as broker:
            yield broker.bootstrap_servers


@pytest.fixture
def topics(cluster: str) -> Callable[..., list[str]]:
    """Makes topics that begin with these words, and gives their names."""

    def make(*words: str, partitions: int = 1) -> list[str]:
        tag = uuid.uuid4().hex[:6]
        names = [f"{word}-{tag}" for word in words]
        admin = AdminClient({"bootstrap.servers": cluster})
        for answer in admin.create_topics([NewTopic(name, partitions, 1) for name in names]).values():
            answer.result(60)
        return names

    return make


class Sender:
    """Sends one record after the other, and says at which offset each is."""

    def __init__(self, cluster: str, **more: object) -> None:
        self.producer = Producer({"bootstrap.servers": cluster, "message.max.bytes": 8_000_000, **more})

    def __call__(self, topic: str, value: bytes | str | None, key: bytes | str | None = None, **more: object) -> int:
        told: list[int] = []

        def heard(error: object, message: object) -> None:
            assert error is None, error
            told.append(message.offset())  # type: ignore[attr-defined]

        self.producer.produce(topic, value, key, on_delivery=heard, **more)
        assert self.producer.flush(60) == 0
        return told[0]


@pytest.fixture
def send(cluster: str) -> Sender:
    return Sender(cluster)
