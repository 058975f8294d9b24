"""Programs of the lines about streams: each counts all that it is fed, and says so in the last word of its results."""

from __future__ import annotations

import pytest

from bench.streams_programs import PARTITIONS, WINDOWED_COUNT, WORD_COUNT, Program, counts_of
from ottla.streams import TopologyTestDriver

RECORDS = 500


@pytest.mark.parametrize("program", [WORD_COUNT, WINDOWED_COUNT, counts_of(50)], ids=lambda program: program.name)
def test_counts_add_up_to_what_was_fed(program: Program) -> None:
    feed = program.feed()
    found: dict[tuple[object, str], int] = {}
    with TopologyTestDriver(program.topology("in", "out")) as driver:
        for number in range(RECORDS):
            _partition, key, value, time_ms = feed.row(number)
            text = None if key is None else key.decode()
            driver.input_topic("in").pipe(value.decode(), key=text, timestamp=time_ms)
        for record in driver.output_topic("out").read_all():
            *window, count = record.value.split()
            found[record.key, "".join(window)] = int(count)
    assert list(feed.requests(b"\0" * 16, RECORDS))
    assert sum(found.values()) == feed.counted > 0


def test_a_feed_goes_on_where_the_last_turn_ended() -> None:
    feed = WINDOWED_COUNT.feed()
    first, second = (list(feed.requests(b"\0" * 16, RECORDS)) for _ in range(2))
    assert len(first) == len(second) == PARTITIONS
    assert first != second
    assert feed.counted == 2 * RECORDS
