"""Records before an aggregate, put together by key: the state is asked for once for each key of a batch, and no
function of Python sees a record."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ottla.streams.engine.vectors import Columns, column_of
from ottla.streams.sql.aggregation import Aggregated, Aggregation, Part
from ottla.streams.sql.schema import Kind

# Halves of a whole number, whose sums cannot overflow.
_HALF_BITS, _LOW_HALF = 32, 0xFFFFFFFF


def arguments(aggregation: Aggregation, columns: Columns) -> dict[str, Any]:
    """The columns that are put together, by names of their own."""
    found: dict[str, Any] = {}
    for number, part in enumerate(aggregation.parts):
        if part.argument is None:
            continue
        values = column_of(part.argument, columns)
        if part.function == "count":
            found[f"{number}"] = pc.is_valid(values).cast(pa.int64())
        elif part.function == "sum" and part.kind is Kind.BIGINT:
            found[f"{number}high"] = pc.shift_right(values, _HALF_BITS)
            found[f"{number}low"] = pc.bit_wise_and(values, _LOW_HALF)
        elif part.function == "sum" or part.kind is Kind.BIGINT:
            found[f"{number}"] = values
        else:
            # NaN is the largest number in SQL, and passed over by Arrow.
            is_nan = pc.fill_null(pc.is_nan(values), False)
            found[f"{number}"] = pc.if_else(is_nan, pa.scalar(None, pa.float64()), values)
            found[f"{number}nan"] = is_nan.cast(pa.int64())
    return found


def folded(records: pa.Table, aggregation: Aggregation) -> tuple[list[tuple[int, Any, Aggregated, int]], int]:
    """(last offset, key, aggregate, latest time in ms) of each key, in the order in which keys came first; and how many
    records have no key or no value, which count nowhere."""
    counted = records.filter(records.column("counts"))
    wanted: list[tuple[Any, str]] = [("offset", "min"), ("offset", "max"), ("time", "max"), ("offset", "count")]
    for number, part in enumerate(aggregation.parts):
        wanted += _columns(number, part)
    groups = counted.group_by("key", use_threads=False).aggregate(wanted).sort_by("offset_min").to_pydict()
    found = []
    for place, key in enumerate(groups["key"]):
        value = Aggregated(
            (part.name, _of_group(groups, place, number, part)) for number, part in enumerate(aggregation.parts)
        )
        found.append((groups["offset_max"][place], key, value, groups["time_max"][place]))
    return found, records.num_rows - counted.num_rows


def _columns(number: int, part: Part) -> Iterator[tuple[str, str]]:
    if part.argument is None:
        return
    if part.function == "count":
        yield f"{number}", "sum"
    elif part.function == "sum" and part.kind is Kind.BIGINT:
        yield f"{number}high", "sum"
        yield f"{number}low", "sum"
    else:
        yield f"{number}", part.function
        if part.function != "sum" and part.kind is Kind.DOUBLE:
            yield f"{number}nan", "sum"


def _of_group(groups: dict[str, list[Any]], place: int, number: int, part: Part) -> Any:
    if part.argument is None:
        return groups["offset_count"][place]
    if part.function == "count":
        return groups[f"{number}_sum"][place]
    if part.function == "sum" and part.kind is Kind.BIGINT:
        high, low = (groups[f"{number}{half}_sum"][place] for half in ("high", "low"))
        return None if high is None else (high << _HALF_BITS) + low
    found = groups[f"{number}_{part.function}"][place]
    if part.function != "sum" and part.kind is Kind.DOUBLE and groups[f"{number}nan_sum"][place]:
        return math.nan if part.function == "max" or found is None else found
    return found
