"""What a program gets wrong is told where it is written, and what looks right does what it looks like."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.common.errors import OttlaError
from ottla.streams import (
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    RecordFailed,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    TimeWindows,
    TopologyTestDriver,
    serdes,
)
from ottla.streams.processing.punctuation import Schedules

KEEP = lambda key, value, aggregate: aggregate  # noqa: E731


def texts() -> StreamsBuilder:
    return StreamsBuilder(key=serdes.string, value=serdes.string)


def cogrouped(builder: StreamsBuilder) -> Any:
    return builder.stream("a").group_by_key().cogroup(KEEP)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda b: b.stream("a").merge(texts().stream("b")), "different builders"),
        (lambda b: cogrouped(b).cogroup(texts().stream("b").group_by_key(), KEEP), "different builders"),
        (lambda b: cogrouped(b).windowed_by(TimeWindows.of(5)).count(), "aggregator of its own"),
        (lambda b: cogrouped(b).windowed_by(TimeWindows.of(5)).reduce(max), "aggregator of its own"),
        (lambda b: cogrouped(b).windowed_by(SessionWindows.with_gap(5)).count(), "aggregator of its own"),
        (lambda b: cogrouped(b).windowed_by(TimeWindows.of(5)).aggregate(str, KEEP), "aggregator of its own"),
        (lambda b: b.stream("a").group_by_key().windowed_by(TimeWindows.of(5)).aggregate(str), "needs an aggregator"),
        (lambda b: b.stream("a").group_by_key().windowed_by(5), "windowed_by takes windows"),
        (lambda b: b.stream("a").join(b.stream("b"), max, TimeWindows.of(5)), "JoinWindows, not TimeWindows"),
        (lambda b: b.stream("a").join("b", max), "a stream is joined with a stream or a table, not str"),
        (lambda b: b.table("a").join(b.stream("b"), max), "a table is joined with a table, not KStream"),
        (lambda b: b.stream("a").repartition(partitions=0), "at least one partition"),
        (lambda b: b.stream(None), "the name of a topic"),
        (lambda b: b.stream("a").to(None), "the name of a topic"),
        (lambda b: b.stream("a").filter("x"), "`filter` takes a function, not str"),
        (lambda b: b.stream("a").group_by_key().aggregate(0, KEEP), "`aggregate` takes a function, not int"),
        (lambda b: cogrouped(b).aggregate(0), "`aggregate` takes a function, not int"),
        (
            lambda b: b.table("a").group_by(lambda key, value: (key, value)).aggregate(0, KEEP, KEEP),
            "`aggregate` takes a function, not int",
        ),
        (lambda b: b.stream("a").process(Processor()), "makes a Processor for each task, not a Processor"),
        (lambda b: [b.table(topic, store="s") for topic in "ab"], "another store 's'"),
        (lambda b: [b.stream(topic).group_by_key().count(store="s") for topic in "ab"], "another store 's'"),
    ],
)
def test_a_mistake_is_told_when_it_is_written(make: Any, sentence: str) -> None:
    with pytest.raises(OttlaError, match=sentence):
        make(texts())


@pytest.mark.parametrize("windows", [TimeWindows.of(10), SlidingWindows.of(10), SessionWindows.with_gap(10)])
def test_windows_are_emitted_on_close_whatever_their_retention_and_stay_as_long_as_it_says(windows: Any) -> None:
    builder = texts()
    chosen = builder.stream("in").group_by_key().windowed_by(windows).emit_on_close().retain(300_000_000)
    chosen.count(store="counts").to_stream(lambda window, count: window.key).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        source = driver.input_topic("in")
        for timestamp in (100, 400_000_000, 600_000_000, 600_000_100):
            source.pipe("x", key="k", timestamp=timestamp)
        assert driver.output_topic("out").read_values() == [1, 1, 1]
        # The first is older than its retention, counted from the last, and the day that is added.
        assert driver.store("counts").approximate_num_entries() == 3


def test_values_may_be_mapped_to_several_with_their_key() -> None:
    builder = texts()
    builder.stream("in").flat_map_values(lambda key, value: [key, value]).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.input_topic("in").pipe("v", key="k")
        assert driver.output_topic("out").read_values() == ["k", "v"]


class OnlyOnce(Processor):
    """Its timer stops itself."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._timer = context.schedule(10, PunctuationType.STREAM_TIME, self._tell)

    def process(self, record: Record) -> None:
        pass

    def _tell(self, now: int) -> None:
        self.context.forward(Record("k", "once", now))
        self._timer.cancel()


class Reminder(Processor):
    def process(self, record: Record) -> None:
        self.context.schedule(10, PunctuationType.STREAM_TIME, print)


def test_a_timer_that_was_cancelled_stays_so_in_the_next_life_of_its_task() -> None:
    told: list[int] = []
    first = Schedules()
    first.add("p", 10, 0, told.append).cancel()
    first.add("p", 10, 0, told.append)
    first.run(5)
    second = Schedules()
    second.restore(first.snapshot())
    for _ in range(2):
        second.add("p", 10, 0, told.append)
    second.run(12)
    assert told == [5, 12]
    third = Schedules()
    third.restore(second.snapshot())
    third.add("p", 10, 0, told.append)
    third.run(100)
    assert told == [5, 12]


def test_a_timer_that_would_be_forgotten_with_its_batch_is_refused() -> None:
    builder = texts()
    builder.stream("in").process(Reminder).to("out")
    with TopologyTestDriver(builder.build()) as driver, pytest.raises(RecordFailed, match="timers are set in `init`"):
        driver.input_topic("in").pipe("x", key="k")


def test_a_timer_may_stop_itself() -> None:
    builder = texts()
    builder.stream("in").process(OnlyOnce).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        for timestamp in (1, 20, 40):
            driver.input_topic("in").pipe("x", key="k", timestamp=timestamp)
        assert driver.output_topic("out").read_values() == ["once"]


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda b: b.stream("a", timestamp_extractor=lambda *all: 5.5).to("out"), "time that cannot be read.*float"),
        (lambda b: b.stream("a").to(lambda key, value, record: 3), "must give its name, and gave int"),
        (lambda b: b.stream("a").to(lambda key, value, record: None), "must give its name, and gave NoneType"),
    ],
)
def test_what_a_function_must_not_give_is_told_with_the_record(build: Any, sentence: str) -> None:
    builder = texts()
    build(builder)
    with TopologyTestDriver(builder.build()) as driver, pytest.raises(RecordFailed, match=f"a-0@0.*{sentence}"):
        driver.input_topic("a").pipe("x", key="k", timestamp=0)
