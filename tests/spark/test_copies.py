"""Queries that only copy: their records are read, encoded and counted in one task of Python, and what comes of it is
what the way through Spark's rows gives. The same query goes that way when it has a filter that lets everything pass."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQueryListener
from pyspark.sql.streaming.query import StreamingQuery

import ottla.spark
from ottla.client.admin.group_offsets import committed_offsets
from ottla.client.cluster import ClusterClient
from ottla.common.errors import OttlaError
from ottla.spark.observed import ROWS_IN, ROWS_OUT
from ottla.spark.pipeline.definition import Pipeline, pipeline
from ottla.spark.sink import copies
from ottla.spark.sink.copy_plan import copy_of
from ottla.spark.sink.copying import NULL, Column, Copy, Counted, IntoNothing
from ottla.spark.sink.in_tasks import RECORDS_IN, Counts
from ottla.spark.sink.publishing import Publisher
from ottla.testing import Broker
from tests.spark import topics
from tests.spark.pipeline.conftest import Running

COPIED = ["key", "value", "headers", "timestamp"]
WAYS = ["in tasks", "through rows"]


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap_servers


def stream(spark: Any, servers: str, topic: str, **options: Any) -> Any:
    given = {"kafka.bootstrap.servers": servers, "subscribe": topic, "includeHeaders": True, **options}
    return spark.readStream.format("ottla").options(startingOffsets="earliest", **given).load()


def by_way(frame: Any, way: str) -> Any:
    """What is not known to Spark's plans as a copy, although it is one."""
    return frame if way == WAYS[0] else frame.where("true")


def write(frame: Any, servers: str, target: str, folder: Path, **more: Any) -> Any:
    settings = {"topic": target, "trigger": {"availableNow": True}, **more}
    name = f"copy-to-{target}"
    query = ottla.spark.write_stream(frame, name=name, bootstrap=servers, checkpoint=str(folder / target), **settings)
    query.awaitTermination()
    return query


def rows_of_spark(query: Any) -> int:
    """As Spark itself has counted them."""
    return sum(each.numInputRows for each in StreamingQuery(query._jsq).recentProgress)


def records(servers: str, topic: str, *, has_times: bool = True) -> list[tuple[Any, ...]]:
    """Partition, key, value, headers, and times that are not those of the writing. Where a record without a key goes
    depends on the task that read it."""
    found = [
        (None if key is None else partition, key, value, headers, (time_ms, kind) if has_times else None)
        for partition, _, key, value, time_ms, kind, headers in topics.consumed(servers, topic)
    ]
    return sorted(found, key=repr)


def contents(servers: str, topic: str) -> list[tuple[Any, ...]]:
    """The same wherever they are."""
    return sorted((row[1:] for row in records(servers, topic)), key=repr)


def noted(servers: str, target: str) -> Any:
    """How far the query has told its group that it is."""
    with ClusterClient(servers) as cluster:
        return {at: each.offset for at, each in committed_offsets(cluster, f"copy-to-{target}").items()}


# --- both ways


@pytest.mark.parametrize(
    "columns",
    [
        COPIED,
        ["cast(value as string) as key", "key as value", "headers"],
        ["'T' as topic", "X'00ff' as key", "cast(topic as binary) as value", "1 as partition", "timestamp"],
    ],
    ids=["as they are", "as others", "literals"],
)
def test_both_ways_write_the_same(spark: Any, servers: str, tmp_path: Path, columns: list[str]) -> None:
    """Of all that a topic can hold: codecs, headers, nulls and tombstones, times, aborted transactions."""
    source = topics.create(servers, 3)
    topics.produce_everything(servers, source, 3)
    there = len(topics.consumed(servers, source))
    found = []
    for way in WAYS:
        target = topics.create(servers, 2)
        selected = [column.replace("'T'", f"'{target}'") for column in columns]
        query = write(by_way(stream(spark, servers, source).selectExpr(*selected), way), servers, target, tmp_path)
        told = [each.numInputRows for each in query.recentProgress]
        assert sum(told) == there
        assert (rows_of_spark(query) < there) == (way == WAYS[0])
        there_now = records(servers, target, has_times="timestamp" in columns)
        found.append((there_now, told, sorted(noted(servers, target).items())))
    assert found[0] == found[1]
    assert len(found[0][0]) == there


def test_a_copy_is_read_by_the_tasks_that_encode_it_and_a_small_one_by_the_driver(
    spark: Any, servers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark has seen ranges: one for each partition in a batch. The first two batches tell how large records are."""
    in_tasks: list[Any] = []
    really = copies.spooled_by_work

    def spooled(*given: Any) -> Any:
        in_tasks.append(given)
        return really(*given)

    monkeypatch.setattr(copies, "spooled_by_work", spooled)
    source, target = topics.create(servers, 2), topics.create(servers, 3)
    topics.produce(servers, source, range(40), 2)
    frame = stream(spark, servers, source, maxOffsetsPerTrigger=10).select("key", "value", "timestamp")
    query = write(frame, servers, target, tmp_path)
    assert [each.numInputRows for each in query.recentProgress if each.numInputRows] == [10] * 4
    assert rows_of_spark(query) == 4 * 2
    assert len(in_tasks) == 2
    assert contents(servers, target) == contents(servers, source)


def test_what_seemed_small_and_is_not_goes_to_the_executors(
    spark: Any, servers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "_HERE_BYTES_MAX", 100)
    source, target = topics.create(servers), topics.create(servers)
    topics.produce(servers, source, range(40), size=50)
    write(stream(spark, servers, source, maxOffsetsPerTrigger=10).select("key", "value"), servers, target, tmp_path)
    assert len(records(servers, target)) == 40


@pytest.mark.parametrize("way", WAYS)
def test_what_is_wrong_with_a_row_is_the_same_sentence(spark: Any, servers: str, tmp_path: Path, way: str) -> None:
    source, target = topics.create(servers), topics.create(servers, 2)
    topics.produce(servers, source, range(3))
    frame = by_way(stream(spark, servers, source), way)
    for columns, told in {
        ("value", "7 as partition"): "partition 7 is not one of the 2",
        ("value", "cast(null as string) as topic"): "a row has no topic: the column 'topic' is null",
    }.items():
        with pytest.raises(OttlaError, match=told):
            write(
                frame.selectExpr(*columns),
                servers,
                target,
                tmp_path / told[:9],
                topic=None if "topic" in told else target,
            )
    assert records(servers, target) == []


@pytest.mark.parametrize("way", WAYS)
def test_more_partitions_are_read_and_a_topic_made_anew_ends_the_query(
    spark: Any, servers: str, tmp_path: Path, way: str
) -> None:
    source, target = topics.create(servers), topics.create(servers)
    topics.produce(servers, source, range(10))
    frame = by_way(stream(spark, servers, source).select(*COPIED), way)
    write(frame, servers, target, tmp_path)
    topics.grow(servers, source, 3)
    topics.produce(servers, source, range(10, 40), 3)
    write(frame, servers, target, tmp_path)
    assert sorted(int(row[2][1:]) for row in records(servers, target)) == list(range(40))
    topics.delete(servers, source)
    topics.create(servers, 3, name=source)
    topics.produce(servers, source, range(100, 200), 3)
    with pytest.raises(Exception, match="was deleted and made anew since it was read"):
        write(frame, servers, target, tmp_path)
    assert len(records(servers, target)) == 40


@pytest.mark.parametrize("again_by", WAYS)
def test_a_batch_that_runs_again_may_go_either_way(
    spark: Any, servers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again_by: str
) -> None:
    """The driver ends before its transaction, and then after it: nothing is lost, and nothing there twice."""
    source, target = topics.create(servers, 2), topics.create(servers, 2)
    topics.produce(servers, source, range(50), 2)
    frame = stream(spark, servers, source, maxOffsetsPerTrigger=30).select(*COPIED)
    publish = Publisher.publish

    def ends(*, is_before: bool) -> Callable[..., None]:
        def published(self: Any, *given: Any) -> None:
            if not is_before:
                publish(self, *given)
            raise OttlaError("the driver died here.")

        return published

    for is_before, way in ((True, WAYS[0]), (False, again_by)):
        monkeypatch.setattr(Publisher, "publish", ends(is_before=is_before))
        with pytest.raises(OttlaError, match="died here"):
            write(by_way(frame, way), servers, target, tmp_path)
    monkeypatch.setattr(Publisher, "publish", publish)
    query = write(by_way(frame, WAYS[0]), servers, target, tmp_path)
    # The first is of the batch that was published before: it is counted, and not written again.
    assert [each.numInputRows for each in query.recentProgress if each.numInputRows] == [30, 20]
    assert contents(servers, target) == contents(servers, source)


# --- pipelines


def copying(name: str, source: str, target: str, way: str) -> Pipeline:
    @pipeline(name=name, to=target)
    def copied(topics: Any) -> Any:
        return by_way(topics.stream(source, maxOffsetsPerTrigger=20), way)

    return copied


def test_a_pipeline_that_copies_is_told_alike(spark: Any, servers: str, tmp_path: Path) -> None:
    source = topics.create(servers, 2)
    topics.produce(servers, source, range(50), 2)
    statuses, batches = [], []
    for number, way in enumerate(WAYS):
        target = topics.create(servers, 2)
        with Running(spark, copying(f"copies-{number}", source, target, way), servers, tmp_path, once=True) as run:
            run.wait()
        assert run.error is None
        status = run.home.read()
        statuses.append((status.rows_in, status.bytes_in, status.rows_out, status.dead_letters, status.lag))
        batches.append([(each.rows_in, each.bytes_in, each.rows_out, each.lag) for each in run.heard.batches])
        assert contents(servers, target) == contents(servers, source)
    assert statuses[0] == statuses[1]
    assert statuses[0][0] == statuses[0][2] == 50
    assert batches[0] == batches[1]


# --- what is a copy


@pytest.fixture
def source(spark: Any) -> Any:
    return stream(spark, "127.0.0.1:1", "t")


def columns_of(frame: Any, *, lineage: bool = False) -> dict[str, Column] | None:
    found = copy_of(frame, lineage=lineage)
    return None if found is None else found[1].columns


def same(*names: str) -> dict[str, Column]:
    return {name: Column(name) for name in names}


COPIES: dict[str, tuple[Callable[[Any], Any], dict[str, Column]]] = {
    "all of it": (lambda t: t, same("key", "value", "topic", "partition", "timestamp", "headers")),
    "some": (lambda t: t.select("value", "key"), same("value", "key")),
    "dropped": (lambda t: t.drop("key", "topic", "partition", "headers"), same("value", "timestamp")),
    "an alias": (lambda t: t.alias("a").select("a.value"), same("value")),
    "renamed twice": (
        lambda t: t.withColumnsRenamed({"key": "k", "value": "key"}).select(F.col("k").alias("value"), "key"),
        {"value": Column("key"), "key": Column("value")},
    ),
    "text and back": (
        lambda t: t.selectExpr("cast(cast(value as string) as binary) as value", "cast(key as string) as key"),
        same("value", "key"),
    ),
    "nothing in every row": (
        lambda t: t.selectExpr("null as value", "null as key", "cast(null as timestamp) as timestamp", "null as topic"),
        {"value": NULL},
    ),
    "what is not written": (
        lambda t: t.selectExpr("value", "upper(cast(key as string)) as k", "rand() as r"),
        same("value"),
    ),
}


@pytest.mark.parametrize("made, wanted", COPIES.values(), ids=COPIES)
def test_a_copy_is_known_by_its_plan(source: Any, made: Callable[[Any], Any], wanted: dict[str, Column]) -> None:
    assert columns_of(made(source)) == wanted


def test_a_copy_in_sql_is_one_too(spark: Any, source: Any) -> None:
    source.createOrReplaceTempView("copied_by_sql")
    found = spark.sql("select 'to' as topic, k as key, value from (select key as k, value from copied_by_sql)")
    assert columns_of(found) == {"topic": Column(None, "to"), **same("key", "value")}
    assert columns_of(spark.sql("select value from copied_by_sql where value is not null")) is None


OTHERS: dict[str, Callable[[Any], Any]] = {
    "a filter": lambda t: t.where("value is not null"),
    "one that lets all pass": lambda t: t.where("true"),
    "a function": lambda t: t.selectExpr("upper(cast(value as string)) as value"),
    "a function of Python": lambda t: t.select(F.udf(lambda v: v, "binary")("value").alias("value")),
    "a key that is computed": lambda t: t.selectExpr("value", "cast(offset as string) as key"),
    "a watermark": lambda t: t.withWatermark("timestamp", "1 second"),
    "without doubles": lambda t: t.select("value").distinct(),
    "rows of their own": lambda t: t.select(F.explode("headers").alias("h"), "value").select("value"),
    "two streams": lambda t: t.select("value").union(t.select("value")),
    "another distribution": lambda t: t.repartition(3),
    "a sample": lambda t: t.sample(0.5),
    "a topic that is made of bytes": lambda t: t.selectExpr("value", "cast(key as string) as topic"),
    "a default": lambda t: t.selectExpr("coalesce(value, key) as value"),
    "other headers": lambda t: t.selectExpr("value", "array(struct('a' as key, value)) as headers"),
    "a time": lambda t: t.selectExpr("value", "current_timestamp() as timestamp"),
    "two of a name": lambda t: t.selectExpr("value", "key", "value as KEY"),
    "watched by somebody": lambda t: t.observe("seen", F.count(F.lit(1)).alias("rows")),
}


@pytest.mark.parametrize("made", OTHERS.values(), ids=OTHERS)
def test_whatever_else_there_is_goes_through_rows(source: Any, made: Callable[[Any], Any]) -> None:
    assert columns_of(made(source)) is None


def test_streams_of_others_are_not_ours(spark: Any) -> None:
    assert columns_of(spark.readStream.format("rate").load().selectExpr("cast(value as string) as value")) is None
    ranges = stream(spark, "127.0.0.1:1", "t", rangesOnly=True)
    assert columns_of(ranges.selectExpr("topic as value")) is None


def test_rows_that_say_what_they_were_made_of_go_through_rows(source: Any) -> None:
    frame = source.selectExpr("value", "topic as _lineage")
    assert columns_of(frame, lineage=True) is None
    assert columns_of(frame) == same("value")


class Listener(StreamingQueryListener):
    def onQueryStarted(self, event: Any) -> None: ...

    def onQueryProgress(self, event: Any) -> None: ...

    def onQueryIdle(self, event: Any) -> None: ...

    def onQueryTerminated(self, event: Any) -> None: ...


def test_somebody_who_listens_to_spark_is_told_of_records(spark: Any, source: Any) -> None:
    """Spark itself would tell him of ranges."""
    listener = Listener()
    spark.streams.addListener(listener)
    try:
        assert columns_of(source) is None
    finally:
        spark.streams.removeListener(listener)
    assert columns_of(source) is not None


def test_headers_are_decoded_only_where_they_are_written(source: Any) -> None:
    for columns, wanted in ((COPIED, True), (["value"], False)):
        found = copy_of(source.select(*columns), lineage=False)
        assert found is not None
        assert found[1].reading.with_headers is wanted


# --- without Spark


def batch(**columns: list[Any]) -> pa.RecordBatch:
    kinds = {"key": pa.binary(), "value": pa.binary(), "topic": pa.string()}
    return pa.RecordBatch.from_pydict({name: pa.array(cells, kinds[name]) for name, cells in columns.items()})


def copy(columns: dict[str, Column], *counted: Counted) -> Copy:
    there = [
        batch(key=[b"a", None], value=[b"abc", b"d"], topic=["t", "dead"]),
        batch(key=[None], value=[None], topic=["t"]),
    ]
    reading: Any = SimpleNamespace(records=lambda rows, reader: iter(there))
    return Copy(reading, columns, counted)


def test_what_is_counted_is_what_spark_would_have_observed() -> None:
    out = Counted(ROWS_OUT, Column("topic"), "dead")
    counts = Counts()
    work = copy(same("value"), Counted(f"{ROWS_IN}1"), out)
    assert [each.num_rows for each in work(iter([]), counts)] == [2, 1]
    assert counts[RECORDS_IN] == 3
    assert work.observed(counts) == {"ottla_in_1": {"rows": 3, "bytes": 5}, "ottla_out": {"rows": 3, "dead_letters": 1}}
    to_dead = copy(same("value"), Counted(ROWS_OUT, Column(None, "dead"), "dead"))
    counts = Counts()
    list(to_dead(iter([]), counts))
    assert to_dead.observed(counts) == {"ottla_out": {"rows": 3, "dead_letters": 3}}
    assert copy(same("value")).observed(counts) == {}


def test_literals_are_in_every_row() -> None:
    columns = {"topic": Column(None, "to"), "key": Column(None, "text"), "value": NULL, "partition": Column(None, 4)}
    found = [each.to_pylist() for each in copy(columns)(iter([]), Counts())]
    row = {"topic": "to", "key": b"text", "value": None, "partition": 4}
    assert found == [[row, row], [row]]


def test_what_was_published_before_is_counted_and_not_written() -> None:
    counts = Counts()
    found = list(IntoNothing(copy(same("value")))(iter([]), counts))
    assert sum(each.num_rows for each in found) == 0
    assert json.loads(json.dumps(counts)) == {RECORDS_IN: 3}
