"""Records between connectors, transforms and converters: Arrow columns with Kafka Connect's schemas.

`Records` are some records of one shape: their keys have one schema, and so have their values. A column with a schema is
an Arrow array; one without (JSON without schemas, for example) is a list of Python values, each of any shape.

| Connect | Arrow | Python |
|---|---|---|
| INT8 .. INT64, FLOAT32, FLOAT64 | int8 .. int64, float32, float64 | int, float |
| BOOLEAN, STRING, BYTES | bool, string, binary | bool, str, bytes |
| STRUCT | struct, one field for each in the same order | dict |
| ARRAY, MAP | list, map | list; list of pairs |
| org.apache.kafka.connect.data.Decimal (BYTES) | decimal128 or decimal256 with the parameter `scale` | Decimal |
| ...Date (INT32), ...Time (INT32) | date32, time32[ms] | date, time |
| ...Timestamp (INT64) | timestamp[ms, UTC] | datetime |

Names, versions, documentation, defaults and parameters of a schema are not in Arrow's type, but only in `Schema`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import pyarrow as pa

DECIMAL = "org.apache.kafka.connect.data.Decimal"
DATE = "org.apache.kafka.connect.data.Date"
TIME = "org.apache.kafka.connect.data.Time"
TIMESTAMP = "org.apache.kafka.connect.data.Timestamp"


class SchemaType(StrEnum):
    """In the names that JSON with schemas has for them."""

    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float"
    FLOAT64 = "double"
    BOOLEAN = "boolean"
    STRING = "string"
    BYTES = "bytes"
    ARRAY = "array"
    MAP = "map"
    STRUCT = "struct"


@dataclass(frozen=True)
class Schema:
    type: SchemaType
    optional: bool = False
    name: str | None = None
    version: int | None = None
    doc: str | None = None
    # Neither of these two can be hashed; they count when schemas are compared.
    default: Any = field(default=None, hash=False)
    parameters: Mapping[str, str] = field(default_factory=dict, hash=False)
    fields: tuple[Field, ...] = ()
    # Of a map; of an array and a map.
    key_schema: Schema | None = None
    value_schema: Schema | None = None

    def field_named(self, name: str) -> Schema | None:
        return next((each.schema for each in self.fields if each.name == name), None)


@dataclass(frozen=True)
class Field:
    name: str
    schema: Schema


@dataclass(frozen=True)
class Column:
    """Keys or values. With a schema `data` is an Arrow array of it, else a list of Python values."""

    schema: Schema | None
    data: pa.Array | list[Any]

    def __len__(self) -> int:
        return len(self.data)


@dataclass(frozen=True)
class Header:
    key: str
    schema: Schema | None
    value: Any


@dataclass(frozen=True)
class Records:
    """Rows in order. What a source leaves open is null: the partition (then the key decides) and the timestamp."""

    topics: pa.Array  # string
    partitions: pa.Array  # int32
    timestamps: pa.Array  # int64, milliseconds
    keys: Column
    values: Column
    # Of a sink's records; of a source's, None.
    offsets: pa.Array | None = None  # int64
    # For each row; None where no record has any.
    headers: Sequence[tuple[Header, ...]] | None = None

    def __len__(self) -> int:
        return len(self.topics)

    def slice(self, begin: int, length: int) -> Records:
        return replace(
            self,
            topics=self.topics.slice(begin, length),
            partitions=self.partitions.slice(begin, length),
            timestamps=self.timestamps.slice(begin, length),
            keys=Column(self.keys.schema, self.keys.data[begin : begin + length]),
            values=Column(self.values.schema, self.values.data[begin : begin + length]),
            offsets=None if self.offsets is None else self.offsets.slice(begin, length),
            headers=None if self.headers is None else self.headers[begin : begin + length],
        )
