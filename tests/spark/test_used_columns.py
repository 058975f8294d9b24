"""A stream gives the columns that its query has a use for, and no others; what the query writes is the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F
from pyspark.sql.streaming.datasource import ReadAllAvailable

import ottla.spark
from ottla.spark.sink import streaming
from ottla.spark.sink.used_columns import with_used_columns
from ottla.spark.source.datasource import OttlaDataSource
from ottla.spark.source.options import USED_COLUMNS
from ottla.testing import Broker
from tests.spark import topics
from tests.spark.reading import committed_records

ALL = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers"]
Query = Callable[[Any], Any]


def stream(spark: Any, servers: str, topic: str) -> Any:
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest"}
    return spark.readStream.format("ottla").options(**options, includeHeaders="true", maxOffsetsPerTrigger=7).load()


def sources(frame: Any) -> list[list[str]]:
    """The columns of each stream in the plan."""
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
    return [_names(leaves.apply(number).output()) for number in range(leaves.size())]


def _names(columns: Any) -> list[str]:
    return [columns.apply(number).name() for number in range(columns.size())]


@pytest.mark.parametrize("columns", [["key", "value"], ["value", "offset"], ["partition"], ["topic", "headers"], ALL])
def test_a_reader_gives_the_columns_that_are_named(broker: Broker, columns: list[str]) -> None:
    servers = broker.bootstrap_servers
    topic = topics.create(servers, 2)
    topics.produce(servers, topic, range(30), 2)
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest"}
    options |= {"includeHeaders": "true", USED_COLUMNS: ",".join(columns)}
    source = OttlaDataSource(options)
    reader: Any = source.streamReader(source.schema())
    start = reader.initialOffset()
    splits = reader.partitions(start, reader.latestOffset(start, ReadAllAvailable()))
    rows = [row for split in splits for batch in reader.read(split) for row in batch.to_pylist()]
    reader.stop()
    assert all(list(row) == columns for row in rows)
    wanted = {"key": {b"k%d" % number for number in range(30)}, "partition": {0, 1}, "topic": {topic}}
    for name in set(wanted) & set(columns):
        assert {row[name] for row in rows} == wanted[name]
    assert len(rows) == 30


def in_windows(frame: Any) -> Any:
    return frame.withWatermark("timestamp", "1 second").groupBy(F.window("timestamp", "1 second")).count()


def observed(frame: Any) -> Any:
    return frame.repartition(2, "key").observe("rows", F.count("offset").alias("count")).select("value")


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        (lambda frame: frame, [ALL]),
        (lambda frame: frame.select("*"), [ALL]),
        (lambda frame: frame.select("key", "value"), [["key", "value"]]),
        (lambda frame: frame.alias("a").where("a.offset > 3").select("value"), [["value", "offset"]]),
        (lambda frame: frame.where("topic = 't'").drop("headers"), [ALL[:-1]]),
        (in_windows, [["timestamp"]]),
        (lambda frame: frame.selectExpr("'x' as value"), [["partition"]]),
        (lambda frame: frame.dropDuplicates(["key"]).select("value"), [ALL]),
        (lambda frame: frame.select("value").union(frame.select("key")), [["key", "value"], ["key", "value"]]),
        (lambda frame: frame.union(frame).select("value"), [ALL, ALL]),
        (lambda frame: frame.where("offset in (select max(id) from range(3))").select("value"), [ALL]),
        (lambda frame: frame.mapInArrow(lambda rows: rows, frame.schema).select("value"), [ALL]),
        (observed, [["key", "value", "offset"]]),
    ],
)
def test_what_is_not_used_is_not_asked_for(spark: Any, query: Query, columns: list[list[str]]) -> None:
    frame = query(stream(spark, "127.0.0.1:1", "t"))
    less = with_used_columns(frame)
    assert [names for names in sources(less) if names != ["id"]] == columns
    assert less.schema == frame.schema
    assert less.isStreaming


def test_equal_streams_are_one_source_as_before(spark: Any) -> None:
    frame = stream(spark, "127.0.0.1:1", "t")
    less = with_used_columns(frame.select("value").union(frame.select("key")))
    first, second = (less._jdf.queryExecution().analyzed().collectLeaves().apply(number) for number in range(2))
    assert first.equals(second)


@pytest.mark.parametrize(
    "query",
    [
        lambda frame: frame.selectExpr("key", "concat(topic, '/', partition, '/', offset) as value"),
        lambda frame: frame.where("partition = 1").select("key", "value", "headers", "timestamp"),
        lambda frame: frame.select("key", "value").union(frame.selectExpr("value as key", "key as value")),
    ],
)
def test_a_query_goes_on_that_began_with_all_columns(
    spark: Any, broker: Broker, tmp_path: Path, query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = broker.bootstrap_servers
    source, out, reference = topics.create(servers, 2), topics.create(servers, 2), topics.create(servers, 2)

    def run(name: str, topic: str) -> None:
        ottla.spark.write_stream(
            query(stream(spark, servers, source)), name=f"{name}-{source}", bootstrap=servers, topic=topic,
            checkpoint=str(tmp_path / name), trigger={"availableNow": True},
        ).awaitTermination()  # fmt: skip

    topics.produce(servers, source, range(10), 2)
    with monkeypatch.context() as before:
        before.setattr(streaming, "with_used_columns", lambda frame: frame)
        run("query", out)
    topics.produce(servers, source, range(10, 30), 2)
    run("query", out)
    with monkeypatch.context() as before:
        before.setattr(streaming, "with_used_columns", lambda frame: frame)
        run("reference", reference)
    written = Counter(committed_records(servers, out))
    assert written
    assert written == Counter(committed_records(servers, reference))
