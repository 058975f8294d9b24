"""A broker with Kafka's defaults but for what a test would wait for, and what is in its topics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.support.brokers import OttlaProcess

SETTINGS = {"group.initial.rebalance.delay.ms": "0"}
MakeBroker = Callable[[str], OttlaProcess]


@pytest.fixture
def make_broker(tmp_path: Path) -> Iterator[MakeBroker]:
    started: list[OttlaProcess] = []

    def make(name: str) -> OttlaProcess:
        started.append(OttlaProcess(tmp_path / name, SETTINGS).start())
        return started[-1]

    yield make
    for one in started:
        one.close()


@pytest.fixture
def broker(make_broker: MakeBroker) -> OttlaProcess:
    return make_broker("ottla")


def send(broker: OttlaProcess, topic: str, values: list[str]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(60) == 0


class Reader:
    """All committed records of a topic so far, in the order of each partition."""

    def __init__(self, broker: OttlaProcess, topic: str, partitions: int = 1) -> None:
        settings = {"group.id": "reader", "isolation.level": "read_committed", "enable.auto.commit": False}
        self._consumer = Consumer({"bootstrap.servers": broker.bootstrap, **settings})
        self._consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        self.records: list[tuple[str | None, str]] = []

    def look(self) -> list[tuple[str | None, str]]:
        while (message := self._consumer.poll(0.2)) is not None:
            if message.error() is None:
                key = message.key()
                self.records.append((key.decode() if key else None, message.value().decode()))
        return self.records

    def values(self) -> list[str]:
        return [value for _, value in self.look()]
