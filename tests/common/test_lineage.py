"""Lineage headers are read as they were written, and nothing else is taken for one."""

from __future__ import annotations

import pytest

from ottla.common.lineage import (
    RANGES_BYTES_MAX,
    Lineage,
    Source,
    SourceRange,
    exact,
    of_batch,
    parse,
    ranges_between,
)


def test_headers_are_read_as_they_were_written() -> None:
    source = Source("orders.v1_x-y", 3, 12)
    assert parse(exact(source, "enrich", 17)) == Lineage("enrich", 17, source)
    assert parse(exact(source, "word-count")) == Lineage("word-count", None, source)
    ranges = (SourceRange("a", 0, 5, 9), SourceRange("b", 11, 0, 1))
    assert parse(of_batch("totals", 3, "abc", ranges)) == Lineage("totals", 3, None, ranges, "abc")
    many = [SourceRange("a" * 200, number, 0, 1) for number in range(10)]
    large = of_batch("totals", 3, "abc", many)
    assert parse(large) == Lineage("totals", 3, None, (), "abc") and len(large) < RANGES_BYTES_MAX


@pytest.mark.parametrize(
    "other",
    [
        None,
        b"",
        b"x",
        b"a/0 q",
        b"a/0/1",
        b"a/x/1 q",
        b"a/0/-1 q",
        b"* q/1",
        b"* q/1 d a/0/1",
        b"\xff\xfe q",
        b"a/0/1 q/x",
    ],
)
def test_anything_else_is_no_lineage(other: bytes | None) -> None:
    assert parse(other) is None


def test_what_a_batch_read_lies_between_two_ends() -> None:
    before, after = {"a": {"0": 5, "1": 7}}, {"a": {"0": 9, "1": 7, "10": 2}, "b": {"0": 3}}
    assert [str(part) for part in ranges_between(before, after)] == ["a/0/5-9", "a/10/0-2", "b/0/0-3"]
