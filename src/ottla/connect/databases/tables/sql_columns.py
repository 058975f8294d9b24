"""Columns of tables as Connect's schemas: from SQLAlchemy's types to schemas, from the driver's values to Arrow."""

from __future__ import annotations

import datetime
import json
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql

from ottla.connect.api.data import DATE, TIME, TIMESTAMP, Schema, SchemaType
from ottla.connect.api.plugins import ConnectorFailure
from ottla.connect.databases.schemas import PRECISION_MOST, arrow_type, decimal

_MIDNIGHT = datetime.datetime(1970, 1, 1)


@dataclass(frozen=True)
class SqlColumn:
    name: str
    schema: Schema
    # From a value of the driver to one that Arrow takes; None if it is one already.
    convert: Callable[[Any], Any] | None = None

    def to_arrow(self, values: Sequence[Any]) -> Any:
        try:
            if self.convert is not None:
                values = [None if value is None else self.convert(value) for value in values]
            return pa.array(values, arrow_type(self.schema))
        except (pa.ArrowException, ValueError, TypeError, ArithmeticError, AttributeError) as error:
            raise ConnectorFailure(
                f"A value of the column {self.name} cannot be told in its Connect type "
                f"({self.schema.name or self.schema.type}): {error}. Leave it out, or make text of it, with a query."
            ) from error


def column_of(column: sa.Column[Any], backend: str) -> SqlColumn:
    if backend == "sqlite" and isinstance(column.type, sa.Integer):
        # One type of integers, of 64 bits, whatever its name.
        return SqlColumn(column.name, Schema(SchemaType.INT64, bool(column.nullable) and not column.primary_key))
    schema, convert = _mapped(column.type, bool(column.nullable) and not column.primary_key)
    if backend == "mysql" and isinstance(column.type, sa.DateTime | sa.Date):
        convert = _none_of_zeroes(schema.optional, convert)
    return SqlColumn(column.name, schema, convert)


def _mapped(kind: Any, optional: bool) -> tuple[Schema, Callable[[Any], Any] | None]:
    types = SchemaType
    if isinstance(kind, sa.Boolean):
        return Schema(types.BOOLEAN, optional), bool
    if isinstance(kind, sa.Integer):
        return Schema(_integer(kind), optional), None
    if isinstance(kind, sa.Float):
        return Schema(types.FLOAT32 if isinstance(kind, sa.REAL) else types.FLOAT64, optional), float
    if isinstance(kind, sa.Numeric):
        precision, scale = kind.precision, kind.scale
        if precision is None or precision > PRECISION_MOST or not 0 <= (scale or 0) <= precision:
            # Each value may have another scale: as text it is exact.
            return Schema(types.STRING, optional), str
        return decimal(precision, scale or 0, optional), Decimal
    if isinstance(kind, sa.DateTime):
        return Schema(types.INT64, optional, TIMESTAMP, 1), _millis
    if isinstance(kind, sa.Date):
        return Schema(types.INT32, optional, DATE, 1), None
    if isinstance(kind, sa.Time):
        return Schema(types.INT32, optional, TIME, 1), _time
    if isinstance(kind, sa.LargeBinary | sa.BINARY | sa.VARBINARY | postgresql.BYTEA):
        return Schema(types.BYTES, optional), bytes
    if isinstance(kind, mysql.BIT):
        length = ((kind.length or 1) + 7) // 8
        return Schema(types.BYTES, optional), lambda value: value.to_bytes(length, "big")
    if isinstance(kind, mysql.SET):
        return Schema(types.STRING, optional), lambda value: ",".join(sorted(value, key=kind.values.index))
    return Schema(types.STRING, optional), _hex_or_text if isinstance(kind, sa.types.NullType) else _text


def _integer(kind: Any) -> SchemaType:
    if isinstance(kind, mysql.TINYINT):
        return SchemaType.INT16 if kind.unsigned else SchemaType.INT8
    is_unsigned = bool(getattr(kind, "unsigned", False))
    if isinstance(kind, sa.SmallInteger):
        return SchemaType.INT32 if is_unsigned else SchemaType.INT16
    return SchemaType.INT64 if isinstance(kind, sa.BigInteger) or is_unsigned else SchemaType.INT32


def _millis(value: Any) -> Any:
    made = value if isinstance(value, datetime.datetime) else datetime.datetime.fromisoformat(str(value))
    return made.replace(microsecond=made.microsecond // 1000 * 1000)


def _none_of_zeroes(optional: bool, convert: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    """PyMySQL gives the text of a date that there is none of, as 0000-00-00."""

    def converted(value: Any) -> Any:
        if isinstance(value, str):
            if not optional:
                raise ValueError(f"there is no date {value}")
            return None
        return value if convert is None else convert(value)

    return converted


def _time(value: Any) -> datetime.time:
    if isinstance(value, datetime.timedelta):
        if not datetime.timedelta(0) <= value < datetime.timedelta(days=1):
            raise ValueError(f"{value} is no time of a day")
        value = (_MIDNIGHT + value).time()
    elif value.tzinfo is not None:
        value = (datetime.datetime.combine(_MIDNIGHT, value) - value.utcoffset()).time()
    return value.replace(microsecond=value.microsecond // 1000 * 1000, tzinfo=None)  # type: ignore[no-any-return]


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict | list):
        return json.dumps(value, default=_hex_or_text)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return str(value)


def _hex_or_text(value: Any) -> str:
    """Of a type that nothing is known of: bytes are no text."""
    return bytes(value).hex() if isinstance(value, bytes | memoryview) else _text(value)


_GUESSES: list[tuple[type, Schema, Callable[[Any], Any] | None]] = [
    (bool, Schema(SchemaType.BOOLEAN, True), None),
    (int, Schema(SchemaType.INT64, True), None),
    (float, Schema(SchemaType.FLOAT64, True), float),
    (Decimal, Schema(SchemaType.STRING, True), str),
    (datetime.datetime, Schema(SchemaType.INT64, True, TIMESTAMP, 1), _millis),
    (datetime.date, Schema(SchemaType.INT32, True, DATE, 1), None),
    (datetime.time, Schema(SchemaType.INT32, True, TIME, 1), _time),
    (datetime.timedelta, Schema(SchemaType.INT32, True, TIME, 1), _time),
    (bytes, Schema(SchemaType.BYTES, True), None),
    (memoryview, Schema(SchemaType.BYTES, True), bytes),
    (uuid.UUID, Schema(SchemaType.STRING, True), str),
]


def guessed(name: str, values: Sequence[Any]) -> SqlColumn:
    """Of a query, whose types only its values tell."""
    first = next((value for value in values if value is not None), None)
    for kind, schema, convert in _GUESSES:
        if isinstance(first, kind):
            return SqlColumn(name, schema, convert)
    return SqlColumn(name, Schema(SchemaType.STRING, True), _text)
