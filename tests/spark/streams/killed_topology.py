"""The topology that survives kills, and what must come out of it: a windowed aggregate behind a repartition topic, a
join of two rekeyed streams, and a processor with a store and timers on the stream itself.

Numbers are fed in order, evenly to all partitions, and a number is also its time: what the processor writes is known
for each partition from the test driver; what passes through repartition topics is known up to the order between keys.
"""

from __future__ import annotations

from typing import Any

from ottla.streams import (
    JoinWindows,
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

APPLICATION = "killed"
KEYS = 7
WINDOW_MS = 1_000
# Partitions run apart from each other by what one of them is ahead: nothing is late.
GRACE_MS = 10_000_000


def time_of(key: Any, number: int, record_ms: int, stream_ms: int) -> int:
    return number


class Totals(Processor):
    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._totals = context.store("totals")
        context.schedule(250, PunctuationType.STREAM_TIME, self._tell)

    def process(self, record: Record) -> None:
        key = f"{self.context.task_id[-1]}-{record.value % KEYS}"
        self._totals.put(key, (self._totals.get(key) or 0) + record.value)

    def _tell(self, now: int) -> None:
        for key, total in list(self._totals.all()):
            self.context.forward(Record(key, total, now))


def topology() -> Topology:
    builder = StreamsBuilder(key=serdes.string, value=serdes.integer)
    numbers = builder.stream("in", key=serdes.raw, value=serdes.json, timestamp_extractor=time_of)
    by_key = numbers.group_by(lambda key, number: str(number % KEYS), value=serdes.integer)
    counts = by_key.windowed_by(TimeWindows.of(WINDOW_MS, grace=GRACE_MS)).count(store="counts")
    counts.to_stream(lambda window, count: f"{window.key}@{window.window.start}").to("counts", value=serdes.integer)
    paired = numbers.select_key(lambda key, number: str(number // 2)).with_serdes(value=serdes.integer)
    branches = paired.split(name="by").branch(lambda key, number: number % 2 == 0, "even").default_branch("odd")
    windows = JoinWindows.of(1, grace=GRACE_MS)
    pairs = branches["even"].join(branches["odd"], lambda one, other: one + other, windows, name="pairs")
    pairs.to("pairs", value=serdes.integer)
    builder.add_store(key_value_store("totals", key=serdes.string, value=serdes.integer))
    numbers.process(Totals, stores=["totals"], name="totals").to("totals", value=serdes.integer)
    return builder.build()


def totals_of(partition: int, numbers: range) -> tuple[list[tuple[str, int]], dict[str, int]]:
    """What the processor writes for the numbers of a partition, and its store in the end."""
    with TopologyTestDriver(topology()) as driver:
        source = driver.input_topic("in")
        for number in numbers:
            source.pipe(number, key=b"k")

        def named(key: str) -> str:
            return f"{partition}{key[1:]}"  # the driver has one partition, 0

        written = [(named(record.key), record.value) for record in driver.output_topic("totals").read_all()]
        return written, {named(key): total for key, total in driver.store("totals").all()}
