"""Topologies in the test driver: what they give, what they keep, what they refuse."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import pytest

from ottla.common.errors import OttlaError
from ottla.streams import (
    ErrorHandling,
    OnError,
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    RecordFailed,
    SessionWindows,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    Topology,
    TopologyTestDriver,
    Windowed,
    key_value_store,
    serdes,
)


def texts() -> StreamsBuilder:
    return StreamsBuilder(key=serdes.string, value=serdes.string)


def word_count() -> Topology:
    builder = texts()
    words = builder.stream("lines").flat_map_values(str.split)
    counts = words.group_by(lambda key, word: word).count(store="counts")
    counts.to_stream().to("counts")
    return builder.build()


def test_words_are_counted_and_the_store_can_be_looked_into() -> None:
    with TopologyTestDriver(word_count()) as driver:
        driver.input_topic("lines").pipe("to be or not to be", timestamp=7)
        assert driver.output_topic("counts").read_table() == {"to": 2, "be": 2, "or": 1, "not": 1}
        assert driver.store("counts").get("be").value == 2
        assert [key for key, _ in driver.store("counts").range("be", "or")] == ["be", "not", "or"]


def test_a_change_of_key_goes_through_a_topic_of_the_application() -> None:
    first, second = word_count().sub_topologies()
    assert first.sinks == ("counts-repartition-sink",)
    assert second.sources == ("counts-repartition-source",)
    assert "Sink: counts-repartition-sink (topic: counts-repartition)" in word_count().describe()
    assert "[(counts)]" in word_count().describe_as_mermaid()


def test_a_name_that_is_given_renames_no_other_node() -> None:
    def topology(name: str | None) -> Topology:
        builder = texts()
        builder.stream("in").filter(lambda key, value: True, name=name).map_values(str.upper).to("out")
        return builder.build()

    assert set(topology(None).nodes) - set(topology("wanted").nodes) == {"KSTREAM-FILTER-0000000001"}


def test_records_go_to_the_first_branch_that_wants_them_and_to_the_topic_that_is_chosen() -> None:
    builder = texts()
    branches = (
        builder.stream("in").split(name="by").branch(lambda key, value: value > "m", "late").default_branch("early")
    )
    branches["late"].to("late")
    branches["early"].to(lambda key, value, metadata: f"{metadata.topic}-{value}")
    with TopologyTestDriver(builder.build()) as driver:
        source = driver.input_topic("in")
        source.pipe("z")
        source.pipe("a")
        assert driver.output_topic("late").read_values() == ["z"]
        assert driver.output_topic("in-a", value=serdes.string).read_values() == ["a"]


class Alarm(Processor):
    """Tells of keys that were not heard of for a minute, and says so by the wall clock."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._seen = context.store("seen")
        context.schedule(60_000, PunctuationType.WALL_CLOCK_TIME, self._tell)

    def process(self, record: Record) -> None:
        self._seen.put(record.key, self.context.system_time)

    def _tell(self, now: int) -> None:
        assert self.context.record_metadata is None
        for key, seen in list(self._seen.all()):
            if now - seen >= 60_000:
                self.context.forward(Record(key, "silent", now))
                self._seen.delete(key)


def test_timers_of_the_wall_clock_run_when_it_is_moved() -> None:
    builder = texts()
    builder.add_store(key_value_store("seen", key=serdes.string))
    builder.stream("in").process(Alarm, stores=["seen"]).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.input_topic("in").pipe("x", key="k")
        driver.advance_wall_clock(59_999)
        assert driver.output_topic("out").is_empty()
        driver.advance_wall_clock(1)
        assert driver.output_topic("out").read() == Record("k", "silent", 60_000)


def test_late_records_are_counted_and_go_to_the_topic_that_is_named() -> None:
    builder = texts()
    windows = builder.stream("in").group_by_key().windowed_by(TimeWindows.of(10)).late_to("late")
    windows.count().to_stream(lambda key, count: key.key).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        source = driver.input_topic("in")
        for timestamp in (5, 20, 5):
            source.pipe("x", key="k", timestamp=timestamp)
        assert driver.dropped == {"late": 1}
        assert driver.output_topic("late").read().timestamp == 5


def test_a_session_that_grows_is_taken_back_and_sent_anew() -> None:
    builder = texts()
    sessions = builder.stream("in").group_by_key().windowed_by(SessionWindows.with_gap(10)).count()
    sessions.to_stream().to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.input_topic("in").pipe_all([("k", "x", 0), ("k", "x", 8)])
        found = driver.output_topic("out").read_all()
    assert [(record.key.window, record.value) for record in found] == [((0, 0), 1), ((0, 0), None), ((0, 8), 2)]
    assert all(isinstance(record.key, Windowed) for record in found)


@dataclass
class Order:
    customer: str
    euro: float


def test_dataclasses_are_values() -> None:
    builder = StreamsBuilder(key=serdes.string)
    orders = builder.stream("orders", value=serdes.of(Order))
    spent = orders.group_by_key().aggregate(float, lambda key, order, sum_: sum_ + order.euro, value=serdes.double)
    spent.to_stream().to("spent")
    with TopologyTestDriver(builder.build()) as driver:
        driver.input_topic("orders").pipe(Order("ada", 2.5), key="ada")
        assert driver.output_topic("spent").read_table() == {"ada": 2.5}


def test_avro_values_are_dicts_of_a_schema() -> None:
    pytest.importorskip("fastavro")
    schema = {"type": "record", "name": "Order", "fields": [{"name": "euro", "type": "double"}]}
    builder = StreamsBuilder(key=serdes.string, value=serdes.avro(schema))
    builder.stream("in").filter(lambda key, order: order["euro"] > 1).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.input_topic("in").pipe({"euro": 2.5})
        assert driver.output_topic("out").read_values() == [{"euro": 2.5}]
        with pytest.raises(RecordFailed, match="has a value that cannot be read"):
            driver.pipe_bytes("in", None, b"short", 0)
    assert repr(pickle.loads(pickle.dumps(serdes.avro(schema)))) == "serdes.avro(Order)"
    with pytest.raises(OttlaError, match="not an Avro schema"):
        serdes.avro({"type": "no such type"})


def test_an_aggregator_that_changes_its_object_changes_nothing_but_the_store() -> None:
    builder = StreamsBuilder(key=serdes.string)

    def remember(key: str, value: str, seen: list[str]) -> list[str]:
        seen.append(value)
        return seen

    lists = builder.stream("in").group_by_key().aggregate(list, remember, store="lists")
    lists.group_by(lambda key, seen: ("all", len(seen))).reduce(lambda a, b: a + b, lambda a, b: a - b).to_stream().to(
        "out"
    )
    with TopologyTestDriver(builder.build()) as driver:
        for value in ("x", "y", "z"):
            driver.input_topic("in").pipe(value, key="k")
        assert driver.output_topic("out").read_values()[-1] == 3


# --- what goes wrong


def failing(handling: ErrorHandling) -> TopologyTestDriver:
    builder = StreamsBuilder(key=serdes.string, value=serdes.integer)
    builder.stream("in").map_values(lambda value: 10 // value).to("out")
    return TopologyTestDriver(builder.build(), handling=handling)


def test_an_exception_points_to_the_record_the_node_and_the_line() -> None:
    with failing(ErrorHandling()) as driver:
        sentence = (
            r"in-0@0 cannot be processed in node KSTREAM-MAPVALUES-0000000001: ZeroDivision.*test_topologies\.py, line"
        )
        with pytest.raises(RecordFailed, match=sentence):
            driver.input_topic("in").pipe(0)


def test_an_undecodable_record_fails_is_skipped_or_becomes_a_dead_letter() -> None:
    with failing(ErrorHandling()) as driver, pytest.raises(RecordFailed, match="has a value that cannot be read"):
        driver.pipe_bytes("in", b"k", b"123", 0)
    with failing(ErrorHandling(deserialization=OnError.CONTINUE)) as driver:
        driver.pipe_bytes("in", b"k", b"123", 0)
        assert driver.dropped == {"undecodable": 1}
    letters = ErrorHandling(OnError.DEAD_LETTER, OnError.DEAD_LETTER, "dead")
    with failing(letters) as driver:
        driver.pipe_bytes("in", b"k", b"123", 4)
        letter = driver.output_topic("dead").read()
        assert (letter.key, letter.value, letter.timestamp) == (b"k", b"123", 4)
        assert dict(letter.headers)["ottla.source.offset"] == b"0"


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda b: b.stream("a").join(b.stream("b"), max), "needs JoinWindows"),
        (lambda b: b.stream("a").join(texts().table("b"), max), "different builders"),
        (lambda b: (b.stream("a"), b.table("a")), "is read by source"),
        (lambda b: b.table("a").suppress(Suppressed.until_window_closes()), "no windows"),
        (lambda b: b.stream("a").process(Alarm, stores=["seen"]), "'seen', which was not added"),
        (lambda b: b.stream("a").to("x", name="no name"), "letters, digits"),
        (lambda b: TimeWindows.of(5).advance_by(6), "cannot advance by 6"),
    ],
)
def test_what_cannot_work_is_told_when_it_is_written(make: Any, sentence: str) -> None:
    with pytest.raises(OttlaError, match=sentence):
        make(texts())
