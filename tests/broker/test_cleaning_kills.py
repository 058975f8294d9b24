"""kill -9 in a loop while logs are compacted: no acknowledged value is lost, and no worker outlives its broker."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.brokers import OttlaProcess

pytestmark = pytest.mark.slow

TOPIC = "accounts"
CONFIGS = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "4000",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "300",
}
KILLS = 12


class Writer:
    """Counts up under random keys; every fifth record of a key is a tombstone."""

    def __init__(self, bootstrap: str) -> None:
        self.producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": "true",
                "linger.ms": 2,
                "batch.size": 1000,
                "reconnect.backoff.max.ms": 100,
                "log_level": 0,
            }
        )
        self.tried: dict[str, int] = {}
        self.acked: dict[str, int] = {}
        self.count = 0

    def write(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.count += 1
            key, number = f"key-{random.randrange(40)}", self.count
            self.tried[key] = number
            value = None if number % 5 == 0 else f"{number}-" + "x" * 40

            def told(error: object, _: object, key: str = key, number: int = number) -> None:
                if error is None:
                    self.acked[key] = max(number, self.acked.get(key, 0))

            self.producer.produce(TOPIC, key=key, value=value, headers={"n": str(number)}, on_delivery=told)
            self.producer.poll(0.001)


def last_numbers(bootstrap: str) -> tuple[dict[str, int], dict[str, str]]:
    """Of each key the number of its last record, and the value if it has one."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "enable.partition.eof": "true"})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    numbers: dict[str, int] = {}
    values: dict[str, str] = {}
    previous = -1
    while (message := consumer.poll(20)) is not None and not message.error():
        assert message.offset() > previous
        previous = message.offset()
        key = message.key().decode()
        number = int(message.headers()[0][1])
        assert number > numbers.get(key, 0), "a value came back that was superseded before"
        numbers[key] = number
        if message.value() is None:
            values.pop(key, None)
        else:
            values[key] = message.value().decode()
    assert message is not None, "the end was not reached"
    consumer.close()
    return numbers, values


def workers_of(pid: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            if path.read_text().rsplit(")", 1)[1].split()[1] == str(pid):
                found.append(int(path.parent.name))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def rounds(broker: OttlaProcess) -> int:
    return broker._log_path.read_text().count("compacted partition=accounts-0")


def test_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    random.seed(5)
    with OttlaProcess(tmp_path, {"log.cleaner.backoff.ms": "20"}) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic(TOPIC, 1, 1, config=CONFIGS)])[TOPIC].result()
        writer = Writer(broker.bootstrap)
        workers: list[int] = []
        for _ in range(KILLS):
            # On a busy machine the worker takes its time; the kill comes at any moment after its first round.
            seen, deadline = rounds(broker), time.monotonic() + 60
            while rounds(broker) == seen and time.monotonic() < deadline:
                writer.write(0.1)
            writer.write(random.random())
            workers += workers_of(broker.pid)
            broker.kill()
            broker.start()
        writer.write(1)
        assert writer.producer.flush(20) == 0
        numbers, values = last_numbers(broker.bootstrap)
        workers += workers_of(broker.pid)
        for key, acked in writer.acked.items():
            found = numbers.get(key, 0)
            if found == 0:  # its tombstone went in time
                assert acked % 5 == 0 or writer.tried[key] % 5 == 0
            else:
                assert acked <= found <= writer.tried[key]
                assert (key in values) == (found % 5 != 0)
        assert rounds(broker) >= KILLS
    assert len(set(workers)) >= KILLS
    deadline = time.monotonic() + 60  # one that was just being started has to get as far as to look
    while any(Path(f"/proc/{pid}").exists() for pid in workers):
        assert time.monotonic() < deadline, "a worker is left"
        time.sleep(0.05)
