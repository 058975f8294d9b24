"""A real producer and consumer under a quota, with Kafka's own windows, on Kafka and on Ottla at the same time."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.support.brokers import OttlaProcess
from tests.support.kafka_jars import require_kafka_libs
from tests.support.kafka_peer import KafkaPeer
from tests.support.process import BrokerProcess
from tests.support.quotas import set_quota
from tests.support.raw_client import RawClient

pytestmark = [pytest.mark.jvm, pytest.mark.slow]

KIB = 1024
LIMIT = 500 * KIB
SPAN_S = 30
RECORD = bytes(10 * KIB)
CLIENT = {"client.id": "slow", "log_level": 0}


def produced(bootstrap: str) -> float:
    """Bytes a second that were acknowledged."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, **CLIENT, "batch.size": 50 * KIB, "queue.buffering.max.kbytes": 500}
    )
    total = 0

    def count(error: object, message: Any) -> None:
        nonlocal total
        total += 0 if error else len(message.value())

    began = time.monotonic()
    while time.monotonic() < began + SPAN_S:
        try:
            producer.produce("t", RECORD, on_delivery=count)
        except BufferError:
            producer.poll(0.02)
        producer.poll(0)
    rate = total / (time.monotonic() - began)
    producer.purge()
    producer.flush(5)
    return rate


def consumed(bootstrap: str) -> float:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, **CLIENT, "group.id": "g", "fetch.message.max.bytes": 50 * KIB}
    )
    consumer.assign([TopicPartition("full", 0, 0)])
    total, began = 0, time.monotonic()
    while time.monotonic() < began + SPAN_S:
        record = consumer.poll(0.05)
        if record is not None and record.error() is None:
            total += len(record.value())
    rate = total / (time.monotonic() - began)
    consumer.close()
    return rate


def used(broker: BrokerProcess, run: Callable[..., Any]) -> tuple[float, float]:
    with broker:
        filler = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        for _ in range(SPAN_S * LIMIT * 2 // len(RECORD)):
            filler.produce("full", RECORD)
            filler.poll(0)
        assert filler.flush(120) == 0
        host, _, port = broker.bootstrap.rpartition(":")
        with RawClient(host, int(port)) as admin:
            set_quota(admin, {"client-id": "slow"}, producer_byte_rate=LIMIT, consumer_byte_rate=LIMIT)
        time.sleep(2)  # Kafka tells its parts of a quota one after the other
        writing, reading = run(produced, broker.bootstrap), run(consumed, broker.bootstrap)
        return writing.result(), reading.result()


def test_over_half_a_minute_a_client_gets_what_kafka_gives_it(tmp_path: Path) -> None:
    """Of what was set a consumer gets all, and a producer a tenth more, from both."""
    require_kafka_libs()
    with ThreadPoolExecutor(6) as threads:
        theirs = threads.submit(used, KafkaPeer(tmp_path / "kafka"), threads.submit)
        ours = threads.submit(used, OttlaProcess(tmp_path / "ottla"), threads.submit)
        for kafka, ottla in zip(theirs.result(), ours.result(), strict=True):
            assert ottla == pytest.approx(kafka, rel=0.1)
            assert ottla == pytest.approx(LIMIT, rel=0.2)
