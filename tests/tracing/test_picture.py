"""The time line of a trace, drawn from values alone."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from ottla.tracing import Hop, Position, Trace, render_svg
from ottla.tracing.picture import HOPS_MAX


def drawn(count: int, start: int, timestamp_ms: int = 1_700_000_000_000) -> list[ElementTree.Element]:
    places = [Position("t", 0, offset) for offset in range(count)]
    hops = tuple(Hop(place, timestamp_ms, False, None, None, (), "committed", "key") for place in places)
    found = Trace(places[start], (), 0, 1, hops, (), None, 0.1)
    return list(ElementTree.fromstring(render_svg(found)).iter())


@pytest.mark.parametrize("start", [0, 59, 60, 61, 150, 199])
def test_of_many_records_those_around_the_one_that_was_picked_are_drawn(start: int) -> None:
    parts = drawn(200, start)
    dots = [part.get("class", "") for part in parts if part.tag.endswith("circle")]
    assert len(dots) <= HOPS_MAX and dots.count("hop start") == 1
    assert f"and {200 - len(dots)} more" in [part.text for part in parts]


@pytest.mark.parametrize("timestamp_ms", [-1, 0, 2**62, 2**63 - 1, -(2**63)])
def test_a_time_that_is_none_is_drawn_as_a_number(timestamp_ms: int) -> None:
    assert len([part for part in drawn(2, 0, timestamp_ms) if part.tag.endswith("circle")]) == 2
