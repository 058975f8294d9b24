"""Functions on Arrow tables and pandas frames for `map_batches`: a column for each field of the values.

    scored = orders.map_batches(batches.pandas(lambda frame: frame.assign(score=model.predict(frame))))

Values are dicts of one shape; what comes back has a row for each of them and becomes dicts again. Keys, times and
headers stay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.streams.operators.batches import Batch, BatchFunction


def arrow(function: Callable[[Any], Any]) -> BatchFunction:
    """Of a pyarrow.Table to a pyarrow.Table."""

    def on_values(batch: Batch) -> list[Any]:
        import pyarrow as pa

        rows: list[Any] = function(pa.Table.from_pylist(list(batch.values))).to_pylist()
        return rows

    return on_values


def pandas(function: Callable[[Any], Any]) -> BatchFunction:
    """Of a pandas.DataFrame to a pandas.DataFrame."""

    def on_values(batch: Batch) -> list[Any]:
        import pandas as pd  # type: ignore[import-untyped]

        rows: list[Any] = function(pd.DataFrame.from_records(list(batch.values))).to_dict("records")
        return rows

    return on_values
