"""Debezium's envelope around a change, as Arrow columns: before, after, source, op, ts_ms.

A `Shape` is a table as it looks at a time: its columns and key, and the schemas made of them. `Changes` collects
changes of one shape and makes Records of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ottla.connect.api.data import Column, Records, Schema, SchemaType
from ottla.connect.databases.schemas import arrow_type, struct

STRING = Schema(SchemaType.STRING)
OPTIONAL_STRING = Schema(SchemaType.STRING, optional=True)
INT64 = Schema(SchemaType.INT64)
OPTIONAL_INT64 = Schema(SchemaType.INT64, optional=True)
_ZEROES: dict[SchemaType, Any] = {SchemaType.STRING: "", SchemaType.BYTES: b"", SchemaType.BOOLEAN: False}
Row = Sequence[Any]


@dataclass(frozen=True)
class TableColumn:
    name: str
    schema: Schema
    # From values as the database's log has them (or an Arrow array of them) to an array of the schema's type.
    to_arrow: Callable[[Any], Any]
    # Stands for a value that the log leaves out because it did not change.
    unavailable: Any = None


@dataclass(frozen=True)
class Shape:
    table: str
    topic: str
    columns: tuple[TableColumn, ...]
    key: tuple[int, ...]
    source: Schema

    @cached_property
    def value_schema(self) -> Schema:
        fields = [(column.name, column.schema) for column in self.columns]
        return struct(f"{self.topic}.Value", fields, optional=True)

    @cached_property
    def key_schema(self) -> Schema | None:
        if not self.key:
            return None
        return struct(f"{self.topic}.Key", [(self.columns[i].name, self.columns[i].schema) for i in self.key])

    @cached_property
    def envelope(self) -> Schema:
        fields = [
            ("before", self.value_schema),
            ("after", self.value_schema),
            ("source", self.source),
            ("op", STRING),
            ("ts_ms", OPTIONAL_INT64),
        ]
        return struct(f"{self.topic}.Envelope", fields)

    @cached_property
    def row_type(self) -> Any:
        return arrow_type(self.value_schema)


@dataclass
class Changes:
    """In order. A tombstone is a change without an op."""

    shape: Shape
    ops: list[str | None] = field(default_factory=list)
    keys: list[Row | None] = field(default_factory=list)
    befores: list[Row | None] = field(default_factory=list)
    afters: list[Row | None] = field(default_factory=list)
    # The columns of `source`, in its order; one tuple for each change.
    sources: list[tuple[Any, ...]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.ops)

    def add(
        self, op: str | None, key: Row | None, before: Row | None, after: Row | None, source: tuple[Any, ...]
    ) -> None:
        self.ops.append(op)
        self.keys.append(key)
        self.befores.append(before)
        self.afters.append(after)
        self.sources.append(source)

    def to_records(self) -> Records:
        shape, count = self.shape, len(self.ops)
        is_tombstone = [op is None for op in self.ops]
        source = pa.StructArray.from_arrays(
            [
                pa.array(values, arrow_type(each.schema))
                for values, each in zip(zip(*self.sources, strict=True), shape.source.fields, strict=True)
            ],
            names=[each.name for each in shape.source.fields],
        )
        now = int(time.time() * 1000)
        ops = pa.array([op or "" for op in self.ops], pa.string())
        parts = [
            _rows(shape, self.befores),
            _rows(shape, self.afters),
            source,
            ops,
            pa.array([now] * count, pa.int64()),
        ]
        envelope = arrow_type(shape.envelope)
        values = pa.StructArray.from_arrays(
            parts, fields=list(envelope), mask=pa.array(is_tombstone, pa.bool_()) if any(is_tombstone) else None
        )
        return records(shape, count, key_column(shape, self.keys), values)


def records(shape: Shape, count: int, keys: Column, values: Any) -> Records:
    return Records(
        topics=pa.repeat(pa.scalar(shape.topic), count),
        partitions=pa.nulls(count, pa.int32()),
        timestamps=pa.nulls(count, pa.int64()),
        keys=keys,
        values=Column(shape.envelope, values),
    )


def _rows(shape: Shape, rows: Sequence[Row | None]) -> Any:
    missing = [row is None for row in rows]
    if all(missing):
        return pa.nulls(len(rows), shape.row_type)
    empty = (None,) * len(shape.columns)
    columns = zip(*(empty if row is None else row for row in rows), strict=True)
    arrays = [
        required(column.to_arrow(list(values)), column.schema)
        for values, column in zip(columns, shape.columns, strict=True)
    ]
    return pa.StructArray.from_arrays(
        arrays, fields=list(shape.row_type), mask=pa.array(missing, pa.bool_()) if any(missing) else None
    )


def required(array: Any, schema: Schema) -> Any:
    """Of a deleted row the log may have the key only, and MySQL has dates that there are none of, as 0000-00-00. What
    must not be null has then the zero of its type, as in Debezium."""
    if schema.optional or array.null_count == 0 or schema.type in (SchemaType.STRUCT, SchemaType.ARRAY):
        return array
    return pc.fill_null(array, _zero(array.type, schema))


def _zero(kind: Any, schema: Schema) -> Any:
    if pa.types.is_decimal(kind):
        return pa.scalar(Decimal(0), kind)
    if pa.types.is_temporal(kind):
        return pa.scalar(0, pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind)
    if schema.name == "io.debezium.time.ZonedTimestamp":
        return pa.scalar("1970-01-01T00:00:00Z", kind)
    return pa.scalar(_ZEROES.get(schema.type, 0), kind)


def key_column(shape: Shape, keys: Sequence[Row | None]) -> Column:
    schema = shape.key_schema
    if schema is None:
        return Column(None, [None] * len(keys))
    kind = arrow_type(schema)
    columns = list(zip(*(key or (None,) * len(shape.key) for key in keys), strict=True))
    arrays = [
        required(shape.columns[i].to_arrow(list(values)), shape.columns[i].schema)
        for i, values in zip(shape.key, columns, strict=True)
    ]
    missing = [key is None for key in keys]
    mask = pa.array(missing, pa.bool_()) if any(missing) else None
    return Column(schema, pa.StructArray.from_arrays(arrays, fields=list(kind), mask=mask))


def no_records() -> Records:
    """What goes with an offset that moves though nothing has changed."""
    return Records(
        pa.array([], pa.string()),
        pa.array([], pa.int32()),
        pa.array([], pa.int64()),
        Column(None, []),
        Column(None, []),
    )
