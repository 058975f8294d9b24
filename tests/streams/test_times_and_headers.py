"""What a record has besides its key and value: its time, by the rules of Kafka Streams, its headers, and its place."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Self

from ottla.streams import (
    JoinWindows,
    Processor,
    PunctuationType,
    Record,
    StreamsBuilder,
    TimeWindows,
    TopologyTestDriver,
    serdes,
)


def texts() -> StreamsBuilder:
    return StreamsBuilder(key=serdes.string, value=serdes.string)


def test_the_time_of_a_record_is_what_its_payload_says() -> None:
    """And windows, late records and stream time follow it. An extractor is told of the time of the record, and of the
    latest that its task has seen."""
    told = []

    def extractor(key: str, value: dict[str, Any], record_time: int, stream_time: int) -> int:
        told.append((record_time, stream_time))
        return int(value.get("at", record_time))

    builder = StreamsBuilder(key=serdes.string)
    counts = builder.stream("in", timestamp_extractor=extractor).group_by_key().windowed_by(TimeWindows.of(10)).count()
    counts.to_stream(lambda key, count: f"{key.key}@{key.window.start}").to("out")
    with TopologyTestDriver(builder.build()) as driver:
        source = driver.input_topic("in")
        for at, time_ms in ((25, 900), (21, 901), (3, 902)):
            source.pipe({"at": at}, key="k", timestamp=time_ms)
        source.pipe({}, key="k", timestamp=26)
        found = [(each.key, each.value, each.timestamp) for each in driver.output_topic("out").read_all()]
        assert driver.dropped == {"late": 1}
    assert found == [("k@20", 1, 25), ("k@20", 2, 25), ("k@20", 3, 26)]
    assert told == [(900, -1), (901, 25), (902, 25), (26, 25)]


def test_processing_time_is_an_extractor_that_asks_a_clock() -> None:
    now = [1_000]
    builder = texts()
    builder.stream("in", timestamp_extractor=lambda key, value, record_time, stream_time: now[0]).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.input_topic("in").pipe("x", timestamp=5)
        now[0] = 2_000
        driver.input_topic("in").pipe("y", timestamp=4)
        assert [each.timestamp for each in driver.output_topic("out").read_all()] == [1_000, 2_000]


class Ticking(Processor):
    def init(self, context: Any) -> None:
        super().init(context)
        context.schedule(10, PunctuationType.STREAM_TIME, lambda now: context.forward(Record("tick", str(now), now)))

    def process(self, record: Record) -> None:
        self.context.forward(record)


def test_results_have_the_times_of_what_they_are_made_of() -> None:
    """Forwarded: that of the record; of an aggregate and a join: the latest; of a timer: what it gives."""
    builder = texts()
    stream = builder.stream("in")
    stream.map_values(str.upper).to("mapped")
    stream.group_by_key().count().to_stream().map_values(str).to("counted")
    table = builder.table("table", store="t")
    stream.join(table, lambda one, other: one + other).to("joined")
    stream.process(Ticking).to("ticks")
    with TopologyTestDriver(builder.build()) as driver:
        driver.input_topic("table").pipe("!", key="k", timestamp=15)
        for value, time_ms in (("a", 12), ("b", 31), ("c", 20)):
            driver.input_topic("in").pipe(value, key="k", timestamp=time_ms)
        found = {
            name: [(each.value, each.timestamp) for each in driver.output_topic(name).read_all()]
            for name in ("mapped", "counted", "joined", "ticks")
        }
    assert found["mapped"] == [("A", 12), ("B", 31), ("C", 20)]
    assert found["counted"] == [("1", 12), ("2", 31), ("3", 31)]
    # The time of a stream joined with a table is that of the stream's record.
    assert found["joined"] == [("a!", 12), ("b!", 31), ("c!", 20)]
    assert [value for value, _ in found["ticks"] if value.isalpha()] == ["a", "b", "c"]
    assert all(int(value) == time_ms for value, time_ms in found["ticks"] if not value.isalpha())


def test_a_join_waits_for_no_side_that_is_idle() -> None:
    """Where the other side has sent nothing at all, what has no partner is told when its window closes."""
    builder = texts()
    window = JoinWindows.of(10, grace=0)
    builder.stream("a").left_join(builder.stream("b"), lambda one, other: f"{one}{other}", window).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        for value, time_ms in (("x", 0), ("y", 5), ("z", 100)):
            driver.input_topic("a").pipe(value, key="k", timestamp=time_ms)
        assert driver.output_topic("out").read_values() == ["xNone", "yNone"]


class Looking(Processor):
    def process(self, record: Record) -> None:
        place = self.context.record_metadata
        assert place is not None
        more = (*record.headers, ("place", f"{place.topic}-{place.partition}@{place.offset}".encode()))
        self.context.forward(record.with_headers(more))


def test_headers_go_with_their_record_and_a_processor_sees_where_it_comes_from() -> None:
    builder = texts()
    words = builder.stream("in").filter(lambda key, value: value != "-").flat_map_values(str.split)
    words.select_key(lambda key, word: word).repartition(name="words").process(Looking).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        source = driver.input_topic("in")
        source.pipe("-", headers=(("h", b"0"),))
        source.pipe("a b", headers=(("h", b"1"), ("h", None)))
        found = [(each.value, each.headers) for each in driver.output_topic("out").read_all()]
    kept = (("h", b"1"), ("h", None))
    topic = "test-words-repartition"
    assert found == [
        ("a", (*kept, ("place", f"{topic}-0@0".encode()))),
        ("b", (*kept, ("place", f"{topic}-0@1".encode()))),
    ]


@dataclass
class Order:
    """In the style of pydantic."""

    id: int

    @classmethod
    def model_validate_json(cls, data: bytes) -> Self:
        return cls(int(json.loads(data)["id"]))

    def model_dump_json(self) -> str:
        return json.dumps({"id": self.id, "by": "model"})


def test_models_in_the_style_of_pydantic_are_values() -> None:
    builder = StreamsBuilder(key=serdes.string, value=serdes.of(Order))
    builder.stream("in").map_values(lambda order: Order(order.id + 1)).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.input_topic("in").pipe(Order(1))
        assert driver.output_topic("out", value=serdes.json).read_values() == [{"id": 2, "by": "model"}]
