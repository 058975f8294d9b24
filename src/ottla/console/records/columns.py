"""Which rows of an Arrow column have some bytes, found in the one buffer that holds all of its values.

`bytes.find` looks through gigabytes a second, and Arrow's `match_substring` through a tenth of one: it compares byte by
byte. What it finds is a place in the buffer; a search in the offsets says in which row that is. Bytes that most rows
have tell nothing, so the search for them ends soon.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Any

from ottla.common.where import Need

# Where more rows than this have them, looking at every row is as good.
_SHARE_MAX = 4
# So few are looked at one by one with less work than another search.
_FEW_SHARE = 16
_OFFSET_BYTES = 4


class BinaryColumn:
    def __init__(self, column: Any) -> None:
        _, offsets, data = column.buffers()
        first, count = column.offset, len(column)
        end = (first + count + 1) * _OFFSET_BYTES
        # A column of nothing but nulls may have no buffer at all.
        self._offsets: Any = memoryview(offsets)[first * _OFFSET_BYTES : end].cast("i") if offsets is not None else [0]
        self._data: bytes = data.to_pybytes() if data is not None else b""
        self._count = count

    def rows_with(self, literal: bytes) -> set[int] | None:
        """None if they are many."""
        data, offsets, found = self._data, self._offsets, set()
        most = self._count // _SHARE_MAX + 1
        at, last = offsets[0], offsets[len(offsets) - 1]
        row = 0
        while (at := data.find(literal, at, last)) >= 0:
            row = bisect_right(offsets, at, row) - 1
            if at + len(literal) <= offsets[row + 1]:
                found.add(row)
                if len(found) > most:
                    return None
                at = offsets[row + 1]
            else:
                at += 1  # it begins in one value and ends in the next
        return found


def candidates(columns: tuple[Any, Any], needs: Iterable[Need], text: bytes | None) -> list[int] | None:
    """Rows of keys and values that may be wanted, in their order; None: any may be."""
    key, value = BinaryColumn(columns[0]), BinaryColumn(columns[1])
    chosen: set[int] | None = None
    if text:
        in_key, in_value = key.rows_with(text), value.rows_with(text)
        if in_key is not None and in_value is not None:
            chosen = in_key | in_value
    # Long literals are rare ones, mostly.
    for need in sorted(needs, key=lambda need: -len(need.literal)):
        column = key if need.column == "key" else value
        rows = column.rows_with(need.literal)
        if rows is not None and need.is_json:
            rows = _with_other_spellings(column, rows)
        if rows is not None:
            chosen = rows if chosen is None else chosen & rows
            if len(chosen) <= len(columns[1]) // _FEW_SHARE:
                break
    return None if chosen is None else sorted(chosen)


def _with_other_spellings(column: BinaryColumn, rows: set[int]) -> set[int] | None:
    """And those in which JSON may write the same text otherwise."""
    for mark in (b"\\", b"\x00"):
        more = column.rows_with(mark)
        if more is None:
            return None
        rows = rows | more
    return rows
