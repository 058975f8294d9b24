"""Batch writes, exactly-once streams and the runner against Apache Kafka: they speak nothing but its protocol."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.spark.pipeline.home import FINISHED
from tests.spark import test_write_stream as streams
from tests.spark import topics
from tests.spark.pipeline.conftest import Running, order
from tests.spark.pipeline.test_runner import copying, customers, read, send
from tests.spark.reading import committed_records
from tests.spark.test_write_batch import save
from tests.support.kafka_jars import require_kafka_libs
from tests.support.kafka_peer import KafkaPeer

pytestmark = pytest.mark.jvm


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    require_kafka_libs()
    with KafkaPeer(tmp_path_factory.mktemp("kafka")) as kafka:
        yield kafka.bootstrap


@pytest.fixture
def pipeline(spark: Any, servers: str, tmp_path: Path, request: pytest.FixtureRequest) -> streams.Pipeline:
    return streams.Pipeline(spark, servers, tmp_path, f"query-{request.node.name}")


@pytest.mark.slow
class TestStreams:
    """The same as on Ottla, with the fixtures of this module."""

    test_replay = staticmethod(streams.test_a_batch_that_was_published_is_not_published_again)
    test_rows_and_offsets = staticmethod(streams.test_rows_go_to_their_topics_and_offsets_to_the_group)
    test_two_writers = staticmethod(streams.test_two_writers_of_one_name_never_both_write)


def test_a_write_is_there_as_a_whole_or_not_at_all(spark: Any, servers: str) -> None:
    topic = topics.create(servers, 2)
    rows = spark.range(1_000).selectExpr("cast(id as string) as key", "cast(id as string) as value")
    save(rows, servers, topic=topic)
    with pytest.raises(Exception, match="partition 7 is not one of the 2"):
        save(rows.selectExpr("value", "if(value = '999', 7, 0) as partition"), servers, topic=topic)
    assert sorted(int(value) for _, value in committed_records(servers, topic)) == list(range(1_000))


def test_the_runner_writes_good_rows_and_dead_letters(spark: Any, servers: str, tmp_path: Path) -> None:
    source, target = topics.create(servers), topics.create(servers)
    send(servers, source, [order("good", 1), b"not JSON", order("below", -1), order("fine", 2)])
    with Running(spark, copying("on-kafka", source, target), servers, tmp_path, once=True) as running:
        running.wait()
    assert running.error is None
    assert customers(servers, target) == ["good", "fine"]
    status = running.home.read()
    assert (status.state, status.rows_in, status.lag) == (FINISHED, 4, 0)
    dead = read(servers, "on-kafka-dead-letters")
    assert [value for _, value, _ in dead] == [b"not JSON", order("below", -1)]
