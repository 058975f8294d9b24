"""Programs of the lines about streams: each counts all that it is fed, and says so in its results."""

from __future__ import annotations

import pytest

from bench.streams_programs import NATIVE_COUNT, PARTITIONS, WINDOWED_COUNT, WORD_COUNT, Program, counted_in, counts_of
from ottla.streams import TopologyTestDriver, serdes

RECORDS = 500


@pytest.mark.parametrize(
    "program", [WORD_COUNT, WINDOWED_COUNT, NATIVE_COUNT, counts_of(50)], ids=lambda program: program.name
)
def test_counts_add_up_to_what_was_fed(program: Program) -> None:
    feed = program.feed()
    found: dict[tuple[object, bytes], int] = {}
    with TopologyTestDriver(program.topology("in", "out")) as driver:
        for number in range(RECORDS):
            _partition, key, value, time_ms = feed.row(number)
            driver.pipe_bytes("in", key, value, time_ms)
        for record in driver.output_topic("out", key=serdes.raw, value=serdes.raw).read_all():
            *window, count = counted_in(record.value)
            found[record.key, b"".join(window)] = int(count)
    assert list(feed.requests(b"\0" * 16, RECORDS))
    assert sum(found.values()) == feed.counted > 0


def test_a_feed_goes_on_where_the_last_turn_ended() -> None:
    feed = WINDOWED_COUNT.feed()
    first, second = (list(feed.requests(b"\0" * 16, RECORDS)) for _ in range(2))
    assert len(first) == len(second) == PARTITIONS
    assert first != second
    assert feed.counted == 2 * RECORDS
