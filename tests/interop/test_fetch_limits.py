"""Consumers with every setting at its default read a backlog that does not fit into one answer, to its last record."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import pytest

from ottla.testing import Broker
from tests.support.raw_client import RawClient, batch_of

pytestmark = pytest.mark.xdist_group("python-clients")

# Only guards against hanging: a consumer that is thrown off by an answer stops for good.
HANG_S = 120
# The limits of a consumer that is told nothing: 1 MiB for a partition, 50 MiB for an answer.
PARTITION_BYTES = 1 << 20

Offsets = Counter[tuple[int, int]]


def by_kafka_python(bootstrap: str, topic: str, partitions: int, count: int) -> Offsets:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    consumer.assign([TopicPartition(topic, one) for one in range(partitions)])
    found: Offsets = Counter()
    deadline = time.monotonic() + HANG_S
    while found.total() < count and time.monotonic() < deadline:
        for messages in consumer.poll(500).values():
            found.update((one.partition, one.offset) for one in messages)
    consumer.close()
    return found


def by_aiokafka(bootstrap: str, topic: str, partitions: int, count: int) -> Offsets:
    async def read() -> Offsets:
        from aiokafka import AIOKafkaConsumer, TopicPartition

        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
        await consumer.start()
        found: Offsets = Counter()
        try:
            consumer.assign([TopicPartition(topic, one) for one in range(partitions)])
            deadline = time.monotonic() + HANG_S
            while found.total() < count and time.monotonic() < deadline:
                for messages in (await consumer.getmany(timeout_ms=500)).values():
                    found.update((one.partition, one.offset) for one in messages)
        finally:
            await consumer.stop()
        return found

    return asyncio.run(read())


def by_confluent_kafka(bootstrap: str, topic: str, partitions: int, count: int) -> Offsets:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "limits"})
    consumer.assign([TopicPartition(topic, one, OFFSET_BEGINNING) for one in range(partitions)])
    found: Offsets = Counter()
    deadline = time.monotonic() + HANG_S
    while found.total() < count and time.monotonic() < deadline:
        message = consumer.poll(0.5)
        if message is not None:
            assert message.error() is None, message.error()
            found[message.partition(), message.offset()] += 1
    consumer.close()
    return found


READERS = [by_kafka_python, by_aiokafka, by_confluent_kafka]


@pytest.fixture(scope="module")
def fill(broker: Broker) -> Iterator[Callable[[str, list[Sequence[int]]], int]]:
    """A topic with batches of these sizes, a list for each partition, made at the first call; how many there are."""
    counts: dict[str, int] = {}

    def make(topic: str, sizes: list[Sequence[int]]) -> int:
        if topic not in counts:
            broker.create_topic(topic, len(sizes), {"max.message.bytes": "4000000"})
            with RawClient.to(broker.bootstrap_servers) as client:
                for partition, wanted in enumerate(sizes):
                    for size in wanted:
                        assert client.produce(topic, batch_of(bytes(size)), partition=partition).error_code == 0
            counts[topic] = sum(len(one) for one in sizes)
        return counts[topic]

    yield make


def every_record(sizes: list[Sequence[int]]) -> Offsets:
    return Counter((partition, offset) for partition, wanted in enumerate(sizes) for offset in range(len(wanted)))


@pytest.mark.parametrize("read", READERS)
def test_batches_larger_than_the_limit_of_a_partition(
    broker: Broker, fill: Callable[[str, list[Sequence[int]]], int], read: Callable[..., Offsets]
) -> None:
    chance = random.Random(3)
    sizes = [chance.sample([PARTITION_BYTES + 1, 100, PARTITION_BYTES * 2, 5000], 4) for _ in range(6)]
    count = fill("larger-than-the-limit", sizes)
    found = read(broker.bootstrap_servers, "larger-than-the-limit", len(sizes), count)
    assert found == every_record(sizes)


@pytest.mark.slow
@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("mixed", [False, True])
def test_a_backlog_of_large_batches_in_sixty_partitions(
    broker: Broker, fill: Callable[[str, list[Sequence[int]]], int], mixed: bool, read: Callable[..., Offsets]
) -> None:
    chance = random.Random(4)
    usual = [1_000_000, 1_000_000]
    choices = [usual, [1_000_000], [700_000, 90_000, 900_000, 1_000_000, 600_000], [10, 1_000_000]]
    sizes = [chance.choice(choices) if mixed else usual for _ in range(60)]
    topic = f"sixty-{mixed}"
    count = fill(topic, sizes)
    assert read(broker.bootstrap_servers, topic, len(sizes), count) == every_record(sizes)
