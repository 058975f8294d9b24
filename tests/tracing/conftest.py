"""The clusters that traces are tried on: our own broker in every run, Apache Kafka too in the slow suite."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.either_cluster import EITHER, one_node


@pytest.fixture(scope="package", params=EITHER)
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The bootstrap servers of a cluster of one node."""
    quick = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "4"}
    with one_node(request.param, tmp_path_factory.mktemp("cluster"), quick) as servers:
        yield servers


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
