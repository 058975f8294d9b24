"""A topic that was deleted and made anew, or a log that was cut, is not taken for the one that was read before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.streaming.datasource import ReadAllAvailable

from ottla.client.fetching import DataLoss
from ottla.testing import Broker
from tests.spark import topics
from tests.spark.planned import LIMIT, numbers, source, values
from tests.support.kafka_jars import require_kafka_libs
from tests.support.kafka_peer import KafkaPeer

KAFKA = pytest.param("kafka", marks=[pytest.mark.slow, pytest.mark.jvm])


@pytest.fixture(scope="module", params=["ottla", KAFKA])
def servers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "kafka":
        require_kafka_libs()
        with KafkaPeer(folder) as kafka:
            yield kafka.bootstrap
    else:
        with Broker(data_dir=folder) as broker:
            yield broker.bootstrap_servers


def read_once(servers: str, count: int = 6) -> tuple[str, Any, Any]:
    """A topic, and where a query that read it began and ended."""
    topic = topics.create(servers)
    topics.produce(servers, topic, range(count))
    reader = source(servers, topic)
    start = reader.initialOffset()
    end = reader.latestOffset(start, LIMIT)
    assert numbers(reader, start, end) == list(range(count))
    return topic, start, end


def make_anew(servers: str, topic: str, count: int) -> None:
    topics.delete(servers, topic)
    topics.create(servers, name=topic)
    topics.produce(servers, topic, range(100, 100 + count))


@pytest.mark.parametrize("count", [8, 6, 3])
@pytest.mark.parametrize("limit", [LIMIT, ReadAllAvailable()])
def test_whether_it_is_longer_or_shorter_than_what_was_read(servers: str, count: int, limit: Any) -> None:
    topic, _, before = read_once(servers)
    make_anew(servers, topic, count)
    again = source(servers, topic)
    end = again.latestOffset(before, limit)
    assert end != before
    with pytest.raises(DataLoss, match=f"topic {topic} was deleted and made anew since it was read"):
        again.partitions(before, end)
    tolerant = source(servers, topic, failOnDataLoss="false")
    end = tolerant.latestOffset(before, limit)
    assert numbers(tolerant, before, end) == list(range(100, 100 + count))
    assert tolerant.latestOffset(end, limit) == end


def test_between_planning_and_reading(servers: str) -> None:
    topic, start, end = read_once(servers)
    for tolerant, expected in ((False, None), (True, [])):
        reader = source(servers, topic, failOnDataLoss=str(not tolerant).lower())
        splits = reader.partitions(start, end)
        make_anew(servers, topic, 8)
        if expected is None:
            with pytest.raises(DataLoss, match=f"topic {topic} was deleted and made anew before it was read"):
                values(reader, splits)
            start, end = reader.initialOffset(), reader.latestOffset(reader.initialOffset(), LIMIT)
        else:
            assert values(reader, splits) == expected


def test_a_batch_that_is_run_again(servers: str) -> None:
    topic, start, end = read_once(servers)
    make_anew(servers, topic, 8)
    with pytest.raises(DataLoss, match=f"topic {topic} was deleted and made anew before it was read"):
        source(servers, topic).partitions(start, end)
    assert numbers(source(servers, topic, failOnDataLoss="false"), start, end) == []


def test_a_checkpoint_without_ids_is_gone_on_with(servers: str) -> None:
    topic, _, _ = read_once(servers)
    reader = source(servers, topic)
    old = {topic: {"0": 2}}
    end = reader.latestOffset(old, LIMIT)
    assert end[topic]["0"] == 6
    assert "id" in end[topic]
    assert numbers(reader, old, end) == [2, 3, 4, 5]
    assert reader.latestOffset({topic: {"0": 6}}, LIMIT) == {topic: {"0": 6}}
    assert numbers(source(servers, topic), old, {topic: {"0": 4}}) == [2, 3]


def test_a_topic_that_grows_is_the_same(servers: str) -> None:
    topic, _, before = read_once(servers)
    topics.grow(servers, topic, 2)
    topics.produce(servers, topic, range(6, 10), 2)
    reader = source(servers, topic)
    end = reader.latestOffset(before, LIMIT)
    assert end[topic]["id"] == before[topic]["id"]
    assert numbers(reader, before, end) == [6, 7, 8, 9]
    assert reader.latestOffset(end, LIMIT) == end
