"""Compaction in a running broker, as clients see it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from ottla.common.ids import TopicPartition as Partition
from ottla.storage.log import Log
from ottla.testing import Broker

TOPIC = "accounts"
CONFIGS = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "4000",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "60000",
}


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker({"log.cleaner.backoff.ms": "100"}) as one:
        one.create_topic(TOPIC, configs=CONFIGS)
        yield one


def produce(broker: Broker, pairs: dict[str, str | None] | list[tuple[str, str | None]], **settings: str) -> None:
    """Several batches to a segment."""
    base = {"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 5, "batch.size": 1500}
    producer = Producer({**base, **settings})
    failed: list[object] = []
    for key, value in pairs.items() if isinstance(pairs, dict) else pairs:
        producer.produce(TOPIC, key=key, value=value, on_delivery=lambda error, _: error and failed.append(error))
    assert producer.flush(10) == 0
    assert failed == []


def consume(broker: Broker, start: int = 0) -> list[tuple[int, str, str | None]]:
    """Everything from offset `start` to the end, as (offset, key, value)."""
    settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "enable.partition.eof": "true"}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(TOPIC, 0, start)])
    found: list[tuple[int, str, str | None]] = []
    while (message := consumer.poll(10)) is not None and not message.error():
        value = message.value()
        found.append((message.offset(), message.key().decode(), value.decode() if value is not None else None))
    consumer.close()
    return found


def log_of(broker: Broker) -> Log:
    log = broker.server.broker.logs.get(Partition(TOPIC, 0))
    assert log is not None
    return log


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def settle(broker: Broker) -> None:
    """Until the segments below the active one are clean."""
    log = log_of(broker)
    wait_for(lambda: log.cleaned_offset == log.segments[-1].base_offset)


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_a_compacted_topic_yields_the_last_values(broker: Broker, codec: str) -> None:
    updates = [(f"key-{n % 10}", f"{n}-" + "x" * 50) for n in range(2000)]
    produce(broker, updates, **{"compression.type": codec})
    settle(broker)
    found = consume(broker)
    assert len(found) < 400
    assert {key: value for _, key, value in found} == dict(updates)
    assert [offset for offset, _, _ in found] == sorted(offset for offset, _, _ in found)
    # Reading from inside a gap goes on with the next record there is.
    gap = next(n for n in range(2000) if n not in {offset for offset, _, _ in found})
    assert consume(broker, gap) == [one for one in found if one[0] > gap]


def test_tombstones_vanish_once_their_time_is_over(broker: Broker) -> None:
    produce(broker, [(f"key-{n}", "x" * 100) for n in range(20)])
    produce(broker, {"key-3": None, "key-4": None})
    produce(broker, [(f"more-{n}", "x" * 100) for n in range(60)])
    settle(broker)
    assert [one for one in consume(broker) if one[2] is None] == [(20, "key-3", None), (21, "key-4", None)]
    assert ("key-3", "x" * 100) not in [one[1:] for one in consume(broker)]
    broker.clock.advance(seconds=61)
    produce(broker, [(f"later-{n}", "x" * 100) for n in range(60)])
    settle(broker)
    assert [one for one in consume(broker) if one[2] is None] == []
    assert len(consume(broker)) == 18 + 60 + 60


def test_a_restart_goes_on_where_compaction_was(broker: Broker) -> None:
    produce(broker, [(f"key-{n % 10}", f"{n}" * 20) for n in range(1000)])
    settle(broker)
    before, cleaned = consume(broker), log_of(broker).cleaned_offset
    broker.restart()
    assert log_of(broker).cleaned_offset == cleaned
    assert consume(broker) == before
    produce(broker, [(f"key-{n % 10}", f"new-{n}" * 20) for n in range(1000)], **{"enable.idempotence": "true"})
    settle(broker)
    assert {key: value for _, key, value in consume(broker)} == {
        f"key-{n % 10}": f"new-{n}" * 20 for n in range(990, 1000)
    }


def test_readers_go_on_while_segments_are_swapped(broker: Broker) -> None:
    updates = [(f"key-{n % 50}", f"{n}-" + "y" * 80) for n in range(3000)]
    settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "slow", "fetch.message.max.bytes": "2000"}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest", "enable.partition.eof": "true"})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    seen: dict[str, str] = {}
    offsets: list[int] = []
    for start in range(0, 3000, 300):
        produce(broker, updates[start : start + 300])
        while (message := consumer.poll(10)) is not None and not message.error():
            offsets.append(message.offset())
            seen[message.key().decode()] = message.value().decode()
    consumer.close()
    assert offsets == sorted(set(offsets))
    assert seen == dict(updates)


def test_the_worker_ends_when_it_is_idle_and_with_the_broker(broker: Broker) -> None:
    produce(broker, [(f"key-{n % 10}", f"{n}" * 20) for n in range(500)])
    settle(broker)
    worker = broker.server.broker.cleaning._worker
    pid = worker.pid
    assert pid is not None
    broker.clock.advance(seconds=40)
    wait_for(lambda: worker.pid is None)
    wait_for(lambda: not is_alive(pid))
    produce(broker, [(f"key-{n % 10}", f"{n}" * 20) for n in range(500)])
    settle(broker)
    pid = worker.pid
    assert pid is not None
    broker.stop()
    assert not is_alive(pid)
