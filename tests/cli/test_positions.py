"""Places in a log as people write them."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import click
import pytest

from ottla.cli.records.positions import END, START, Bounds, Kind, Position, Span, parse_span, resolve
from ottla.common.moments import parse_time

NOON_MS = int(datetime(2026, 1, 31, 12, tzinfo=UTC).timestamp() * 1000)


def offset(value: int) -> Position:
    return Position(Kind.OFFSET, value)


def at(ms: int) -> Position:
    return Position(Kind.TIME, ms)


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("start", Span(START)),
        ("beginning", Span(START)),
        ("end", Span(END)),
        ("42", Span(offset(42))),
        ("-5", Span(Position(Kind.TAIL, 5))),
        ("5:10", Span(offset(5), offset(10))),
        (":10", Span(START, offset(10))),
        ("5:", Span(offset(5), END)),
        ("-5:end", Span(Position(Kind.TAIL, 5), END)),
        ("@1700000000000", Span(at(1700000000000))),
        ("@1700000000", Span(at(1700000000000))),
        ("@2026-01-31T12:00:00Z", Span(at(NOON_MS))),
        ("@2026-01-31T12:00+00:00:@2026-01-31T12:00:01Z", Span(at(NOON_MS), at(NOON_MS + 1000))),
        ("@1700000000000:@1700000000005", Span(at(1700000000000), at(1700000000005))),
    ],
)
def test_a_place_or_span_is_understood(text: str, span: Span) -> None:
    assert parse_span(text) == span


@pytest.mark.parametrize(
    "text", ["", "x", "-0", "--5", "1.5", "@", "@x", "5:x", "5:-2", "@-5y", "1:2:3", "5:@now", "+5"]
)
def test_anything_else_is_a_usage_error_that_shows_how(text: str) -> None:
    with pytest.raises(click.UsageError, match="-o does not understand"):
        parse_span(text)


def test_times_may_count_back_from_now() -> None:
    before_ms = int(time.time() * 1000)
    quarter, mixed = parse_time("-15m"), parse_time("-1h30m")
    assert quarter is not None
    assert mixed is not None
    after_ms = time.time() * 1000
    assert before_ms <= quarter + 900_000 <= after_ms
    assert before_ms <= mixed + 5_400_000 <= after_ms


@pytest.mark.parametrize(
    ("position", "found"), [(START, 10), (END, 20), (offset(15), 15), (offset(3), 10), (offset(99), 20)]
)
def test_offsets_stay_inside_the_log(position: Position, found: int) -> None:
    assert resolve(None, {("t", 0): Bounds(10, 20)}, position) == {("t", 0): found}  # type: ignore[arg-type]


def test_the_last_n_of_a_short_log_are_all_of_it() -> None:
    bounds = {("t", 0): Bounds(10, 12), ("t", 1): Bounds(0, 100)}
    tail = Position(Kind.TAIL, 5)
    assert resolve(None, bounds, tail) == {("t", 0): 10, ("t", 1): 95}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text", ["1969-12-31T23:59:59.999+00:00", "1969-12-31T23:59:59.998+00:00", "0001-01-02", "-99999w"]
)
def test_a_time_before_1970_is_the_beginning_and_none_of_kafkas_negative_offsets(text: str) -> None:
    assert parse_time(text) == 0


@pytest.mark.parametrize("text", ["-" + "9" * 5_000 + "d", "9" * 5_000, "-" + "9" * 19 + "d", "-" + "1d" * 50, "-²d"])
def test_a_time_of_too_many_digits_is_none(text: str) -> None:
    assert parse_time(text) is None
