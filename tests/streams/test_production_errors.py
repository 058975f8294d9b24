"""What a sink cannot write: no bytes for it, no topic, too large, a partition that is not there. The handler of
production errors decides, and nobody else; on executors the cluster is asked before a broker refuses a whole batch."""

from __future__ import annotations

import itertools
import logging
import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from ottla.client import lookup
from ottla.common.errors import OttlaError
from ottla.streams import (
    Application,
    ErrorHandling,
    OnError,
    RecordFailed,
    StreamsBuilder,
    Topology,
    TopologyTestDriver,
    serdes,
)
from ottla.testing import Broker

_numbers = itertools.count(1)


def doubled_and_plain() -> Topology:
    """Two sinks below one stream: the first cannot write what is no integer."""
    builder = StreamsBuilder(key=serdes.string, value=serdes.string)
    values = builder.stream("in").map_values(lambda value: int(value) if value.isdigit() else value)
    values.to("numbers", value=serdes.integer, name="numbers")
    values.to("texts", value=serdes.json)
    return builder.build()


def test_without_a_handler_a_value_that_no_bytes_can_be_made_of_fails_whatever_the_others_say() -> None:
    handling = ErrorHandling(deserialization=OnError.CONTINUE, processing=OnError.CONTINUE)
    sentence = "in-0@0: what comes of it cannot be written to 'numbers' in node numbers: "
    driver = TopologyTestDriver(doubled_and_plain(), handling=handling)
    with driver, pytest.raises(RecordFailed, match=sentence):
        driver.input_topic("in").pipe("x")


def test_going_on_leaves_out_one_result_and_logs_it(caplog: pytest.LogCaptureFixture) -> None:
    handling = ErrorHandling(production=OnError.CONTINUE)
    with TopologyTestDriver(doubled_and_plain(), handling=handling) as driver, caplog.at_level(logging.WARNING):
        for value in ("1", "x", "2"):
            driver.input_topic("in").pipe(value)
        assert driver.output_topic("numbers").read_values() == [1, 2]
        assert driver.output_topic("texts").read_values() == [1, "x", 2]
        assert driver.dropped == {"not written": 1}
    assert ["in-0@1" in record.getMessage() for record in caplog.records] == [True]


def test_only_the_first_of_many_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    handling = ErrorHandling(production=OnError.CONTINUE)
    with TopologyTestDriver(doubled_and_plain(), handling=handling) as driver, caplog.at_level(logging.WARNING):
        for _ in range(30):
            driver.input_topic("in").pipe("x")
        assert driver.dropped == {"not written": 30}
    assert len(caplog.records) == 10 and "counted only" in caplog.records[-1].getMessage()


def test_the_dead_letter_is_the_record_that_came() -> None:
    handling = ErrorHandling(production=OnError.DEAD_LETTER, dead_letter_topic="dead")
    with TopologyTestDriver(doubled_and_plain(), handling=handling) as driver:
        driver.input_topic("in").pipe("x", key="k", timestamp=7, headers=(("h", b"1"),))
        letter = driver.output_topic("dead").read()
    headers = dict(letter.headers)
    assert (letter.key, letter.value, letter.timestamp, headers["h"]) == (b"k", b"x", 7, b"1")
    assert headers["ottla.source.offset"] == b"0" and b"cannot be written to 'numbers'" in headers["ottla.reason"]


def test_dead_letters_of_results_need_a_topic() -> None:
    with pytest.raises(OttlaError, match="dead_letter_topic"):
        ErrorHandling(production=OnError.DEAD_LETTER)


def test_where_there_is_no_cluster_a_partitioner_may_choose_any_partition() -> None:
    builder = StreamsBuilder(key=serdes.string, value=serdes.string)
    builder.stream("in").to("out", partitioner=lambda topic, key, value, count: 7 * count)
    with TopologyTestDriver(builder.build()) as driver:
        driver.input_topic("in").pipe("x")
        assert driver.output_topic("out").read_values() == ["x"]


def test_a_guarantee_that_there_is_not_is_refused() -> None:
    with pytest.raises(OttlaError, match="no processing_guarantee 'exactly_once': choose exactly_once_v2 or at_least"):
        Application("app", doubled_and_plain(), processing_guarantee="exactly_once")
    assert Application("a", doubled_and_plain(), processing_guarantee="at_least_once").called("b").id == "b"


# --- on executors, with a cluster but without Spark


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    pytest.importorskip("pyspark")
    with Broker() as broker:
        yield broker.bootstrap_servers


@pytest.fixture(autouse=True)
def missing_topics_are_believed_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """One broker, which knows its topics: nothing is gained by waiting for those that an application makes itself."""
    monkeypatch.setattr(lookup, "MISSING_TOPIC_TIMEOUT_S", 0.1)


def run_on_an_executor(servers: str, builder: StreamsBuilder, rows: list[Any], handling: ErrorHandling) -> list[Any]:
    """(topic, partition, value) of what comes out, but for the application's own topics."""
    from ottla.client.settings import parse_named
    from ottla.streams.engine.application import StreamsApplication
    from ottla.streams.engine.running import TopologyRun
    from tests.streams.test_engine import batch

    name, topology = f"app-{next(_numbers)}", builder.build()
    prepared = StreamsApplication(topology, application_id=name, bootstrap=servers, handling=handling).prepare()
    settings = parse_named(servers, {})
    run = TopologyRun(topology, name, settings, prepared.partition_counts, handling, prepared.generation)
    made = [row for out in run(iter([batch(*rows)]), Counter()) for row in out.to_pylist()]
    return [(row["topic"], row["partition"], row["value"]) for row in made if row["topic"] not in prepared.own]


def created(servers: str, partitions: int = 1, **settings: str) -> str:
    from tests.spark import topics

    given = {name.replace("_", "."): value for name, value in settings.items()}
    return topics.create(servers, partitions, given, name=f"made-{next(_numbers)}")


def test_a_partitioner_is_told_how_many_partitions_the_topic_has(servers: str) -> None:
    source, out = created(servers), created(servers, 5)
    builder = StreamsBuilder(key=serdes.raw, value=serdes.string)
    builder.stream(source).to(out, partitioner=lambda topic, key, value, count: int(value) % count)
    rows = [(source, 0, number, str(number).encode(), 1, None) for number in range(7)]
    found = run_on_an_executor(servers, builder, rows, ErrorHandling())
    assert [partition for _, partition, _ in found] == [0, 1, 2, 3, 4, 0, 1]


def test_a_partition_that_is_not_there_is_a_production_error(servers: str) -> None:
    source, out = created(servers), created(servers, 2)
    builder = StreamsBuilder(key=serdes.raw, value=serdes.string)
    builder.stream(source).to(out, partitioner=lambda topic, key, value, count: int(value), name="out")
    rows = [(source, 0, number, str(number).encode(), 1, None) for number in range(4)]
    with pytest.raises(RecordFailed, match=f"{source}-0@2: .* node out: partition 2 is not one of its 2"):
        run_on_an_executor(servers, builder, rows, ErrorHandling())
    found = run_on_an_executor(servers, builder, rows, ErrorHandling(production=OnError.CONTINUE))
    assert [partition for _, partition, _ in found] == [0, 1]


def test_records_that_are_too_large_or_have_no_topic_become_dead_letters_and_what_compresses_is_written(
    servers: str,
) -> None:
    source, dead = created(servers), created(servers)
    small = created(servers, max_message_bytes="20000")
    builder = StreamsBuilder(key=serdes.raw, value=serdes.raw)
    builder.stream(source).to(lambda key, value, metadata: "nowhere" if value == b"lost" else small, name="out")
    large = os.urandom(25_000)
    values = [b"a", b"x" * 25_000, large, b"lost", b"b"]
    rows = [(source, 0, number, value, 1, None) for number, value in enumerate(values)]
    handling = ErrorHandling(production=OnError.DEAD_LETTER, dead_letter_topic=dead)
    found = run_on_an_executor(servers, builder, rows, handling)
    assert [value for topic, _, value in found if topic == small] == [b"a", b"x" * 25_000, b"b"]
    assert [value for topic, _, value in found if topic == dead] == [large, b"lost"]


def test_topics_that_are_not_there_are_not_looked_up_for_every_record(
    servers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ottla.streams.engine.outputs import ClusterTopics

    asked = []
    look_up = ClusterTopics._looked_up

    def noted(self: ClusterTopics, topic: str) -> Any:
        asked.append(topic)
        return look_up(self, topic)

    monkeypatch.setattr(ClusterTopics, "_looked_up", noted)
    source = created(servers)
    builder = StreamsBuilder(key=serdes.raw, value=serdes.string)
    builder.stream(source).to(lambda key, value, metadata: value)
    names = ["nowhere-1", "no such name"]
    rows = [(source, 0, number, names[number % 2].encode(), 1, None) for number in range(60)]
    assert run_on_an_executor(servers, builder, rows, ErrorHandling(production=OnError.CONTINUE)) == []
    assert set(asked) == set(names) and len(asked) < 20


def test_batches_are_no_larger_than_the_smallest_topic_takes(servers: str) -> None:
    from ottla.streams.engine.application import StreamsApplication

    source, out = created(servers), created(servers, max_message_bytes="3000")
    builder = StreamsBuilder(key=serdes.raw, value=serdes.raw)
    builder.stream(source).to(out)
    application = StreamsApplication(builder.build(), application_id=f"app-{next(_numbers)}", bootstrap=servers)
    assert application.prepare().batch_bytes == 2_900
