"""Payloads of JsonConverter, read: JSON to values of a schema, as Jackson and Kafka Connect do it.

A function is made once for each schema, and called for each record. What Jackson reads leniently is read so here: a
number where a string is expected is null, text where a number is expected is 0, an integer that is too long keeps its
lowest bits.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import json
import math
import re
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any

from ottla.connect.api.data import DATE, DECIMAL, TIME, TIMESTAMP, Schema, SchemaType
from ottla.connect.conversion.errors import DataError
from ottla.connect.conversion.java_text import (
    EPOCH,
    MILLIS_PER_DAY,
    as_float32,
    moment_of,
    wrapped,
)
from ottla.connect.conversion.schemas import FLOATS, INTEGERS, TYPE_NAMES, logical, scale_of, validate

Decode = Callable[[Any], Any]

_EXACT_MAX = 2**53
_SPACE = " \t\n\r"
# Strings stay as they are; of numbers that begin with zeros, the zeros go.
_LEADING_ZEROS = re.compile(r'"(?:[^"\\]|\\.)*"|(?<![0-9.eE+])(-?)0+(?=[0-9])')


class NeedsExact(Exception):
    """A number has more digits than a float keeps, and they count."""


# --- text to trees


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is no number of JSON")


FAST = json.JSONDecoder(parse_constant=_no_constant)
_exact = json.JSONDecoder(parse_constant=_no_constant, parse_float=Decimal)


def parse(data: bytes, *, exact: bool = False) -> Any:
    """What comes after the first value is not looked at. Raises DataError."""
    decoder = _exact if exact else FAST
    try:
        text = data.decode(json.detect_encoding(data)).lstrip(_SPACE)
        if not text:
            return None
        try:
            return _parsed(decoder, text)
        except ValueError:
            return _parsed(decoder, _LEADING_ZEROS.sub(_without_zeros, text))
    except (ValueError, RecursionError) as error:
        raise DataError(f"the value is no JSON: {error}.") from None


def _parsed(decoder: json.JSONDecoder, text: str) -> Any:
    tree, end = decoder.raw_decode(text)
    if end < len(text) and text[end] not in _SPACE and not isinstance(tree, dict | list | str):
        raise ValueError(f"'{text[end]}' follows the value")
    return tree


def _without_zeros(found: re.Match[str]) -> str:
    return found.group(0) if found.group(0).startswith('"') else found.group(1)


# --- trees to values


@lru_cache(maxsize=1024)
def decoder_of(schema: Schema | None, replaces_nulls: bool) -> Decode:
    """Takes None for null and for what is not there."""
    if schema is None:
        return _schemaless
    convert = _converter(schema, replaces_nulls)
    default = schema.default if replaces_nulls else None
    optional, name = schema.optional, TYPE_NAMES[schema.type]

    def decode(tree: Any) -> Any:
        if tree is not None:
            return convert(tree)
        if default is not None:
            return default
        if optional:
            return None
        raise DataError(f"a value of type {name} is null, and its schema is not optional.")

    return decode


def _schemaless(tree: Any) -> Any:
    if isinstance(tree, bool) or tree is None or isinstance(tree, str | float):
        return tree
    if isinstance(tree, int):
        return tree if -(1 << 63) <= tree < 1 << 63 else wrapped(tree, 64)
    if isinstance(tree, list):
        return [_schemaless(each) for each in tree]
    if isinstance(tree, Decimal):
        return float(tree)
    return {name: _schemaless(each) for name, each in tree.items()}


def _converter(schema: Schema, replaces_nulls: bool) -> Decode:
    if (name := logical(schema)) is not None:
        return _LOGICAL_DECODERS[name](schema)
    kind = schema.type
    if kind in INTEGERS:
        return _integer(INTEGERS[kind])
    if kind in FLOATS:
        return _float32 if kind is SchemaType.FLOAT32 else _float64
    if kind is SchemaType.BOOLEAN:
        return lambda tree: tree is True
    if kind is SchemaType.STRING:
        return lambda tree: tree if isinstance(tree, str) else None
    if kind is SchemaType.BYTES:
        return lambda tree: _bytes(tree) if isinstance(tree, str) else None
    if kind is SchemaType.ARRAY:
        item = decoder_of(schema.value_schema, replaces_nulls)
        return lambda tree: [item(each) for each in _children(tree)]
    return _map(schema, replaces_nulls) if kind is SchemaType.MAP else _struct(schema, replaces_nulls)


def _children(tree: Any) -> Any:
    return tree if isinstance(tree, list) else tree.values() if isinstance(tree, dict) else ()


def _integer(bits: int) -> Decode:
    least, most = -(1 << (bits - 1)), (1 << (bits - 1)) - 1

    def decode(tree: Any) -> int:
        if isinstance(tree, float):
            if abs(tree) >= _EXACT_MAX:
                raise NeedsExact
            tree = int(tree)
        elif isinstance(tree, Decimal):
            tree = int(tree)
        elif not isinstance(tree, int) or isinstance(tree, bool):
            return 0
        number: int = tree
        if least <= number <= most:
            return number
        # The smaller ones are cut from an int, which keeps the same lowest bits.
        return wrapped(number, bits)

    return decode


def _float64(tree: Any) -> float:
    if isinstance(tree, float):
        return tree
    if isinstance(tree, bool) or not isinstance(tree, int | Decimal):
        return 0.0
    try:
        return float(tree)
    except OverflowError:
        return math.copysign(math.inf, tree)


def _float32(tree: Any) -> float:
    return as_float32(_float64(tree))


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise DataError(f"bytes are text in base64, and a value is not: {error}.") from None


def _map(schema: Schema, replaces_nulls: bool) -> Decode:
    assert schema.key_schema is not None
    item = decoder_of(schema.value_schema, replaces_nulls)
    if schema.key_schema.type is SchemaType.STRING:

        def of_object(tree: Any) -> list[tuple[Any, Any]]:
            if not isinstance(tree, dict):
                raise DataError("a map with strings as keys is a JSON object.")
            return [(name, item(each)) for name, each in tree.items()]

        return of_object
    key = decoder_of(schema.key_schema, replaces_nulls)

    def of_array(tree: Any) -> list[tuple[Any, Any]]:
        if not isinstance(tree, list):
            raise DataError("a map whose keys are no strings is a JSON array of pairs.")
        found: dict[Any, Any] = {}
        for each in tree:
            if not isinstance(each, list) or len(each) != 2:
                raise DataError("an entry of a map is no pair.")
            found[_hashable(key(each[0]))] = item(each[1])
        return list(found.items())

    return of_array


def _hashable(key: Any) -> Any:
    if isinstance(key, list | dict):
        raise DataError("keys of maps that are arrays, maps or structs are not known here.")
    return key


def _struct(schema: Schema, replaces_nulls: bool) -> Decode:
    fields = [
        (
            each.name,
            decoder_of(each.schema, replaces_nulls),
            each.schema.optional,
            each.schema if each.schema.type in (SchemaType.ARRAY, SchemaType.MAP) else None,
        )
        for each in schema.fields
    ]

    def decode(tree: Any) -> dict[str, Any]:
        if not isinstance(tree, dict):
            raise DataError("a struct is a JSON object.")
        found = {}
        for name, part, optional, checked in fields:
            value = part(tree.get(name))
            if value is None and not optional:
                raise DataError(f"the field '{name}' is null, and its schema is not optional.")
            if checked is not None:
                validate(checked, value, f"the field '{name}'")
            found[name] = value
        return found

    return decode


def _decimal(schema: Schema) -> Decode:
    scale = scale_of(schema)

    def decode(tree: Any) -> Decimal:
        if isinstance(tree, float):
            raise NeedsExact
        if isinstance(tree, int | Decimal) and not isinstance(tree, bool):
            return Decimal(tree)
        if not isinstance(tree, str):
            raise DataError("a Decimal is a number, or bytes in base64.")
        data = _bytes(tree)
        if not data:
            raise DataError("a Decimal has no bytes.")
        return decimal_of(int.from_bytes(data, "big", signed=True), scale)

    return decode


def decimal_of(unscaled: int, scale: int) -> Decimal:
    digits = tuple(map(int, str(abs(unscaled))))
    return Decimal((int(unscaled < 0), digits, -scale))


def _int32(tree: Any, what: str) -> int:
    if not isinstance(tree, int) or isinstance(tree, bool) or not -(1 << 31) <= tree < 1 << 31:
        raise DataError(f"a {what} is an integer of 32 bits.")
    return tree


def _date(_: Schema) -> Decode:
    return lambda tree: moment_of(_int32(tree, "Date") * MILLIS_PER_DAY).date()


def _time(_: Schema) -> Decode:
    def decode(tree: Any) -> datetime.time:
        millis = _int32(tree, "Time")
        if not 0 <= millis < MILLIS_PER_DAY:
            raise DataError("a Time is less than 86400000 milliseconds after midnight.")
        return moment_of(millis).time()

    return decode


def _timestamp(_: Schema) -> Decode:
    def decode(tree: Any) -> datetime.datetime:
        if not isinstance(tree, int) or isinstance(tree, bool):
            raise DataError("a Timestamp is an integer.")
        return EPOCH + datetime.timedelta(milliseconds=tree) if 0 <= tree < 1 << 45 else moment_of(wrapped(tree, 64))

    return decode


_LOGICAL_DECODERS = {DECIMAL: _decimal, DATE: _date, TIME: _time, TIMESTAMP: _timestamp}
