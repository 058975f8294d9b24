"""An Avro schema as columns: the types that Spark's `from_avro` has, so that queries move from one to the other.

| Avro | Arrow, and so Spark |
|---|---|
| a union of null and one type | that type; every column may be null |
| any other union | a struct of `member0`, `member1` and so on, one of which is not null |
| `enum`, `uuid` | string |
| `decimal` of up to 38 digits | decimal; of more: binary |
| `date`, `timestamp-*`, `local-timestamp-*` | date, timestamp, timestamp without a time zone, in microseconds |
| `time-*` | the number that it is |
| `fixed`, `duration` | binary |

A schema that is no record is a struct with one column, `value`. One that contains itself has no columns.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pyarrow as pa

from ottla.avro.schema import Schema
from ottla.common.errors import OttlaError
from ottla.kernel.avro_steps import ColumnShape, Kind

VALUE = "value"
_DIGITS_MAX = 38
_PLAIN = {
    "null": (Kind.NULL, pa.null()),
    "boolean": (Kind.BOOLEAN, pa.bool_()),
    "int": (Kind.INT32, pa.int32()),
    "long": (Kind.INT64, pa.int64()),
    "float": (Kind.FLOAT, pa.float32()),
    "double": (Kind.DOUBLE, pa.float64()),
    "bytes": (Kind.BYTES, pa.binary()),
    "string": (Kind.BYTES, pa.string()),
    "fixed": (Kind.BYTES, pa.binary()),
    "enum": (Kind.BYTES, pa.string()),
}
# How many of a microsecond's thousands a unit has: (times, divided by).
UNITS = {"millis": (1000, 1), "micros": (1, 1), "nanos": (1, 1000)}


class Column(NamedTuple):
    """`schema`: what it was made of, without the null of a union."""

    number: int
    kind: Any
    children: tuple[Column, ...]
    schema: Schema


class Columns(NamedTuple):
    root: Column
    shapes: list[ColumnShape]
    type: Any


def columns_of(schema: Schema) -> Columns:
    """Raises OttlaError for a schema that has none."""
    maker = _Maker()
    top = schema
    if not schema.is_record:
        # As if it were the one field of a record.
        index = maker.add(Kind.STRUCT)
        child = maker.column(schema, ())
        root = Column(index, pa.struct([pa.field(VALUE, child.kind)]), (child,), top)
        maker.shapes[index] = ColumnShape(Kind.STRUCT, (child.number,))
    else:
        root = maker.column(schema, ())
    return Columns(root, maker.shapes, root.kind)


class _Maker:
    def __init__(self) -> None:
        self.shapes: list[ColumnShape] = []

    def add(self, kind: Kind) -> int:
        self.shapes.append(ColumnShape(int(kind)))
        return len(self.shapes) - 1

    def column(self, schema: Schema, above: tuple[Schema, ...]) -> Column:
        if schema.type == "union":
            return self._union(schema, above)
        if schema.is_record:
            if any(schema is each for each in above):
                raise OttlaError(
                    f"the schema '{schema.full_name}' contains itself: Spark has no columns for that. Read the topic "
                    "without a schema."
                )
            names = [its.name for its in schema.fields]
            return self._struct(schema, names, [its.schema for its in schema.fields], (*above, schema))
        if schema.type in ("array", "map"):
            return self._items(schema, above)
        kind, arrow = _single(schema)
        return Column(self.add(kind), arrow, (), schema)

    def _union(self, schema: Schema, above: tuple[Schema, ...]) -> Column:
        others = members(schema)
        if not others:
            return Column(self.add(Kind.NULL), pa.null(), (), schema)
        if len(others) == 1:
            return self.column(others[0], above)
        return self._struct(schema, [f"member{number}" for number in range(len(others))], others, above)

    def _struct(self, schema: Schema, names: list[str], parts: list[Schema], above: tuple[Schema, ...]) -> Column:
        index = self.add(Kind.STRUCT)
        children = tuple(self.column(part, above) for part in parts)
        self.shapes[index] = ColumnShape(Kind.STRUCT, tuple(child.number for child in children))
        fields = [pa.field(name, child.kind) for name, child in zip(names, children, strict=True)]
        return Column(index, pa.struct(fields), children, schema)

    def _items(self, schema: Schema, above: tuple[Schema, ...]) -> Column:
        is_map = schema.type == "map"
        index = self.add(Kind.MAP if is_map else Kind.LIST)
        keys = [self.add(Kind.BYTES)] if is_map else []
        child = self.column(schema.element(), above)
        self.shapes[index] = ColumnShape(self.shapes[index].kind, (*keys, child.number))
        kind = pa.map_(pa.string(), child.kind) if is_map else pa.list_(pa.field("element", child.kind))
        return Column(index, kind, (child,), schema)


def members(union: Schema) -> list[Schema]:
    """Its branches, but for null."""
    return [branch for branch in union.branches if branch.type != "null"]


def logical(schema: Schema) -> str:
    name = schema.properties.get("logicalType")
    return name if isinstance(name, str) else ""


def decimal_of(schema: Schema) -> tuple[int, int] | None:
    """Digits, and those after the point. What is no valid decimal is plain bytes, as Avro wants it."""
    digits, scale = schema.properties.get("precision"), schema.properties.get("scale", 0)
    if logical(schema) != "decimal" or schema.type not in ("bytes", "fixed"):
        return None
    if not isinstance(digits, int) or not isinstance(scale, int) or not 1 <= digits <= _DIGITS_MAX:
        return None
    return (digits, scale) if 0 <= scale <= digits else None


def moment_of(schema: Schema) -> tuple[bool, str] | None:
    """Of a timestamp: whether it has a time zone, and its unit."""
    name = logical(schema)
    prefix, _, unit = name.rpartition("-")
    if schema.type != "long" or unit not in UNITS or prefix not in ("timestamp", "local-timestamp"):
        return None
    return prefix == "timestamp", unit


def _single(schema: Schema) -> tuple[Kind, Any]:
    if (decimal := decimal_of(schema)) is not None:
        return Kind.DECIMAL, pa.decimal128(*decimal)
    if (moment := moment_of(schema)) is not None:
        return Kind.INT64, pa.timestamp("us", tz="UTC" if moment[0] else None)
    if schema.type == "int" and logical(schema) == "date":
        return Kind.INT32, pa.date32()
    kind, arrow = _PLAIN[schema.type]
    return kind, arrow
