"""MySQL's types as Connect's schemas, in Debezium's mapping, and values as Arrow columns.

Rows of a snapshot come from PyMySQL and rows of the binlog from mysql-replication; both bring Python's values, not
always the same for the same column (bits, sets, JSON), and one conversion takes either.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa

from ottla.connect.api.data import DATE, TIME, TIMESTAMP, Schema, SchemaType
from ottla.connect.api.plugins import ConnectorFailure
from ottla.connect.databases.changes.envelope import TableColumn
from ottla.connect.databases.schemas import arrow_type, decimal

_EPOCH = datetime.datetime(1970, 1, 1)
_DAY = datetime.date(1970, 1, 1)
Convert = Callable[[Any], Any]


@dataclass(frozen=True)
class MysqlType:
    """In the words of information_schema."""

    name: str
    is_unsigned: bool = False
    precision: int = 0
    scale: int = 0
    # Digits of a second.
    fraction: int = 0
    values: tuple[str, ...] = ()


def table_column(name: str, kind: MysqlType, optional: bool, settings: Mapping[str, Any]) -> TableColumn:
    schema, convert = _mapped(kind, settings)
    made = replace(schema, optional=optional)

    def to_arrow(values: Any) -> Any:
        try:
            return pa.array([None if value is None else convert(value) for value in values], arrow_type(made))
        except (pa.ArrowException, ValueError, TypeError, ArithmeticError) as error:
            raise ConnectorFailure(
                f"A value of the column {name} ({kind.name}) cannot be told in its Connect type: {error}. Leave "
                "the column out with "
                "column.exclude.list."
            ) from error

    return TableColumn(name, made, to_arrow)


_INTEGERS = {
    ("tinyint", False): SchemaType.INT16,
    ("tinyint", True): SchemaType.INT16,
    ("smallint", False): SchemaType.INT16,
    ("smallint", True): SchemaType.INT32,
    ("mediumint", False): SchemaType.INT32,
    ("mediumint", True): SchemaType.INT32,
    ("int", False): SchemaType.INT32,
    ("int", True): SchemaType.INT64,
    ("bigint", False): SchemaType.INT64,
    ("bigint", True): SchemaType.INT64,
}
BINARY = {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "geometry", "point", "polygon"}


def is_integer(kind: MysqlType) -> bool:
    return (kind.name, kind.is_unsigned) in _INTEGERS


def _mapped(kind: MysqlType, settings: Mapping[str, Any]) -> tuple[Schema, Convert]:
    name = kind.name
    if is_integer(kind):
        return Schema(_INTEGERS[name, kind.is_unsigned]), int
    if name == "float":
        return Schema(SchemaType.FLOAT32), float
    if name == "double":
        return Schema(SchemaType.FLOAT64), float
    if name == "decimal":
        mode = settings["decimal.handling.mode"]
        if mode == "precise":
            return decimal(kind.precision, kind.scale), Decimal
        return (Schema(SchemaType.STRING), str) if mode == "string" else (Schema(SchemaType.FLOAT64), float)
    if name == "bit":
        return (Schema(SchemaType.BOOLEAN), _bit) if kind.precision == 1 else (Schema(SchemaType.INT64), _bits)
    if name in ("date", "time", "datetime", "timestamp", "year"):
        return _time(kind, settings["time.precision.mode"] == "connect")
    if name in BINARY:
        return Schema(SchemaType.BYTES), _bytes
    if name in ("enum", "set"):
        allowed = {"allowed": ",".join(kind.values)}
        known = "Enum" if name == "enum" else "EnumSet"
        schema = Schema(SchemaType.STRING, name=f"io.debezium.data.{known}", version=1, parameters=allowed)
        return schema, lambda value: _set(value, kind.values)
    if name == "json":
        return Schema(SchemaType.STRING, name="io.debezium.data.Json", version=1), _json
    return Schema(SchemaType.STRING), _text


def _time(kind: MysqlType, as_connect: bool) -> tuple[Schema, Convert]:
    name = kind.name
    if name == "year":
        return Schema(SchemaType.INT32, name="io.debezium.time.Year", version=1), int
    if name == "date":
        if as_connect:
            return Schema(SchemaType.INT32, name=DATE, version=1), _date
        return Schema(
            SchemaType.INT32, name="io.debezium.time.Date", version=1
        ), lambda value: (_date(value) - _DAY).days
    if name == "time":
        if as_connect:
            return Schema(SchemaType.INT32, name=TIME, version=1), lambda value: (_EPOCH + value).time()
        return Schema(SchemaType.INT64, name="io.debezium.time.MicroTime", version=1), _micros_of_delta
    if as_connect:
        return Schema(SchemaType.INT64, name=TIMESTAMP, version=1), _to_millis
    if name == "timestamp":
        schema = Schema(SchemaType.STRING, name="io.debezium.time.ZonedTimestamp", version=1)
        return schema, lambda value: value.isoformat() + "Z"
    if kind.fraction <= 3:
        return Schema(
            SchemaType.INT64, name="io.debezium.time.Timestamp", version=1
        ), lambda value: _micros(value) // 1000
    return Schema(SchemaType.INT64, name="io.debezium.time.MicroTimestamp", version=1), _micros


def _micros_of_delta(value: datetime.timedelta) -> int:
    return value // datetime.timedelta(microseconds=1)


def _micros(value: datetime.datetime) -> int:
    return (value - _EPOCH) // datetime.timedelta(microseconds=1)


def _to_millis(value: datetime.datetime) -> datetime.datetime:
    return value.replace(microsecond=value.microsecond // 1000 * 1000)


def _date(value: Any) -> datetime.date:
    return value if isinstance(value, datetime.date) else datetime.date.fromisoformat(value)


def _bits(value: Any) -> int:
    return int(value, 2) if isinstance(value, str) else int.from_bytes(value, "big")


def _bit(value: Any) -> bool:
    return bool(_bits(value))


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _set(value: Any, order: tuple[str, ...]) -> str:
    return ",".join(sorted(value, key=order.index)) if isinstance(value, set) else _text(value)


def _json(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(_of_bytes(value), separators=(", ", ": "))


def _of_bytes(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, dict):
        return {_of_bytes(key): _of_bytes(item) for key, item in value.items()}
    return [_of_bytes(item) for item in value] if isinstance(value, list) else value
