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
from ottla.connect.databases.schemas import arrow_type, bits, decimal

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
    # Bytes of a column of fixed size.
    length: int = 0
    charset: str = ""


def table_column(name: str, kind: MysqlType, optional: bool, settings: Mapping[str, Any]) -> TableColumn:
    schema, convert = _mapped(kind, settings)
    made = replace(schema, optional=optional)

    def to_arrow(values: Any) -> Any:
        try:
            return pa.array([None if value is None else convert(value) for value in values], arrow_type(made))
        except (pa.ArrowException, ValueError, TypeError, ArithmeticError, AttributeError) as error:
            raise ConnectorFailure(
                f"A value of the column {name} ({kind.name}) cannot be told in its Connect type: {error}. Leave "
                "the column out with column.exclude.list, or see bigint.unsigned.handling.mode and time.precision.mode."
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
_SHAPES = {"geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon"}
_SHAPES |= {"geometrycollection", "geomcollection"}
BINARY = {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", *_SHAPES}


def is_integer(kind: MysqlType) -> bool:
    return (kind.name, kind.is_unsigned) in _INTEGERS


def _mapped(kind: MysqlType, settings: Mapping[str, Any]) -> tuple[Schema, Convert]:
    name = kind.name
    if (name, kind.is_unsigned) == ("bigint", True) and settings["bigint.unsigned.handling.mode"] == "precise":
        return decimal(20, 0), Decimal
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
        return (Schema(SchemaType.BOOLEAN), _bit) if kind.precision == 1 else _bits_of(kind.precision)
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


def _bits_of(length: int) -> tuple[Schema, Convert]:
    return bits(length), lambda value: _bits(value).to_bytes((length + 7) // 8, "little")


def _time(kind: MysqlType, as_connect: bool) -> tuple[Schema, Convert]:
    schema, convert = _moment(kind, as_connect)
    # PyMySQL gives the text of a date that there is none of, as 0000-00-00; the binlog has nothing for it.
    return schema, lambda value: None if isinstance(value, str) else convert(value)


def _moment(kind: MysqlType, as_connect: bool) -> tuple[Schema, Convert]:
    name, named = kind.name, "io.debezium.time."
    if name == "year":
        return Schema(SchemaType.INT32, name=f"{named}Year", version=1), int
    if name == "date":
        if as_connect:
            return Schema(SchemaType.INT32, name=DATE, version=1), _same
        return Schema(SchemaType.INT32, name=f"{named}Date", version=1), lambda value: (value - _DAY).days
    if name == "time":
        if as_connect:
            return Schema(SchemaType.INT32, name=TIME, version=1), _clock
        return Schema(SchemaType.INT64, name=f"{named}MicroTime", version=1), _micros_of_delta
    if as_connect:
        return Schema(SchemaType.INT64, name=TIMESTAMP, version=1), _to_millis
    if name == "timestamp":
        schema = Schema(SchemaType.STRING, name=f"{named}ZonedTimestamp", version=1)
        return schema, lambda value: value.isoformat() + "Z"
    if kind.fraction <= 3:
        schema = Schema(SchemaType.INT64, name=f"{named}Timestamp", version=1)
        return schema, lambda value: _micros(value) // 1000
    return Schema(SchemaType.INT64, name=f"{named}MicroTimestamp", version=1), _micros


def _same(value: Any) -> Any:
    return value


def _clock(value: datetime.timedelta) -> datetime.time:
    if not datetime.timedelta(0) <= value < datetime.timedelta(days=1):
        raise ValueError(f"{value} is no time of a day, which time.precision.mode=connect asks for")
    return (_EPOCH + value).time()


def _micros_of_delta(value: datetime.timedelta) -> int:
    return value // datetime.timedelta(microseconds=1)


def _micros(value: datetime.datetime) -> int:
    return (value - _EPOCH) // datetime.timedelta(microseconds=1)


def _to_millis(value: datetime.datetime) -> datetime.datetime:
    return value.replace(microsecond=value.microsecond // 1000 * 1000)


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
