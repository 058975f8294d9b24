"""Tables in tests: a row for each request, a column for each state, what comes of it in the cell.

request   | Empty             | Stable
heartbeat | UNKNOWN_MEMBER_ID | ok
"""

from __future__ import annotations

from typing import NamedTuple


class Cell(NamedTuple):
    request: str
    state: str
    expected: str

    def __str__(self) -> str:
        return f"{self.request}, {self.state}"


def cells(table: str) -> list[Cell]:
    lines = [[part.strip() for part in line.split("|")] for line in table.strip().splitlines()]
    (_, *states), *rows = lines
    assert all(len(row) == len(states) + 1 for row in rows), "a row with too few or too many cells"
    return [Cell(row[0], state, expected) for row in rows for state, expected in zip(states, row[1:], strict=True)]
