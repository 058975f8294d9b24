"""What a task counts of a micro-batch: records in and out, dead letters, late and dropped records, entries of stores.
By the same tasks that run on executors, on a broker, without Spark."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

pytest.importorskip("pyspark")

from ottla.client.fetching import OffsetRange
from ottla.client.settings import parse_named
from ottla.spark.sink.in_tasks import RECORDS_IN, Counts
from ottla.spark.source.ranges import RangeReading, rows_of
from ottla.streams import ErrorHandling, OnError, StreamsBuilder, TimeWindows, Topology, serdes
from ottla.streams.engine.preparing import prepare
from ottla.streams.engine.running import TopologyRun
from ottla.streams.errors import DEFAULT_HANDLING
from ottla.testing import Broker

_numbers = itertools.count(1)
Rows = list[tuple[str | None, str | None, int]]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


class Ran:
    """A topology on one topic with one partition."""

    def __init__(self, broker: Broker, *, has_dead_letters: bool = False) -> None:
        number = next(_numbers)
        self.broker = broker
        self.source, self.out, self.dead = (f"{name}-{number}" for name in ("in", "out", "dead"))
        self.id = f"counts-{number}"
        self.handling = DEFAULT_HANDLING
        if has_dead_letters:
            self.handling = ErrorHandling(OnError.DEAD_LETTER, OnError.DEAD_LETTER, self.dead)
        for topic in (self.source, self.out, self.dead):
            create(broker, topic)

    def run(self, topology: Topology, rows: Rows) -> tuple[Counts, list[dict[str, Any]]]:
        """What is counted of these records, and what is written."""
        servers = self.broker.bootstrap_servers
        settings = parse_named(servers, {})
        prepared = prepare(topology, self.id, settings, self.handling)
        options = {"kafka.bootstrap.servers": servers, "subscribe": self.source, "includeHeaders": "true"}
        run = TopologyRun(
            topology,
            self.id,
            settings,
            prepared.partition_counts,
            self.handling,
            prepared.generation,
            frozenset(prepared.own),
            RangeReading.of(options),
        )
        produce(servers, self.source, rows)
        counts = Counts()
        ranges = rows_of([OffsetRange(self.source, 0, 0, len(rows))])
        written = [row for batch in run(iter([ranges]), counts) for row in batch.to_pylist()]
        again = Counts()
        for _ in run(iter([ranges]), again):
            pass
        assert again == counts  # of another attempt at the same batch, which begins with the state before it
        return counts, [row for row in written if row["topic"] in (self.out, self.dead)]


def create(broker: Broker, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_topics([NewTopic(topic, 1, config={"retention.ms": "-1"})])[topic].result(20)


def produce(servers: str, topic: str, rows: Rows) -> None:
    producer = Producer({"bootstrap.servers": servers})
    for key, value, time_ms in rows:
        producer.produce(topic, value, key, timestamp=time_ms)
    assert producer.flush(20) == 0


def test_records_in_and_out_and_entries(broker: Broker) -> None:
    """What goes to the application's own topics is not among the rows that it writes."""
    ran = Ran(broker)
    builder = StreamsBuilder(key=serdes.string, value=serdes.string)
    words = builder.stream(ran.source).flat_map_values(str.split).group_by_key().count(store="words")
    words.to_stream().map_values(str).to(ran.out)
    counts, written = ran.run(builder.build(), [("a", "x y", 5), ("b", "z", 6), ("c", "", 7)])
    assert counts == {RECORDS_IN: 3, "rows": 3, "late": 0, "dropped": 0, "entries": 2}
    assert [(row["key"], row["value"]) for row in written] == [(b"a", b"1"), (b"a", b"2"), (b"b", b"1")]


def test_late_records_are_counted_as_late_and_as_dropped(broker: Broker) -> None:
    ran = Ran(broker)
    builder = StreamsBuilder(key=serdes.string, value=serdes.string)
    counted = builder.stream(ran.source).group_by_key().windowed_by(TimeWindows.of(10)).count(store="windows")
    counted.to_stream(lambda key, count: key.key).map_values(str).to(ran.out)
    counts, _ = ran.run(builder.build(), [("a", "x", 5), ("a", "x", 25), ("a", "x", 6), (None, "x", 26)])
    assert (counts[RECORDS_IN], counts["rows"], counts["late"], counts["dropped"]) == (4, 2, 1, 2)


def test_dead_letters(broker: Broker) -> None:
    ran = Ran(broker, has_dead_letters=True)
    builder = StreamsBuilder(key=serdes.string, value=serdes.string)
    builder.stream(ran.source).map_values(lambda value: str(10 // int(value))).to(ran.out)
    counts, written = ran.run(builder.build(), [("k", "5", 5), ("k", "0", 5), ("k", "2", 5)])
    # As frames are observed: dead letters are among the rows.
    assert (counts["rows"], counts["dead_letters"], counts["dropped"]) == (3, 1, 1)
    assert sorted(row["topic"] for row in written) == sorted([ran.dead, ran.out, ran.out])


def test_a_range_without_records_counts_none_and_runs_no_task(broker: Broker) -> None:
    """Nothing is written for it: no token, no note."""
    ran = Ran(broker)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": ran.id})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(ran.source, b"x")
    producer.flush(20)
    producer.abort_transaction(20)
    builder = StreamsBuilder(key=serdes.string, value=serdes.string)
    builder.stream(ran.source).to(ran.out)
    servers = broker.bootstrap_servers
    settings = parse_named(servers, {"isolation.level": "read_committed"})
    prepared = prepare(builder.build(), ran.id, settings, ran.handling)
    reading = RangeReading.of(
        {"kafka.bootstrap.servers": servers, "subscribe": ran.source, "includeHeaders": "true"}
        | {"kafka.isolation.level": "read_committed"}
    )
    run = TopologyRun(
        builder.build(), ran.id, settings, prepared.partition_counts, ran.handling, prepared.generation,
        frozenset(prepared.own), reading,
    )  # fmt: skip
    counts = Counts()
    assert list(run(iter([rows_of([OffsetRange(ran.source, 0, 0, 2)])]), counts)) == []
    assert counts == {RECORDS_IN: 0}


def test_a_topic_may_say_that_times_are_those_of_the_broker(broker: Broker) -> None:
    """With `message.timestamp.type=LogAppendTime` a record's own time counts for nothing."""
    ran = Ran(broker)
    servers = broker.bootstrap_servers
    change = ConfigResource(ConfigResource.Type.TOPIC, ran.source)
    change.add_incremental_config(
        ConfigEntry("message.timestamp.type", "LogAppendTime", incremental_operation=AlterConfigOpType.SET)
    )
    admin = AdminClient({"bootstrap.servers": servers})
    admin.incremental_alter_configs([change])[change].result(20)
    before_ms = int(time.time() * 1000)
    builder = StreamsBuilder(key=serdes.string, value=serdes.string)
    builder.stream(ran.source).to(ran.out)
    _, (written,) = ran.run(builder.build(), [("k", "x", 5)])
    assert written["timestamp"].timestamp() * 1000 >= before_ms
