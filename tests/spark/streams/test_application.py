"""Topologies on real Spark and a real broker give what the test driver gives, across restarts and failures."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from ottla.common.errors import OttlaError
from ottla.spark.sink import publishing
from ottla.streams import (
    ErrorHandling,
    JoinWindows,
    OnError,
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    StreamsBuilder,
    TimeWindows,
    Topology,
    TopologyTestDriver,
    key_value_store,
    serdes,
)
from ottla.streams.engine.application import StreamsApplication
from ottla.testing import Broker
from tests.spark import topics

_numbers = itertools.count(1)
Rows = list[tuple[str, str | None, str | None, int]]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def servers(broker: Broker) -> str:
    return broker.bootstrap_servers


class Rarely(Processor):
    """Counts values by key and sends the counts every ten milliseconds of stream time."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._counts = context.store("counts-by-timer")
        context.schedule(10, PunctuationType.STREAM_TIME, self._send)

    def process(self, record: Record) -> None:
        self._counts.put(record.key, (self._counts.get(record.key) or 0) + 1)

    def _send(self, now: int) -> None:
        for key, count in self._counts.all():
            self.context.forward(Record(key, f"{count} at {now}", now))


def everything(left: str, right: str, out: str) -> Topology:
    """A windowed aggregate behind a repartition topic, a join with unmatched records, and a processor with a timer."""
    builder = StreamsBuilder(key=serdes.string, value=serdes.string)
    words, others = builder.stream(left), builder.stream(right)
    grouped = words.group_by(lambda key, value: value[0])
    # Records of several partitions meet in the repartition topic in no order of time: none of them is too late.
    windows = TimeWindows.of(20, grace=1000)
    counts = grouped.windowed_by(windows).aggregate(
        str, lambda key, value, before: f"{before}+{value}", store="windows"
    )
    counts.to_stream(lambda key, value: f"window {key.key} {key.window.start}").to(out)
    joined = words.left_join(others, lambda one, other: f"{one}|{other}", JoinWindows.of(7, grace=3), name="pairs")
    joined.map(lambda key, value: (f"pair {key}", value)).to(out)
    builder.add_store(key_value_store("counts-by-timer", key=serdes.string))
    timed = words.process(Rarely, stores=["counts-by-timer"])
    timed.map(lambda key, value: (f"timer {key}", value)).to(out)
    return builder.build()


def expected(topology: Topology, rows: Rows, out: str, keys_of: dict[str, int]) -> dict[str, list[Any]]:
    """By key, of one task for each partition: timers and joins go by the time of their task."""
    found: dict[str, list[Any]] = defaultdict(list)
    for partition in range(2):
        with TopologyTestDriver(topology) as driver:
            for topic, key, value, timestamp in rows:
                if keys_of[str(key)] == partition:
                    driver.input_topic(topic).pipe(value, key=key, timestamp=timestamp)
            for record in driver.output_topic(out).read_all():
                if not record.key.startswith("window"):
                    found[record.key].append((record.value, record.timestamp))
    return found


def produce(servers: str, rows: Rows, keys_of: dict[str, int]) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "linger.ms": 0})
    for topic, key, value, timestamp in rows:
        producer.produce(topic, value, key, partition=keys_of[str(key)], timestamp=timestamp)
        producer.flush(20)


def by_key(servers: str, topic: str) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = defaultdict(list)
    for _partition, _offset, key, value, time_ms, *_ in in_order(servers, topic):
        found[key.decode()].append((None if value is None else value.decode(), time_ms))
    return found


def in_order(servers: str, topic: str) -> list[tuple[Any, ...]]:
    return sorted(topics.consumed(servers, topic), key=lambda row: row[:2])


def some_rows(left: str, right: str, start: int) -> Rows:
    keys, values = ("k", "l", "m"), ("a1", "b2", "a3", "c4")
    return [
        (right if number % 4 == 3 else left, keys[number % 3], values[number % 4], 1000 + start + 3 * number)
        for number in range(24)
    ]


KEYS_OF = {"k": 0, "l": 1, "m": 0}


@pytest.mark.slow
def test_results_and_state_are_those_of_the_test_driver_across_restarts_and_a_lost_batch(
    spark: Any, servers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, right, out = (topics.create(servers, 2, name=f"{name}-{next(_numbers)}") for name in ("left", "right", "out"))
    topology = everything(left, right, out)
    application = StreamsApplication(topology, application_id=f"everything-{next(_numbers)}", bootstrap=servers)
    checkpoint = str(tmp_path / "checkpoint")
    first, second = some_rows(left, right, 0), some_rows(left, right, 72)

    produce(servers, first, KEYS_OF)
    application.run_available(spark, checkpoint=checkpoint)
    produce(servers, second, KEYS_OF)
    publish = publishing.Publisher.publish

    def lose(self: Any, marker: Any, batches: Any) -> None:
        monkeypatch.setattr(publishing.Publisher, "publish", publish)
        raise OttlaError("the driver died here.")

    monkeypatch.setattr(publishing.Publisher, "publish", lose)
    with pytest.raises(OttlaError, match="died here"):
        application.run_available(spark, checkpoint=checkpoint)
    application.run_available(spark, checkpoint=checkpoint)

    found = by_key(servers, out)
    windows = {key: found.pop(key) for key in [*found] if key.startswith("window")}
    assert found == expected(topology, [*first, *second], out, KEYS_OF)
    counted = sum(len(updates[-1][0].split("+")) - 1 for updates in windows.values())
    assert counted == sum(1 for topic, *_ in [*first, *second] if topic == left)
    assert all(
        len(update.split("+")) == place + 2 for each in windows.values() for place, (update, _) in enumerate(each)
    )


def test_bad_records_are_dead_letters_in_the_same_transaction(spark: Any, servers: str, tmp_path: Path) -> None:
    source, out, dead = (topics.create(servers, 1, name=f"{name}-{next(_numbers)}") for name in ("in", "out", "dead"))
    builder = StreamsBuilder(key=serdes.string, value=serdes.string)
    builder.stream(source).map_values(lambda value: str(10 // int(value))).to(out)
    handling = ErrorHandling(OnError.DEAD_LETTER, OnError.DEAD_LETTER, dead)
    application = StreamsApplication(
        builder.build(), application_id=f"letters-{next(_numbers)}", bootstrap=servers, handling=handling
    )
    produce(servers, [(source, "k", value, 5) for value in ("5", "0", "2")], {"k": 0})
    application.run_available(spark, checkpoint=str(tmp_path / "checkpoint"))
    assert by_key(servers, out) == {"k": [("2", 5), ("5", 5)]}
    ((*_, headers),) = in_order(servers, dead)
    reason = dict(headers)["ottla.reason"].decode()
    assert reason.startswith(f"the record {source}-0@1 cannot be processed in node KSTREAM-MAPVALUES-0000000001: ")
    assert "ZeroDivisionError" in reason and "test_application.py, line" in reason


def test_topics_that_meet_need_equally_many_partitions(servers: str) -> None:
    left, right = topics.create(servers, 2), topics.create(servers, 3)
    builder = StreamsBuilder(key=serdes.string, value=serdes.string)
    builder.stream(left).join(builder.table(right), lambda one, other: one).to("out")
    application = StreamsApplication(builder.build(), application_id="uneven", bootstrap=servers)
    with pytest.raises(OttlaError, match=f"'{left}' has 2, '{right}' has 3"):
        application.prepare()


def test_a_topic_that_is_not_there_is_told(servers: str) -> None:
    builder = StreamsBuilder()
    builder.stream("nowhere").to("out")
    with pytest.raises(OttlaError, match="'nowhere' does not exist"):
        StreamsApplication(builder.build(), application_id="lost", bootstrap=servers).prepare()
