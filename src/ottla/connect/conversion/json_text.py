"""Payloads of JsonConverter, written: values of a schema to JSON text. A function is made once for each schema."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any

from ottla.connect.api.data import DATE, DECIMAL, Schema, SchemaType
from ottla.connect.conversion.errors import DataError
from ottla.connect.conversion.java_text import MILLIS_PER_DAY, decimal_text, float_text, millis_of
from ottla.connect.conversion.schemas import FLOATS, INTEGERS, logical, pairs, scale_of

Encode = Callable[[Any], str]

quoted = json.encoder.encode_basestring


@lru_cache(maxsize=1024)
def encoder_of(schema: Schema | None, replaces_nulls: bool, decimals_as_numbers: bool) -> Encode:
    if schema is None:
        return _schemaless_text
    convert = _writer(schema, replaces_nulls, decimals_as_numbers)
    default = None
    if schema.default is not None and replaces_nulls:
        default = convert(schema.default)
    optional = schema.optional

    def encode(value: Any) -> str:
        if value is not None:
            return convert(value)
        if default is not None:
            return default
        if optional:
            return "null"
        raise DataError("a value is null, and its schema is not optional and has no default.")

    return encode


def _schemaless_text(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _double_text(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return f'"{base64.b64encode(value).decode()}"'
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_schemaless_text, value))}]"
    if not isinstance(value, dict):
        raise DataError(f"a value of type {type(value).__name__} without a schema cannot be written as JSON.")
    if all(isinstance(key, str) for key in value):
        return f"{{{','.join(f'{quoted(key)}:{_schemaless_text(item)}' for key, item in value.items())}}}"
    return f"[{','.join(f'[{_schemaless_text(key)},{_schemaless_text(item)}]' for key, item in value.items())}]"


def _double_text(value: float) -> str:
    return repr(value) if math.isfinite(value) else f'"{float_text(value)}"'


def _single_text(value: float) -> str:
    return float_text(value, single=True) if math.isfinite(value) else f'"{float_text(value)}"'


def _writer(schema: Schema, replaces_nulls: bool, decimals_as_numbers: bool) -> Encode:
    kind, name = schema.type, logical(schema)
    if name == DECIMAL:
        return _number_writer if decimals_as_numbers else _decimal_writer(scale_of(schema))
    if name == DATE:
        return lambda value: str(millis_of(value) // MILLIS_PER_DAY)
    if name is not None:
        return lambda value: str(millis_of(value))
    if kind in INTEGERS:
        return str
    if kind in FLOATS:
        return _single_text if kind is SchemaType.FLOAT32 else _double_text
    if kind is SchemaType.BOOLEAN:
        return lambda value: "true" if value else "false"
    if kind is SchemaType.STRING:
        return quoted
    if kind is SchemaType.BYTES:
        return lambda value: f'"{base64.b64encode(value).decode()}"'
    if kind is SchemaType.ARRAY:
        item = encoder_of(schema.value_schema, replaces_nulls, decimals_as_numbers)
        return lambda value: f"[{','.join(map(item, value))}]"
    if kind is SchemaType.MAP:
        return _map_writer(schema, replaces_nulls, decimals_as_numbers)
    fields = [
        (f"{quoted(each.name)}:", each.name, encoder_of(each.schema, replaces_nulls, decimals_as_numbers))
        for each in schema.fields
    ]
    return lambda value: f"{{{','.join([head + part(value.get(name)) for head, name, part in fields])}}}"


def _map_writer(schema: Schema, replaces_nulls: bool, decimals_as_numbers: bool) -> Encode:
    key = encoder_of(schema.key_schema, replaces_nulls, decimals_as_numbers)
    item = encoder_of(schema.value_schema, replaces_nulls, decimals_as_numbers)
    if schema.key_schema is not None and schema.key_schema.type is SchemaType.STRING:
        return lambda value: f"{{{','.join(f'{key(one)}:{item(other)}' for one, other in pairs(value))}}}"
    return lambda value: f"[{','.join(f'[{key(one)},{item(other)}]' for one, other in pairs(value))}]"


def _number_writer(value: Decimal) -> str:
    return decimal_text(value)


def _decimal_writer(scale: int) -> Encode:
    def encode(value: Decimal) -> str:
        sign, digits, exponent = value.as_tuple()
        assert isinstance(exponent, int)
        if -exponent != scale:
            raise DataError(f"a Decimal has {-exponent} digits after the point, and its schema {scale}.")
        unscaled = int("".join(map(str, digits)) or "0") * (-1 if sign else 1)
        size = (unscaled if unscaled >= 0 else -unscaled - 1).bit_length() // 8 + 1
        return f'"{base64.b64encode(unscaled.to_bytes(size, "big", signed=True)).decode()}"'

    return encode
