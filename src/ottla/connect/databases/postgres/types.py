"""PostgreSQL's types as Connect's schemas, and values in PostgreSQL's text form as Arrow columns.

Snapshot and stream bring the same text, so one conversion serves both, a whole column at a time. Types that are not
listed here come as their text: nothing is left out.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ottla.connect.api.data import DATE, TIME, TIMESTAMP, Schema, SchemaType
from ottla.connect.api.plugins import ConnectorFailure
from ottla.connect.databases.changes.envelope import TableColumn
from ottla.connect.databases.changes.settings import PLACEHOLDER
from ottla.connect.databases.schemas import PRECISION_MOST, arrow_type, bits, decimal, struct

ToArrow = Callable[[Any], Any]
_NO_MODIFIER = -1
_BITS_MOST = 2**31 - 1
# Of an hstore.
_PAIR = re.compile(r'("(?:[^"\\]|\\.)*")=>(NULL|"(?:[^"\\]|\\.)*")', re.DOTALL)
_DAYS_LAST, _MICROS_LAST = 2**31 - 1, 2**63 - 1
# What PostgreSQL itself would show for the same value on every connection.
SESSION = (
    "-c DateStyle=ISO -c IntervalStyle=iso_8601 -c TimeZone=UTC -c extra_float_digits=3 -c bytea_output=hex "
    "-c lc_monetary=C"
)


@dataclass(frozen=True)
class PostgresType:
    """A row of pg_type."""

    name: str
    kind: str  # e: enum, d: domain, ...
    element: PostgresType | None = None
    base: PostgresType | None = None
    labels: tuple[str, ...] = ()
    base_modifier: int = _NO_MODIFIER


def table_column(
    name: str, kind: PostgresType, modifier: int, optional: bool, settings: Mapping[str, Any]
) -> TableColumn:
    schema, to_arrow = _mapped(kind, modifier, settings)
    unavailable = None
    if schema.type is SchemaType.STRING:
        unavailable = PLACEHOLDER.encode()
    elif schema.type is SchemaType.BYTES and schema.name is None:
        unavailable = b"\\x" + PLACEHOLDER.encode().hex().encode()

    def checked(values: Any) -> Any:
        try:
            return to_arrow(_text(values))
        except (pa.ArrowException, ValueError, ArithmeticError) as error:
            raise ConnectorFailure(
                f"A value of the column {name} ({kind.name}) cannot be told in its Connect type: {error}. Leave "
                "the column out with "
                "column.exclude.list, or see decimal.handling.mode and time.precision.mode."
            ) from error

    return TableColumn(name, replace(schema, optional=optional), checked, unavailable)


def _text(values: Any) -> Any:
    return pa.array(values, pa.string()) if isinstance(values, list) else values


def _mapped(kind: PostgresType, modifier: int, settings: Mapping[str, Any]) -> tuple[Schema, ToArrow]:
    while kind.base is not None:
        modifier = kind.base_modifier if modifier == _NO_MODIFIER else modifier
        kind = kind.base
    plain = _PLAIN.get(kind.name)
    if plain is not None:
        return Schema(plain), _cast(arrow_type(Schema(plain)))
    if kind.name in _NAMED:
        return Schema(SchemaType.STRING, name=_NAMED[kind.name], version=1), _same
    if kind.kind == "e":
        allowed = {"allowed": ",".join(kind.labels)}
        return Schema(SchemaType.STRING, name="io.debezium.data.Enum", version=1, parameters=allowed), _same
    if kind.element is not None and kind.name.startswith("_"):
        return _array(kind.element, modifier, settings)
    if kind.name == "bool" or (kind.name == "bit" and modifier == 1):
        true = "t" if kind.name == "bool" else "1"
        return Schema(SchemaType.BOOLEAN), lambda text: pc.equal(text, true)
    if kind.name in ("bit", "varbit"):
        return bits(_BITS_MOST if modifier == _NO_MODIFIER else modifier), _bits
    if kind.name == "bytea":
        return Schema(SchemaType.BYTES), _bytes
    if kind.name == "hstore":
        return Schema(SchemaType.STRING, name=_NAMED["json"], version=1), _map_as_json
    if kind.name == "money":
        # In dollars and cents, whatever they are called: see SESSION.
        schema, to_arrow = _decimal(19, 2, settings["decimal.handling.mode"])
        return schema, lambda text: to_arrow(pc.replace_substring_regex(text, r"[$,]", ""))
    if kind.name == "numeric":
        return _numeric(modifier, settings["decimal.handling.mode"])
    if kind.name in ("date", "time", "timestamp", "timestamptz"):
        return _time(kind.name, modifier, settings["time.precision.mode"] == "connect")
    return Schema(SchemaType.STRING), _same


_PLAIN = {
    "int2": SchemaType.INT16,
    "int4": SchemaType.INT32,
    "int8": SchemaType.INT64,
    "oid": SchemaType.INT64,
    "float4": SchemaType.FLOAT32,
    "float8": SchemaType.FLOAT64,
}
_NAMED = {
    "uuid": "io.debezium.data.Uuid",
    "json": "io.debezium.data.Json",
    "jsonb": "io.debezium.data.Json",
    "xml": "io.debezium.data.Xml",
    "ltree": "io.debezium.data.Ltree",
    "timetz": "io.debezium.time.ZonedTime",
    "interval": "io.debezium.time.Interval",
}


def _same(text: Any) -> Any:
    return text


def _cast(kind: Any) -> ToArrow:
    return lambda text: pc.cast(text, kind)


def _bytes(text: Any) -> Any:
    return pa.array([None if each is None else bytes.fromhex(each[2:]) for each in text.to_pylist()], pa.binary())


def _bits(text: Any) -> Any:
    def made(digits: str) -> bytes:
        return int(digits or "0", 2).to_bytes((len(digits) + 7) // 8, "little")

    return pa.array([None if each is None else made(each) for each in text.to_pylist()], pa.binary())


def _map_as_json(text: Any) -> Any:
    made = [None if each is None else json.dumps(_map(each), ensure_ascii=False) for each in text.to_pylist()]
    return pa.array(made, pa.string())


def _map(text: str) -> dict[str, str | None]:
    def word(quoted: str) -> str:
        return re.sub(r"\\(.)", r"\1", quoted[1:-1], flags=re.DOTALL)

    return {word(key): None if value == "NULL" else word(value) for key, value in _PAIR.findall(text)}


# --- numbers


def _numeric(modifier: int, mode: str) -> tuple[Schema, ToArrow]:
    if modifier != _NO_MODIFIER or mode != "precise":
        precision = (modifier - 4) >> 16 & 0xFFFF
        scale = (((modifier - 4) & 0x7FF) ^ 1024) - 1024
        if mode != "precise" or (precision <= PRECISION_MOST and 0 <= scale <= precision):
            return _decimal(precision, scale, mode)
    # Each value has its own scale.
    schema = struct(
        "io.debezium.data.VariableScaleDecimal",
        [("scale", Schema(SchemaType.INT32)), ("value", Schema(SchemaType.BYTES))],
    )
    return schema, lambda text: pa.array([_variable(each) for each in text.to_pylist()], arrow_type(schema))


def _decimal(precision: int, scale: int, mode: str) -> tuple[Schema, ToArrow]:
    if mode == "string":
        return Schema(SchemaType.STRING), _same
    schema = Schema(SchemaType.FLOAT64) if mode == "double" else decimal(precision, scale)
    return schema, _cast(arrow_type(schema))


def _variable(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    number = Decimal(text)
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int):
        raise ValueError(f"{text} is no decimal number (decimal.handling.mode=string or double takes it)")
    scale = max(0, -exponent)
    unscaled = int(number.scaleb(scale))
    return {
        "scale": scale,
        "value": unscaled.to_bytes((unscaled + (unscaled < 0)).bit_length() // 8 + 1, "big", signed=True),
    }


# --- time


def _time(name: str, modifier: int, as_connect: bool) -> tuple[Schema, ToArrow]:
    is_in_millis = 0 <= modifier <= 3
    if name == "date":
        if as_connect:
            return Schema(SchemaType.INT32, name=DATE, version=1), _cast(pa.date32())
        return Schema(SchemaType.INT32, name="io.debezium.time.Date", version=1), _days
    if name == "time":
        if as_connect:
            return Schema(SchemaType.INT32, name=TIME, version=1), lambda text: _micros_of_day(text, pa.time32("ms"))
        if is_in_millis:
            schema = Schema(SchemaType.INT32, name="io.debezium.time.Time", version=1)
            return schema, lambda text: pc.cast(pc.divide(_micros_of_day(text), 1000), pa.int32())
        return Schema(SchemaType.INT64, name="io.debezium.time.MicroTime", version=1), _micros_of_day
    if as_connect:
        return Schema(SchemaType.INT64, name=TIMESTAMP, version=1), _timestamps
    if name == "timestamptz":
        return Schema(SchemaType.STRING, name="io.debezium.time.ZonedTimestamp", version=1), _zoned
    if is_in_millis:
        schema = Schema(SchemaType.INT64, name="io.debezium.time.Timestamp", version=1)
        return schema, lambda text: pc.divide(_micros(text), 1000)
    return Schema(SchemaType.INT64, name="io.debezium.time.MicroTimestamp", version=1), _micros


def _days(text: Any) -> Any:
    try:
        return pc.cast(pc.cast(text, pa.date32()), pa.int32())
    except pa.ArrowInvalid:
        return pa.array([_each(value, _day) for value in text.to_pylist()], pa.int32())


def _micros(text: Any) -> Any:
    try:
        return pc.cast(pc.cast(text, pa.timestamp("us")), pa.int64())
    except pa.ArrowInvalid:
        return pa.array([_each(value, _micro) for value in text.to_pylist()], pa.int64())


def _timestamps(text: Any) -> Any:
    """With or without a zone, which is UTC on our connections."""
    bare = pc.replace_substring_regex(text, r"\+00(:00)?$", "")
    millis = pc.divide(_micros(bare), 1000)
    return pc.cast(millis, pa.timestamp("ms", tz="UTC"))


def _zoned(text: Any) -> Any:
    return pc.replace_substring(pc.replace_substring(text, " ", "T", max_replacements=1), "+00", "Z")


def _micros_of_day(text: Any, kind: Any = None) -> Any:
    if kind is not None:
        micros = pc.divide(_micros_of_day(text), 1000)
        return pc.cast(pc.cast(micros, pa.int32()), kind)
    try:
        whole = pc.binary_join_element_wise(pa.scalar("1970-01-01"), text, " ")
        return pc.cast(pc.cast(whole, pa.timestamp("us")), pa.int64())
    except pa.ArrowInvalid:  # 24:00:00
        return pa.array([_each(value, _clock) for value in text.to_pylist()], pa.int64())


def _each(value: str | None, made: Callable[[str], int]) -> int | None:
    return None if value is None else made(value)


def _day(text: str) -> int:
    if text.endswith("infinity"):
        return -_DAYS_LAST - 1 if text.startswith("-") else _DAYS_LAST
    year, month, day = map(int, text.removesuffix(" BC").split("-"))
    if text.endswith(" BC"):
        year = 1 - year
    # The calendar repeats every 400 years; Python knows years 1 to 9999 only.
    shift = (year - 2000) // 400
    days = datetime.date(year - 400 * shift, month, day) - datetime.date(1970, 1, 1)
    return days.days + shift * 146_097


def _micro(text: str) -> int:
    if text.endswith("infinity"):
        return -_MICROS_LAST - 1 if text.startswith("-") else _MICROS_LAST
    era = " BC" if text.endswith(" BC") else ""
    day, clock = text.removesuffix(" BC").split(" ")
    return _day(day + era) * 86_400_000_000 + _clock(clock.removesuffix("+00"))


def _clock(text: str) -> int:
    hours, minutes, seconds = text.split(":")
    whole, _, part = seconds.partition(".")
    return ((int(hours) * 60 + int(minutes)) * 60 + int(whole)) * 1_000_000 + int(part.ljust(6, "0") or 0)


# --- arrays


def _array(element: PostgresType, modifier: int, settings: Mapping[str, Any]) -> tuple[Schema, ToArrow]:
    inner, to_arrow = _mapped(element, modifier, settings)
    # Between boxes there are semicolons: they have commas of their own.
    if inner.type in (SchemaType.STRUCT, SchemaType.ARRAY) or element.name == "box":
        return Schema(SchemaType.STRING), _same
    schema = Schema(SchemaType.ARRAY, value_schema=replace(inner, optional=True))

    def convert(text: Any) -> Any:
        rows = [None if each is None else _elements(each) for each in text.to_pylist()]
        flat = to_arrow(pa.array([item for row in rows if row is not None for item in row], pa.string()))
        offsets, at = [], 0
        for row in rows:
            offsets.append(None if row is None else at)
            at += len(row or ())
        return pa.ListArray.from_arrays(pa.array([*offsets, at], pa.int32()), flat)

    return schema, convert


def _elements(text: str) -> list[str | None]:
    """Of `{a,"b c",NULL}`. Arrays of arrays come flat, as one row of all elements."""
    found: list[str | None] = []
    at = text.index("{") + 1
    while at < len(text):
        char = text[at]
        if char in "{},":
            at += 1
        elif char == '"':
            part = []
            at += 1
            while text[at] != '"':
                at += text[at] == "\\"
                part.append(text[at])
                at += 1
            at += 1
            found.append("".join(part))
        else:
            end = min(where for where in (text.find(",", at), text.find("}", at)) if where >= 0)
            found.append(None if text[at:end] == "NULL" else text[at:end])
            at = end
    return found
