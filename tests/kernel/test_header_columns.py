"""One more header for every row: what a loop over rows would make, whatever the rows have."""

from __future__ import annotations

import random
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow")

from ottla.kernel.decode_pure import HEADERS_TYPE  # noqa: E402
from ottla.kernel.header_columns import with_header  # noqa: E402


def _by_rows(headers: list[Any], values: list[bytes | None]) -> list[Any]:
    return [
        [one for one in own or [] if one["key"] != "new"] + ([] if value is None else [{"key": "new", "value": value}])
        for own, value in zip(headers, values, strict=True)
    ]


@pytest.mark.parametrize("seed", range(30))
def test_columns_are_made_as_rows_would_be(seed: int) -> None:
    chance = random.Random(seed)
    rows = chance.choice([0, 1, 2, 50])
    headers = [
        None
        if chance.random() < 0.3
        else [
            {"key": chance.choice(["a", "b", "new"]), "value": chance.choice([None, b"", b"x"])}
            for _ in range(chance.randrange(4))
        ]
        for _ in range(rows)
    ]
    values = [None if chance.random() < seed % 3 / 3 else b"v%d" % number for number in range(rows)]
    column = pa.array([None, *headers], HEADERS_TYPE).slice(1)
    assert with_header(column, "new", pa.array(values, pa.binary())).to_pylist() == _by_rows(headers, values)
    none = with_header(None, "new", pa.array(values, pa.binary())).to_pylist()
    assert none == _by_rows([None] * rows, values)
