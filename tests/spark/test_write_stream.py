"""A stream is written exactly once: crashes, replays, other checkpoints, several outputs, and what is refused."""

from __future__ import annotations

import json
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ottla.spark
from ottla.client.admin.group_offsets import committed_offsets
from ottla.client.admin.transactions import describe_transactions
from ottla.client.cluster import ClusterClient
from ottla.common.errors import OttlaError
from ottla.spark.sink import load, publishing, spooling, streaming
from ottla.spark.sink.driver_spool import driver_spool
from ottla.spark.sink.marker import digest_of
from ottla.testing import Broker
from tests.spark import topics
from tests.spark.pipeline.test_runner import eventually
from tests.spark.reading import committed_records

NOW = {"availableNow": True}


@pytest.fixture
def servers(broker: Broker) -> str:
    return broker.bootstrap_servers


class Pipeline:
    """From a topic of numbers to two topics, a few records at a time."""

    def __init__(self, spark: Any, servers: str, folder: Path, name: str) -> None:
        self.spark, self.servers, self.name = spark, servers, name
        self.checkpoint = folder / "checkpoint"
        self.source = topics.create(servers, 2)
        self.out = [topics.create(servers, 3), topics.create(servers, 1)]

    def stream(self, per_batch: int = 10) -> Any:
        return (
            self.spark.readStream.format("ottla")
            .option("kafka.bootstrap.servers", self.servers)
            .option("subscribe", self.source)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", per_batch)
            .load()
        )

    def shouted(self) -> Any:
        even = "cast(substring(cast(key as string), 2) as int) % 2 = 0"
        return self.stream().selectExpr(
            "key", "upper(cast(value as string)) as value", f"if({even}, '{self.out[0]}', '{self.out[1]}') as topic"
        )

    def run(self, frame: Any, **more: Any) -> Any:
        settings = {"name": self.name, "bootstrap": self.servers, "checkpoint": str(self.checkpoint), "trigger": NOW}
        query = ottla.spark.write_stream(frame, **{**settings, **more})
        query.awaitTermination()
        return query

    def values(self) -> Counter[bytes]:
        return Counter(value for topic in self.out for _, value in committed_records(self.servers, topic))

    def forget_last_commit(self) -> None:
        """As if the driver had crashed after it published and before Spark wrote that down."""
        last = max(
            (one for one in (self.checkpoint / "commits").iterdir() if one.name.isdigit()),
            key=lambda one: int(one.name),
        )
        last.unlink()
        last.with_name(f".{last.name}.crc").unlink(missing_ok=True)


@pytest.fixture
def pipeline(spark: Any, servers: str, tmp_path: Path, request: pytest.FixtureRequest) -> Pipeline:
    return Pipeline(spark, servers, tmp_path, f"query-{request.node.name}")


def expected(numbers: range) -> Counter[bytes]:
    return Counter(b"V%d" % number for number in numbers)


def test_rows_go_to_their_topics_and_offsets_to_the_group(pipeline: Pipeline, servers: str) -> None:
    topics.produce(servers, pipeline.source, range(40), 2)
    pipeline.run(pipeline.shouted())
    topics.produce(servers, pipeline.source, range(40, 50), 2)
    pipeline.run(pipeline.shouted())
    assert pipeline.values() == expected(range(50))
    assert {key for key, _ in committed_records(servers, pipeline.out[1])} == {b"k%d" % n for n in range(1, 50, 2)}
    with ClusterClient(servers) as cluster:
        group = committed_offsets(cluster, pipeline.name)
    assert {where.partition: one.offset for where, one in group.items()} == {0: 25, 1: 25}
    marker = ottla.spark.published(name=pipeline.name, bootstrap=servers)
    assert marker is not None
    assert marker.digest == digest_of({pipeline.source: {"0": 25, "1": 25}})
    assert all(f'"batch":{marker.batch}' in one.metadata for one in group.values())


def test_a_batch_that_was_published_is_not_published_again(pipeline: Pipeline, servers: str) -> None:
    topics.produce(servers, pipeline.source, range(30), 2)
    pipeline.run(pipeline.shouted())
    pipeline.forget_last_commit()
    topics.produce(servers, pipeline.source, range(30, 40), 2)
    pipeline.run(pipeline.shouted())
    assert pipeline.values() == expected(range(40))


def test_without_the_marker_it_would_be_there_twice(
    pipeline: Pipeline, servers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics.produce(servers, pipeline.source, range(30), 2)
    pipeline.run(pipeline.shouted())
    pipeline.forget_last_commit()
    monkeypatch.setattr(publishing, "is_published_already", lambda *_: False)
    pipeline.run(pipeline.shouted())
    assert sum(pipeline.values().values()) > 30


def test_state_survives_a_batch_that_is_not_published_again(pipeline: Pipeline, servers: str) -> None:
    def counted() -> Any:
        keyed = pipeline.stream(per_batch=20).selectExpr("cast(substring(cast(key as string), 2) as int) % 3 as key")
        return keyed.groupBy("key").count().selectExpr("cast(key as string) key", "cast(count as string) value")

    topics.produce(servers, pipeline.source, range(60), 2)
    settings = {"output_mode": "update", "topic": pipeline.out[0]}
    pipeline.run(counted(), **settings)
    pipeline.forget_last_commit()
    topics.produce(servers, pipeline.source, range(60, 90), 2)
    pipeline.run(counted(), **settings)
    counts: dict[bytes, list[int]] = {}
    for key, value in committed_records(servers, pipeline.out[0]):
        counts.setdefault(key, []).append(int(value))
    assert {key: rising[-1] for key, rising in counts.items()} == {b"0": 30, b"1": 30, b"2": 30}
    assert all(sorted(set(rising)) == rising for rising in counts.values())


def test_good_rows_and_dead_letters_share_a_transaction(pipeline: Pipeline, servers: str) -> None:
    topics.produce(servers, pipeline.source, range(30), 2)

    def outputs(batch: Any) -> list[Any]:
        number = "cast(substring(cast(key as string), 2) as int)"
        return [
            batch.where(f"{number} < 20").selectExpr("key", "value"),
            batch.where(f"{number} >= 20").selectExpr(
                f"'{pipeline.out[1]}' topic",
                "value",
                "array(struct('reason' as key, cast('too large' as binary) as value)) headers",
            ),
        ]

    pipeline.run(pipeline.stream(), outputs=outputs, topic=pipeline.out[0])
    assert sorted(value for _, value in committed_records(servers, pipeline.out[0])) == sorted(
        b"v%d" % n for n in range(20)
    )
    assert len(committed_records(servers, pipeline.out[1])) == 10


def test_rows_that_are_not_as_few_as_they_seemed_are_encoded_by_the_executors(
    pipeline: Pipeline, servers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_large(rows: Any, plan: Any) -> Any:
        raise RuntimeError("Total size of serialized results is bigger than spark.driver.maxResultSize")

    monkeypatch.setattr(streaming, "encode_here", too_large)
    topics.produce(servers, pipeline.source, range(40), 2)
    pipeline.run(pipeline.shouted())
    assert pipeline.values() == expected(range(40))


@pytest.mark.parametrize("small_bytes", [0, 1 << 20], ids=["executors", "driver"])
def test_wherever_rows_are_encoded_they_are_written_alike(
    pipeline: Pipeline, servers: str, monkeypatch: pytest.MonkeyPatch, small_bytes: int
) -> None:
    """The first two batches tell how much comes out of a record; then few rows are encoded on the driver."""
    seen: list[int] = []

    def noted(rows: Any, plan: Any) -> Any:
        seen.append(plan.turn)
        return spooling.encode_here(rows, plan)

    monkeypatch.setattr(load, "SMALL_BYTES", small_bytes)
    monkeypatch.setattr(streaming, "encode_here", noted)
    topics.produce(servers, pipeline.source, range(40), 2)
    number = "cast(substring(cast(key as string), 2) as int)"
    frame = pipeline.stream().selectExpr(
        f"if({number} % 5 = 0, null, cast(key as string)) as key",
        "value",
        f"if({number} % 2 = 0, '{pipeline.out[0]}', null) as topic",
        f"if({number} % 2 = 0, {number} % 3, 0) as partition",
        "array(struct('n' as key, key as value)) as headers",
        f"timestamp_millis(5000 + {number}) as timestamp",
    )
    pipeline.run(frame, topic=pipeline.out[1])
    assert seen == ([2, 3] if small_bytes else [])
    for parity in range(2):
        # partition, key, value, time, headers
        found = Counter((*row[:1], *row[2:5], row[6]) for row in topics.consumed(servers, pipeline.out[parity]))
        assert found == Counter(
            (
                0 if parity else number % 3,
                None if number % 5 == 0 else b"k%d" % number,
                b"v%d" % number,
                5_000 + number,
                (("n", b"k%d" % number),),
            )
            for number in range(parity, 40, 2)
        )


def test_another_checkpoint_under_the_same_name_is_refused_until_the_name_is_forgotten(
    pipeline: Pipeline, servers: str, tmp_path: Path
) -> None:
    topics.produce(servers, pipeline.source, range(10), 2)
    pipeline.run(pipeline.shouted())
    pipeline.checkpoint = tmp_path / "another"
    with pytest.raises(OttlaError, match=r"was written by another query .* use its checkpoint, or another name"):
        pipeline.run(pipeline.shouted())
    assert pipeline.values() == expected(range(10))
    ottla.spark.forget(name=pipeline.name, bootstrap=servers)
    pipeline.checkpoint = tmp_path / "third"
    pipeline.run(pipeline.shouted())
    assert pipeline.values() == expected(range(10)) + expected(range(10))


def test_a_lost_checkpoint_can_go_on_from_the_group(pipeline: Pipeline, servers: str, tmp_path: Path) -> None:
    topics.produce(servers, pipeline.source, range(10), 2)
    pipeline.run(pipeline.shouted())
    topics.produce(servers, pipeline.source, range(10, 20), 2)
    position = ottla.spark.committed_offsets(group=pipeline.name, bootstrap=servers)
    ottla.spark.forget(name=pipeline.name, bootstrap=servers)
    pipeline.checkpoint = tmp_path / "new"
    stream = (
        pipeline.spark.readStream.format("ottla")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", pipeline.source)
        .option("startingOffsets", position)
        .load()
    )
    pipeline.run(stream.selectExpr("upper(cast(value as string)) value"), topic=pipeline.out[0])
    assert pipeline.values() == expected(range(20))


def test_a_group_that_knows_other_topics_too_says_where_these_stand(
    pipeline: Pipeline, servers: str, tmp_path: Path
) -> None:
    topics.produce(servers, pipeline.source, range(10), 2)
    no_longer_read = topics.create(servers)
    both = pipeline.stream().union(
        pipeline.spark.readStream.format("ottla")
        .options(**{"kafka.bootstrap.servers": servers, "subscribe": no_longer_read})
        .load()
    )
    pipeline.run(both.selectExpr("upper(cast(value as string)) value"), topic=pipeline.out[0])
    topics.grow(servers, pipeline.source, 3)
    position = ottla.spark.committed_offsets(group=pipeline.name, bootstrap=servers, topics=[pipeline.source])
    assert json.loads(position) == {pipeline.source: {"0": 5, "1": 5, "2": -2}}
    everything = ottla.spark.committed_offsets(group=pipeline.name, bootstrap=servers)
    assert json.loads(everything).keys() == {pipeline.source, no_longer_read}


def test_outputs_may_be_none_at_all_but_nothing_odd(pipeline: Pipeline, servers: str) -> None:
    topics.produce(servers, pipeline.source, range(10), 2)
    pipeline.run(pipeline.stream(), outputs=lambda batch: [])
    assert pipeline.values() == Counter()
    position = ottla.spark.committed_offsets(group=pipeline.name, bootstrap=servers)
    assert json.loads(position) == {pipeline.source: {"0": 5, "1": 5}}
    topics.produce(servers, pipeline.source, range(10, 20), 2)
    stream = pipeline.stream()
    for odd, said in (
        (None, "returned nothing"),
        ({}, "returned an empty dict"),
        (["value"], "returned a list with a str in it"),
        ("value", "returned a str"),
        (stream, "returned a stream"),
    ):
        with pytest.raises(OttlaError, match=f"`outputs` .*{said}"):
            pipeline.run(pipeline.stream(), outputs=lambda batch, odd=odd: odd)
    pipeline.run(pipeline.shouted())
    assert pipeline.values() == expected(range(10, 20))


def test_a_query_that_ended_holds_no_connections(pipeline: Pipeline, servers: str) -> None:
    before = connections_to(servers)
    topics.produce(servers, pipeline.source, range(10), 2)
    pipeline.run(pipeline.shouted())
    assert connections_to(servers) == before
    topics.produce(servers, pipeline.source, range(10, 20), 2)
    with pytest.raises(OttlaError, match="there is no topic"):
        pipeline.run(pipeline.shouted().selectExpr("value", "'no-such-topic' as topic"))
    assert connections_to(servers) == before
    settings: dict[str, Any] = {"name": pipeline.name, "bootstrap": servers, "checkpoint": str(pipeline.checkpoint)}
    query = ottla.spark.write_stream(pipeline.shouted(), **settings)
    query.processAllAvailable()
    query.stop()
    assert pipeline.values() == expected(range(20))
    assert connections_to(servers) == before


def connections_to(servers: str) -> int:
    """Open ones of this process, by the kernel's table."""
    port = f"{int(servers.rpartition(':')[2]):04X}"
    rows = [line.split() for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]]
    ends = {f"socket:[{row[9]}]" for row in rows if row[2].endswith(f":{port}") and row[3] == "01"}
    return sum(os.readlink(one) in ends for one in Path("/proc/self/fd").iterdir() if one.is_symlink())


def test_two_writers_of_one_name_never_both_write(pipeline: Pipeline, servers: str) -> None:
    topics.produce(servers, pipeline.source, range(10), 2)
    settings: dict[str, Any] = {"name": pipeline.name, "bootstrap": servers, "checkpoint": str(pipeline.checkpoint)}
    first = ottla.spark.write_stream(pipeline.shouted(), **settings)
    first.processAllAvailable()
    ottla.spark.forget(name=pipeline.name, bootstrap=servers)  # as a second one does: it takes the name over
    topics.produce(servers, pipeline.source, range(10, 20), 2)
    with pytest.raises(OttlaError, match="another writer has taken over"):
        first.awaitTermination(60)
    assert pipeline.values() == expected(range(10))


def test_no_transaction_is_open_while_a_task_still_encodes(pipeline: Pipeline, servers: str, tmp_path: Path) -> None:
    """Its time-out counts from when all is there, however long the rows of a batch take."""
    topics.produce(servers, pipeline.source, range(10), 2)
    may_end = tmp_path / "may end"

    def slowly(rows: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        while context is not None and context.partitionId() and not may_end.exists():
            time.sleep(0.02)
        yield from rows

    def is_partly_spooled() -> bool:
        """A task's file is there under the name that it gets when it is whole."""
        names = [path.name for path in driver_spool(pipeline.spark).open_folder().path.rglob("*")]
        return any(re.fullmatch(r"\d+-\d+", name) for name in names)

    frame = pipeline.shouted().repartition(2)
    settings = {"name": pipeline.name, "bootstrap": servers, "checkpoint": str(pipeline.checkpoint), "trigger": NOW}
    query = ottla.spark.write_stream(frame.mapInArrow(slowly, frame.schema), **settings)
    try:
        eventually(is_partly_spooled)
        with ClusterClient(servers) as cluster:
            found = describe_transactions(cluster, [pipeline.name])[pipeline.name]
        assert found is not None
        assert found.state == "Empty"
    finally:
        may_end.touch()
    query.awaitTermination()
    assert pipeline.values() == expected(range(10))


@pytest.mark.parametrize(
    ("settings", "timeout_ms"),
    [
        ({}, 60_000),
        ({"kafka": {"transaction.timeout.ms": "70000"}}, 70_000),
        ({"kafka": {"kafka.transaction.timeout.ms": "70000"}, "transaction_timeout_ms": 80_000}, 80_000),
        ({"kafka": {"transaction.timeout.ms": "900001"}}, None),
    ],
)
def test_the_time_out_of_a_transaction_is_kafkas_setting(
    pipeline: Pipeline, servers: str, settings: dict[str, Any], timeout_ms: int | None
) -> None:
    topics.produce(servers, pipeline.source, range(10), 2)
    if timeout_ms is None:
        with pytest.raises(OttlaError, match=r"is 900001, which is more than the cluster's transaction\.max\.timeout"):
            pipeline.run(pipeline.shouted(), **settings)
        return
    pipeline.run(pipeline.shouted(), **settings)
    with ClusterClient(servers) as cluster:
        found = describe_transactions(cluster, [pipeline.name])[pipeline.name]
    assert found is not None
    assert found.timeout_ms == timeout_ms


@pytest.mark.parametrize(
    ("change", "settings", "words"),
    [
        (lambda frame: frame.selectExpr("key"), {}, "a column 'value' is missing"),
        (lambda frame: frame.selectExpr("1 as value"), {}, "the column 'value' is int, which cannot be written"),
        (lambda frame: frame, {"topic": "no-such-topic"}, "there is no topic 'no-such-topic'"),
        (lambda frame: frame.drop("topic"), {"topic": None}, "say where rows go"),
        (lambda frame: frame, {"compression": "rar"}, "there is no compression 'rar'"),
        (lambda frame: frame, {"bootstrap": "127.0.0.1:1"}, "cannot reach any broker at 127.0.0.1:1"),
        (lambda frame: frame, {"bootstrap": "nowhere"}, "which is not of the form host:port"),
        (lambda frame: frame, {"transaction_timeout_ms": 0}, "transaction.timeout.ms wants a whole number above 0"),
    ],
)
def test_what_cannot_work_is_said_in_one_sentence_before_anything_starts(
    pipeline: Pipeline, change: Callable[[Any], Any], settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(OttlaError, match=words):
        pipeline.run(change(pipeline.stream()), **{"topic": pipeline.out[0], **settings})


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (["value", "'no-such-topic' as topic"], "there is no topic 'no-such-topic'"),
        (["value", "cast(null as string) as topic"], "a row has no topic"),
        (["value", "7 as partition", "'{out}' as topic"], "partition 7 is not one of the 3"),
    ],
)
def test_rows_that_cannot_be_written_end_the_query_in_one_sentence(
    pipeline: Pipeline, servers: str, columns: list[str], words: str
) -> None:
    topics.produce(servers, pipeline.source, range(10), 2)
    frame = pipeline.stream().selectExpr(*(one.format(out=pipeline.out[0]) for one in columns))
    with pytest.raises(OttlaError, match=words):
        pipeline.run(frame)
    assert not pipeline.values()


def test_a_batch_that_runs_again_sends_its_keys_where_it_did(
    pipeline: Pipeline, servers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = pipeline.out[0]
    topics.produce(servers, pipeline.source, range(40), 2)
    frame = pipeline.stream(per_batch=100).select("key", "value")
    with monkeypatch.context() as patched:

        def fail(*_: Any) -> None:
            raise OttlaError("not now.")

        patched.setattr(publishing.Publisher, "publish", fail)
        with pytest.raises(OttlaError, match="not now"):
            pipeline.run(frame, topic=target)
    topics.grow(servers, target, 24)
    topics.produce(servers, pipeline.source, range(40, 240), 2)
    pipeline.run(frame, topic=target)
    used: dict[bool, set[int]] = {True: set(), False: set()}
    for partition, _, key, *_ in topics.consumed(servers, target):
        used[int(key[1:]) < 40].add(partition)
    assert used[True] <= {0, 1, 2} < used[False]
