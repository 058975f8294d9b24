"""A stream goes on when leaders and coordinators change: on Apache Kafka, whose brokers are killed in turn."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ottla.spark
from tests.spark import topics
from tests.spark.reading import committed_records
from tests.support.kafka_cluster import KafkaCluster
from tests.support.kafka_jars import require_kafka_libs

pytestmark = [pytest.mark.jvm, pytest.mark.slow]
PARTITIONS = 4


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[KafkaCluster]:
    require_kafka_libs()
    with KafkaCluster(tmp_path / "kafka") as running:
        yield running


def test_leaders_change_and_every_record_is_written_once(spark: Any, kafka: KafkaCluster, tmp_path: Path) -> None:
    source, target = kafka.create("in", PARTITIONS), kafka.create("out", PARTITIONS)
    frame = (
        spark.readStream.format("ottla")
        .option("kafka.bootstrap.servers", kafka.bootstrap)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .load()
    )
    query = ottla.spark.write_stream(
        frame.selectExpr("key", "value"),
        name="led",
        bootstrap=kafka.bootstrap,
        topic=target,
        checkpoint=str(tmp_path / "checkpoint"),
    )
    sent = _go_on(query, kafka, source, target, 0)
    for number in range(4):
        broker = kafka.brokers[number % 2]
        before = kafka.leaders(source)
        broker.kill()
        sent = _go_on(query, kafka, source, target, sent)
        assert kafka.leaders(source) != before, "no leader changed"
        broker.start()
        kafka.await_replicas()
        sent = _go_on(query, kafka, source, target, sent)
    _await(query, kafka, target, sent)
    query.finish()
    assert query.exception() is None
    assert _written(kafka, target) == Counter(b"v%d" % number for number in range(sent))


def _go_on(query: Any, kafka: KafkaCluster, source: str, target: str, sent: int, count: int = 200) -> int:
    """Send more, and wait for what was sent before: the rest is on its way when the caller does the next thing."""
    # Of now: Kafka's retention looks into these logs half a minute after its start.
    topics.produce(kafka.bootstrap, source, range(sent, sent + count), PARTITIONS, are_new=True, acks="all")
    _await(query, kafka, target, sent + 1)
    return sent + count


def _await(query: Any, kafka: KafkaCluster, target: str, count: int) -> None:
    deadline = time.monotonic() + 120
    while sum(_written(kafka, target).values()) < count:
        assert query.exception() is None
        assert time.monotonic() < deadline, "nothing more was written"
        time.sleep(0.2)


def _written(kafka: KafkaCluster, target: str) -> Counter[bytes]:
    return Counter(value for _, value in committed_records(kafka.bootstrap, target))
