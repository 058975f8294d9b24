"""`serdes.row("id STRING, amount DOUBLE")`: JSON objects with columns of known types, as dicts.

A value is read as Spark's `from_json` reads it: what is missing is null, what is not in the schema is left out, a
number, object or list is taken as text where text is wanted (a fraction in Java's form). Anything else of a wrong type
cannot be read.
"""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

from ottla.streams.sql.schema import Kind, Schema, parse_schema

_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)
_text = json.encoder.encode_basestring
_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "+Infinity": math.inf, "INF": math.inf, "+INF": math.inf}
_NOT_FINITE |= {"-Infinity": -math.inf, "-INF": -math.inf}
LEAST, MOST = -(2**63), 2**63 - 1


class RowSerde:
    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._fields = schema.fields
        # What stands before the value of each column.
        begins = ["{", *[","] * (len(schema.fields) - 1)]
        self._written = [
            (name, kind, f"{begin}{_text(name)}:") for begin, (name, kind) in zip(begins, schema, strict=True)
        ]

    def serialize(self, topic: str, value: Any) -> bytes:
        """As Python's json would, in a third of the time: an aggregate is written for every record."""
        if not isinstance(value, dict):
            raise TypeError(f"a row is a dict, and this is {type(value).__name__}")
        texts, found = [], 0
        for name, kind, begin in self._written:
            texts.append(begin)
            each = value.get(name)
            if each is not None or name in value:
                found += 1
            texts.append(_column_text(name, kind, each))
        if found < len(value):
            unknown = value.keys() - {name for name, _ in self._fields}
            raise ValueError(f"the row has no column {sorted(unknown)[0]!r}")
        texts.append("}")
        return "".join(texts).encode()

    def deserialize(self, topic: str, data: bytes) -> Any:
        text = data.decode()
        found = _DECODER.decode(text)
        if not isinstance(found, dict):
            raise ValueError("it is not a JSON object")
        row = {}
        for name, kind in self._fields:
            value = found.get(name)
            if value is not None:
                value = _read(name, kind, value, text)
            row[name] = value
        return row

    def __repr__(self) -> str:
        return f"serdes.row('{self.schema}')"


def row(schema: str) -> RowSerde:
    return RowSerde(parse_schema(schema))


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def _read(name: str, kind: Kind, value: Any, text: str) -> Any:
    found = type(value)
    if kind is Kind.STRING:
        return value if found is str else _as_written(text, name)
    if kind is Kind.BOOLEAN and found is bool:
        return value
    if kind is Kind.BIGINT and found is int and LEAST <= value <= MOST:
        return value
    if kind is Kind.DOUBLE:
        if found in (int, float):
            return float(value)
        if found is str and value in _NOT_FINITE:
            return _NOT_FINITE[value]
    raise ValueError(f"its column {name!r} is no {kind}")


def _as_written(text: str, name: str) -> str:
    """Whole numbers keep their digits, fractions are written as Java does it, objects and lists lose their spaces."""
    return _written(json.loads(text, parse_int=_Digits)[name])


class _Digits(str):
    """Of a whole number."""


def _written(value: Any) -> str:
    if isinstance(value, _Digits):
        return str(value)
    if isinstance(value, float):
        return java_text(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{_ENCODER.encode(name)}:{_written(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_written(each) for each in value) + "]"
    return _ENCODER.encode(value)


def java_text(number: float) -> str:
    """As Java writes a double since version 19; before, some have a digit more."""
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        plain = format(Decimal(repr(number)), "f")
        return plain if "." in plain else f"{plain}.0"
    sign, digits, exponent = Decimal(repr(number)).as_tuple()
    shown = "".join(map(str, digits)).rstrip("0")
    power = len(digits) - 1 + int(exponent)
    return f"{'-' if sign else ''}{shown[0]}.{shown[1:] or '0'}E{power}"


def _column_text(name: str, kind: Kind, value: Any) -> str:
    if value is None:
        return "null"
    found = type(value)
    if kind is Kind.BIGINT and found is int and LEAST <= value <= MOST:
        return repr(value)
    if kind is Kind.STRING and found is str:
        return _text(value)
    if kind is Kind.DOUBLE and found in (int, float):
        number = float(value)
        if math.isfinite(number):
            return repr(number)
        return '"NaN"' if math.isnan(number) else '"Infinity"' if number > 0 else '"-Infinity"'
    if kind is Kind.BOOLEAN and found is bool:
        return "true" if value else "false"
    raise TypeError(f"the column {name!r} is {kind}, and was given {value!r}")
