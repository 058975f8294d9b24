"""Schemas as transforms and converters make them, and whether a value fits one."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from ottla.connect.api.data import DATE, DECIMAL, TIME, TIMESTAMP, Field, Schema, SchemaType
from ottla.connect.conversion.errors import DataError, SchemaError

STRING_SCHEMA = Schema(SchemaType.STRING)
OPTIONAL_STRING = Schema(SchemaType.STRING, optional=True)
OPTIONAL_BYTES = Schema(SchemaType.BYTES, optional=True)
TIMESTAMP_SCHEMA = Schema(SchemaType.INT64, name=TIMESTAMP, version=1)
DATE_SCHEMA = Schema(SchemaType.INT32, name=DATE, version=1)
TIME_SCHEMA = Schema(SchemaType.INT32, name=TIME, version=1)

INTEGERS = {SchemaType.INT8: 8, SchemaType.INT16: 16, SchemaType.INT32: 32, SchemaType.INT64: 64}
FLOATS = (SchemaType.FLOAT32, SchemaType.FLOAT64)
_LOGICAL = {
    DECIMAL: SchemaType.BYTES,
    DATE: SchemaType.INT32,
    TIME: SchemaType.INT32,
    TIMESTAMP: SchemaType.INT64,
}
_PYTHON: dict[SchemaType, tuple[type, ...]] = {
    **dict.fromkeys(INTEGERS, (int,)),
    SchemaType.FLOAT32: (float, int),
    SchemaType.FLOAT64: (float, int),
    SchemaType.BOOLEAN: (bool,),
    SchemaType.STRING: (str,),
    SchemaType.BYTES: (bytes, bytearray, memoryview),
    SchemaType.ARRAY: (list, tuple),
    SchemaType.MAP: (list, tuple, dict),
    SchemaType.STRUCT: (dict,),
}
_PYTHON_LOGICAL: dict[str, tuple[type, ...]] = {
    DECIMAL: (Decimal,),
    DATE: (datetime.date,),
    TIME: (datetime.time,),
    TIMESTAMP: (datetime.datetime,),
}
# Kafka Connect's words, for sentences.
TYPE_NAMES = {kind: kind.name for kind in SchemaType}


def logical(schema: Schema) -> str | None:
    """The logical type, if the schema is one of the four."""
    name = schema.name
    return name if name is not None and _LOGICAL.get(name) is schema.type else None


def decimal_schema(scale: int, *, optional: bool = False) -> Schema:
    return Schema(SchemaType.BYTES, optional, DECIMAL, 1, parameters={"scale": str(scale)})


def scale_of(schema: Schema) -> int:
    text = schema.parameters.get("scale")
    try:
        return int(str(text))
    except ValueError:
        raise DataError(f"the schema of a Decimal has the scale {text}, which is no number.") from None


def array_schema(item: Schema | None, *, optional: bool = False) -> Schema:
    return Schema(SchemaType.ARRAY, optional, value_schema=item)


def map_schema(key: Schema | None, value: Schema | None, *, optional: bool = False) -> Schema:
    return Schema(SchemaType.MAP, optional, key_schema=key, value_schema=value)


def struct_schema(fields: Iterable[tuple[str, Schema]], like: Schema | None = None) -> Schema:
    """`like`: whose name, version, documentation and parameters it takes over. Raises SchemaError."""
    made = tuple(Field(name, schema) for name, schema in fields)
    seen: set[str] = set()
    for each in made:
        if not each.name:
            raise SchemaError("a field of a schema needs a name.")
        if each.name in seen:
            raise SchemaError(f"the schema would have two fields '{each.name}'.")
        seen.add(each.name)
    return with_basics(Schema(SchemaType.STRUCT, fields=made), like)


def with_basics(schema: Schema, like: Schema | None) -> Schema:
    if like is None:
        return schema
    return replace(schema, name=like.name, version=like.version, doc=like.doc, parameters=like.parameters)


def with_default(schema: Schema, default: Any) -> Schema:
    """Raises SchemaError for a default that the schema does not take."""
    try:
        validate(schema, default)
    except DataError as error:
        raise SchemaError(f"the default does not fit its schema: {error}") from None
    return replace(schema, default=default)


def field_value(struct: Mapping[str, Any], field: Field, use_default: bool = True) -> Any:
    value = struct.get(field.name)
    return field.schema.default if value is None and use_default else value


def validate(schema: Schema, value: Any, where: str = "the value") -> None:
    """Raises DataError where Kafka Connect refuses to put such a value into a struct."""
    if value is None:
        if not schema.optional:
            raise DataError(f"{where} is null, and its schema ({TYPE_NAMES[schema.type]}) is not optional.")
        return
    wanted = _PYTHON_LOGICAL.get(schema.name or "") or _PYTHON[schema.type]
    is_one: bool = isinstance(value, wanted) and (not isinstance(value, bool) or bool in wanted)
    if not is_one:
        raise DataError(f"{where} is {type(value).__name__}, and its schema is {schema.name or schema.type.name}.")
    if schema.type is SchemaType.STRUCT:
        for field in schema.fields:
            part = value.get(field.name)
            if part is None and (field.schema.optional or field.schema.default is not None):
                continue
            validate(field.schema, part, f"the field '{field.name}'")
    elif schema.type is SchemaType.ARRAY:
        if value and schema.value_schema is None:
            raise DataError(f"{where} is an array without a schema for its elements.")
        for item in value:
            assert schema.value_schema is not None
            validate(schema.value_schema, item, f"an element of {where}")
    elif schema.type is SchemaType.MAP:
        for key, item in pairs(value):
            if schema.key_schema is None or schema.value_schema is None:
                raise DataError(f"{where} is a map without schemas for its keys and values.")
            validate(schema.key_schema, key, f"a key of {where}")
            validate(schema.value_schema, item, f"a value of {where}")


def pairs(value: Any) -> list[tuple[Any, Any]]:
    """Of a map: with a schema it is a list of pairs, without one a dict."""
    return list(value.items()) if isinstance(value, dict) else list(value)
