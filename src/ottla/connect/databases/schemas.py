"""Connect's schemas of columns, and the Arrow types that go with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ottla.connect.api.data import DATE, DECIMAL, TIME, TIMESTAMP, Field, Schema, SchemaType

PRECISION = "connect.decimal.precision"
PRECISION_MOST = 76
_PLAIN = {
    SchemaType.INT8: pa.int8(),
    SchemaType.INT16: pa.int16(),
    SchemaType.INT32: pa.int32(),
    SchemaType.INT64: pa.int64(),
    SchemaType.FLOAT32: pa.float32(),
    SchemaType.FLOAT64: pa.float64(),
    SchemaType.BOOLEAN: pa.bool_(),
    SchemaType.STRING: pa.string(),
    SchemaType.BYTES: pa.binary(),
}
_LOGICAL = {DATE: pa.date32(), TIME: pa.time32("ms"), TIMESTAMP: pa.timestamp("ms", tz="UTC")}


def decimal(precision: int, scale: int, optional: bool = False) -> Schema:
    return Schema(SchemaType.BYTES, optional, DECIMAL, 1, parameters={"scale": str(scale), PRECISION: str(precision)})


def bits(length: int) -> Schema:
    """Bytes of which the first has the lowest bits; a length of 2147483647 for any."""
    return Schema(SchemaType.BYTES, name="io.debezium.data.Bits", version=1, parameters={"length": str(length)})


def struct(name: str | None, fields: Sequence[tuple[str, Schema]], optional: bool = False) -> Schema:
    return Schema(SchemaType.STRUCT, optional, name, fields=tuple(Field(*each) for each in fields))


def decimal_type(precision: int, scale: int) -> Any:
    return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)


def arrow_type(schema: Schema) -> Any:
    if schema.name == DECIMAL:
        return decimal_type(int(schema.parameters.get(PRECISION, "38")), int(schema.parameters["scale"]))
    if schema.name in _LOGICAL:
        return _LOGICAL[schema.name]
    if schema.type is SchemaType.STRUCT:
        return pa.struct([pa.field(each.name, arrow_type(each.schema)) for each in schema.fields])
    if schema.type is SchemaType.ARRAY:
        assert schema.value_schema is not None
        return pa.list_(arrow_type(schema.value_schema))
    if schema.type is SchemaType.MAP:
        assert schema.key_schema is not None and schema.value_schema is not None
        return pa.map_(arrow_type(schema.key_schema), arrow_type(schema.value_schema))
    return _PLAIN[schema.type]
