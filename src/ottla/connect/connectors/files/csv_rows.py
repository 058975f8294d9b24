"""Where rows of CSV end: at the end of a line that is not within a quoted value.

A quote opens a value only where one begins, behind a delimiter or the end of a line; elsewhere it is a character as any
other, as in `5" pipe`. So does PyArrow read it, which is given whole rows only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

_QUOTE, _LINE = b'"', b"\n"


class Whole(NamedTuple):
    # Behind the last row that is whole.
    end: int
    # Where the value begins whose closing quote has not come.
    open_at: int | None


def _quoted(data: bytes, delimiter: bytes) -> Iterator[tuple[int, int | None]]:
    """Where quoted values begin, and where they end; None: not here."""
    at = 0
    while (begin := data.find(_QUOTE, at)) >= 0:
        if begin and data[begin - 1 : begin] not in (delimiter, _LINE):
            at = begin + 1
            continue
        end = data.find(_QUOTE, begin + 1)
        while end >= 0 and data[end + 1 : end + 2] == _QUOTE:
            end = data.find(_QUOTE, end + 2)
        if end < 0:
            yield begin, None
            return
        yield begin, end
        at = end + 1


def whole_rows(data: bytes, delimiter: bytes) -> Whole:
    """`data` begins with a row."""
    last, at = 0, 0
    for begin, end in _quoted(data, delimiter):
        last = max(last, data.rfind(_LINE, at, begin) + 1)
        if end is None:
            return Whole(last, begin)
        at = end + 1
    return Whole(max(last, data.rfind(_LINE, at) + 1), None)


def row_ends(data: bytes, delimiter: bytes) -> Iterator[int]:
    """Behind each row that is whole."""
    at = 0
    for begin, end in _quoted(data, delimiter):
        yield from _line_ends(data, at, begin)
        if end is None:
            return
        at = end + 1
    yield from _line_ends(data, at, len(data))


def _line_ends(data: bytes, begin: int, end: int) -> Iterator[int]:
    while (found := data.find(_LINE, begin, end)) >= 0:
        begin = found + 1
        yield begin
