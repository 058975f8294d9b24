"""Row by row what Spark's own connector reads, from Ottla and from Apache Kafka. It needs jars from Maven Central."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.spark import topics
from tests.support.brokers import OttlaProcess
from tests.support.kafka_jars import require_kafka_libs, spark_connector_jars
from tests.support.kafka_peer import KafkaPeer
from tests.support.process import BrokerProcess

pytestmark = pytest.mark.jvm
COMPACTION = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "1000"}
QUICK_CLEANER = {"log.cleaner.backoff.ms": "500", "log.initial.task.delay.ms": "100"}


@pytest.fixture(scope="module", params=["ottla", pytest.param("kafka", marks=pytest.mark.slow)])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    folder: Path = tmp_path_factory.mktemp(request.param)
    if request.param == "kafka":
        require_kafka_libs()
    made = KafkaPeer(folder, QUICK_CLEANER) if request.param == "kafka" else OttlaProcess(folder, QUICK_CLEANER)
    with made as running:
        yield running


def load(spark: Any, source: str, servers: str, **options: Any) -> Any:
    named = {"kafka.bootstrap.servers": servers, "kafka.isolation.level": "read_committed", "includeHeaders": "true"}
    return spark.read.format(source).options(**named, **options).load()


def both(spark: Any, servers: str, **options: Any) -> tuple[set[Any], set[Any]]:
    if not spark_connector_jars():
        pytest.skip("Spark's Kafka connector is not there: run `python tools/fetch_jars.py spark-kafka`")
    ours, theirs = (load(spark, name, servers, **options) for name in ("ottla", "kafka"))
    assert [(one.name, one.dataType) for one in ours.schema] == [(one.name, one.dataType) for one in theirs.schema]
    # To the microsecond and with null headers told from empty ones, which `comparable` would forgive.
    exact = ["topic", "partition", "offset", "timestamp", "headers is null as bare"]
    assert sorted(ours.selectExpr(*exact).collect()) == sorted(theirs.selectExpr(*exact).collect())
    return topics.comparable(ours.collect()), topics.comparable(theirs.collect())


def test_everything_that_a_topic_can_hold(spark: Any, cluster: BrokerProcess) -> None:
    topic = topics.create(cluster.bootstrap, 3)
    topics.produce_everything(cluster.bootstrap, topic, 3, seed=7)
    ours, theirs = both(spark, cluster.bootstrap, subscribe=topic)
    assert ours == theirs
    assert ours == topics.consumed(cluster.bootstrap, topic)


def test_time_that_the_broker_gives(spark: Any, cluster: BrokerProcess) -> None:
    topic = topics.create(cluster.bootstrap, config={"message.timestamp.type": "LogAppendTime"})
    topics.produce(cluster.bootstrap, topic, range(50))
    ours, theirs = both(spark, cluster.bootstrap, subscribe=topic)
    assert ours == theirs
    assert {row[5] for row in ours} == {1}


def test_gaps_that_compaction_leaves(spark: Any, cluster: BrokerProcess) -> None:
    topic = topics.create(cluster.bootstrap, config=COMPACTION)
    for _ in range(4):
        topics.produce(cluster.bootstrap, topic, range(100), are_new=True)
    time.sleep(1.2)
    deadline = time.monotonic() + 60
    while len(topics.consumed(cluster.bootstrap, topic)) > 250:
        topics.produce(cluster.bootstrap, topic, range(1), are_new=True)  # a record rolls the segment that is due
        assert time.monotonic() < deadline
        time.sleep(0.5)
    ours, theirs = both(spark, cluster.bootstrap, subscribe=topic)
    assert ours == theirs


@pytest.mark.parametrize(
    "options",
    [
        {"startingTimestamp": "1050000"},
        {"startingTimestamp": "1050000", "endingTimestamp": "1080000"},
        {"endingTimestamp": "99999999"},
        {"minPartitions": "7"},
    ],
)
def test_bounds(spark: Any, cluster: BrokerProcess, options: dict[str, str]) -> None:
    topic = topics.create(cluster.bootstrap, 2)
    topics.produce(cluster.bootstrap, topic, range(100), 2)
    ours, theirs = both(spark, cluster.bootstrap, subscribe=topic, **options)
    assert ours == theirs
    assert ours
