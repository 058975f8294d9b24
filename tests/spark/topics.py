"""Topics with everything in them, and rows in a form that can be compared."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from typing import Any

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_names = itertools.count(1)


def create(servers: str, partitions: int = 1, config: Mapping[str, str] | None = None, name: str | None = None) -> str:
    name = name or f"topic-{next(_names)}"
    admin = AdminClient({"bootstrap.servers": servers})
    # The records of these tests are from 1970: no retention must find them.
    settings = {"retention.ms": "-1", **(config or {})}
    admin.create_topics([NewTopic(name, partitions, 1, config=settings)])[name].result(20)
    return name


def grow(servers: str, topic: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(20)


def delete(servers: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    admin.delete_topics([topic])[topic].result(20)


def delete_before(servers: str, topic: str, offset: int) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    (done,) = admin.delete_records([confluent_kafka.TopicPartition(topic, 0, offset)]).values()
    done.result(20)


def produce(
    servers: str,
    topic: str,
    numbers: range,
    partitions: int = 1,
    *,
    are_new: bool = False,
    size: int = 0,
    **config: Any,
) -> None:
    """Keys and values say the number, `size` is how many bytes more values have; times are 1,000 ms apart, or now."""
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, **config})
    for number in numbers:
        time_ms = 0 if are_new else 1_000_000 + 1_000 * number  # 0: the client takes the present
        value = b"v%d" % number + b" " * size  # numbers are read out of it all the same
        producer.produce(topic, value, b"k%d" % number, partition=number % partitions, timestamp=time_ms)
        producer.poll(0)
    assert producer.flush(30) == 0


def produce_everything(servers: str, topic: str, partitions: int, seed: int = 1) -> None:
    """All codecs, headers, nulls, empty fields, sizes from 1 B to 1 MB, committed and aborted transactions."""
    chance = random.Random(seed)
    for codec in CODECS:
        producer = confluent_kafka.Producer({"bootstrap.servers": servers, "compression.type": codec})
        for number in range(200):
            producer.produce(topic, **_record(chance, number), partition=number % partitions)
        producer.produce(topic, chance.randbytes(900_000), partition=0)
        assert producer.flush(30) == 0
    for number in range(6):
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": servers,
                "transactional.id": f"{topic}-{number}",
                "compression.type": CODECS[number % 5],
            }
        )
        producer.init_transactions(20)
        producer.begin_transaction()
        for index in range(20):
            producer.produce(topic, **_record(chance, index), partition=index % partitions)
        producer.flush(20)
        producer.abort_transaction(20) if number % 2 else producer.commit_transaction(20)


def _record(chance: random.Random, number: int) -> dict[str, Any]:
    def field() -> bytes | None:
        return chance.choice([None, b"", chance.randbytes(1), b"text" * chance.randint(1, 50), chance.randbytes(300)])

    names = ["a", "name", "größe", ""]
    headers = [(chance.choice(names), field()) for _ in range(chance.choice([0, 0, 1, 3]))]
    return {"key": field(), "value": field(), "headers": headers or None, "timestamp": 1_600_000_000_000 + number * 7}


def consumed(servers: str, topic: str, isolation: str = "read_committed") -> set[tuple[Any, ...]]:
    """What a plain consumer reads: partition, offset, key, value, time in ms and its type, headers."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "plain",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    partitions = consumer.list_topics(topic, 20).topics[topic].partitions
    assert partitions, f"the broker knows no partition of {topic}"
    consumer.assign(
        [confluent_kafka.TopicPartition(topic, one, confluent_kafka.OFFSET_BEGINNING) for one in partitions]
    )
    rows: set[tuple[Any, ...]] = set()
    ended: set[int] = set()
    while len(ended) < len(partitions):
        message = consumer.poll(20)
        assert message is not None
        if message.error():
            assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
            ended.add(message.partition())
            continue
        kind, stamp = message.timestamp()
        headers = tuple(message.headers()) if message.headers() else None
        row = (message.partition(), message.offset(), message.key(), message.value(), stamp, kind - 1, headers)
        rows.add(row)
    consumer.close()
    return rows


def comparable(rows: list[Any]) -> set[tuple[Any, ...]]:
    """Rows of a DataFrame with headers, as `consumed` gives them. Asserts that no row comes twice."""
    found = {
        (
            row.partition,
            row.offset,
            _bytes(row.key),
            _bytes(row.value),
            round(row.timestamp.timestamp() * 1000),
            row.timestampType,
            tuple((one.key, _bytes(one.value)) for one in row.headers) if row.headers else None,
        )
        for row in rows
    }
    assert len(found) == len(rows)
    return found


def _bytes(field: Any) -> bytes | None:
    return None if field is None else bytes(field)


def numbers(rows: list[Any]) -> list[int]:
    """The numbers in the values that `produce` wrote, sorted."""
    return sorted(int(bytes(row.value)[1:]) for row in rows)


def exists(servers: str, topic: str) -> bool:
    return topic in AdminClient({"bootstrap.servers": servers}).list_topics(timeout=20).topics
