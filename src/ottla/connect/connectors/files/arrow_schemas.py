"""Arrow's types as Connect's schemas: what a Parquet or ORC file has."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ottla.connect.api import ConnectorFailure, Field, Schema, SchemaType
from ottla.connect.api.data import DATE, DECIMAL, TIME, TIMESTAMP

_SIMPLE = (
    (pa.types.is_boolean, SchemaType.BOOLEAN, pa.bool_()),
    (pa.types.is_int8, SchemaType.INT8, pa.int8()),
    (pa.types.is_int16, SchemaType.INT16, pa.int16()),
    (pa.types.is_uint8, SchemaType.INT16, pa.int16()),
    (pa.types.is_int32, SchemaType.INT32, pa.int32()),
    (pa.types.is_uint16, SchemaType.INT32, pa.int32()),
    (pa.types.is_integer, SchemaType.INT64, pa.int64()),
    (pa.types.is_float32, SchemaType.FLOAT32, pa.float32()),
    (pa.types.is_floating, SchemaType.FLOAT64, pa.float64()),
)


def schema_of(kind: Any, name: str = "") -> tuple[Schema, Any]:
    """A schema, all of it optional, and the Arrow type that goes with it. Raises ConnectorFailure."""
    for is_kind, found, arrow in _SIMPLE:
        if is_kind(kind):
            return Schema(found, optional=True), arrow
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind):
        return Schema(SchemaType.STRING, optional=True), pa.string()
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return Schema(SchemaType.BYTES, optional=True), pa.binary()
    if pa.types.is_date(kind):
        return Schema(SchemaType.INT32, optional=True, name=DATE, version=1), pa.date32()
    if pa.types.is_time(kind):
        return Schema(SchemaType.INT32, optional=True, name=TIME, version=1), pa.time32("ms")
    if pa.types.is_timestamp(kind):
        return Schema(SchemaType.INT64, optional=True, name=TIMESTAMP, version=1), pa.timestamp("ms", "UTC")
    if pa.types.is_decimal(kind):
        scale = {"scale": str(kind.scale)}
        return Schema(SchemaType.BYTES, optional=True, name=DECIMAL, version=1, parameters=scale), kind
    if pa.types.is_struct(kind):
        parts = [(part.name, *schema_of(part.type, part.name)) for part in kind]
        fields = tuple(Field(part, schema) for part, schema, _ in parts)
        arrow = pa.struct([(part, arrow) for part, _, arrow in parts])
        return Schema(SchemaType.STRUCT, optional=True, fields=fields), arrow
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        item, arrow = schema_of(kind.value_type, name)
        return Schema(SchemaType.ARRAY, optional=True, value_schema=item), pa.list_(arrow)
    if pa.types.is_map(kind):
        (key, key_type), (item, item_type) = schema_of(kind.key_type, name), schema_of(kind.item_type, name)
        return Schema(SchemaType.MAP, optional=True, key_schema=key, value_schema=item), pa.map_(key_type, item_type)
    raise ConnectorFailure(f"the column '{name}' is {kind}, for which Connect has no type: leave it out of the file.")
