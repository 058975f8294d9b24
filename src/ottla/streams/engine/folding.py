"""Rows that Spark has prepared for an aggregate, put together by key: the state is asked for once for each key of a
batch, and no function of Python sees a record."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ottla.streams.engine.native_columns import argument_name
from ottla.streams.sql.aggregation import Aggregated, Aggregation, Part
from ottla.streams.sql.schema import Kind


def folded(rows: pa.Table, node: str, aggregation: Aggregation) -> tuple[list[tuple[int, bytes, Aggregated, int]], int]:
    """(last offset, key, aggregate, latest time in ms) of each key, in the order in which keys came first; and how many
    rows have no key or no value, which count nowhere."""
    has_both = pc.and_(pc.is_valid(rows.column("key")), pc.is_valid(rows.column("value")))
    counted = rows.filter(has_both)
    times = counted.column("timestamp").cast(pa.timestamp("ms", tz="UTC"), safe=False).cast(pa.int64())
    counted = counted.set_column(counted.column_names.index("timestamp"), "timestamp", times)
    wanted: list[tuple[Any, str]] = [("offset", "min"), ("offset", "max"), ("timestamp", "max"), ("offset", "count")]
    for number, part in enumerate(aggregation.parts):
        wanted += [(name, function) for name, function in _columns(node, number, part)]
    groups = counted.group_by("key").aggregate(wanted).sort_by("offset_min").to_pydict()
    found = []
    for place, key in enumerate(groups["key"]):
        value = Aggregated(
            (part.name, _of_group(groups, place, node, number, part)) for number, part in enumerate(aggregation.parts)
        )
        found.append((groups["offset_max"][place], key, value, groups["timestamp_max"][place]))
    return found, rows.num_rows - counted.num_rows


def _columns(node: str, number: int, part: Part) -> Iterator[tuple[str, str]]:
    name = argument_name(node, number)
    if part.argument is None:
        return
    if part.function == "count":
        yield name, "sum"
    elif part.function == "sum" and part.kind is Kind.BIGINT:
        yield argument_name(node, number, "high"), "sum"
        yield argument_name(node, number, "low"), "sum"
    else:
        yield name, part.function
        if part.function != "sum" and part.kind is Kind.DOUBLE:
            yield argument_name(node, number, "nan"), "sum"


def _of_group(groups: dict[str, list[Any]], place: int, node: str, number: int, part: Part) -> Any:
    name = argument_name(node, number)
    if part.argument is None:
        return groups["offset_count"][place]
    if part.function == "count":
        return groups[f"{name}_sum"][place]
    if part.function == "sum" and part.kind is Kind.BIGINT:
        high, low = (groups[f"{argument_name(node, number, half)}_sum"][place] for half in ("high", "low"))
        return None if high is None else (high << 32) + low
    found = groups[f"{name}_{part.function}"][place]
    if part.function != "sum" and part.kind is Kind.DOUBLE and groups[f"{name}nan_sum"][place]:
        return math.nan if part.function == "max" or found is None else found
    return found
