"""Columns of Connect's schemas on their way into a database: as SQL types, and as values that every driver takes."""

from __future__ import annotations

import base64
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ottla.connect.api.data import DATE, DECIMAL, TIME, TIMESTAMP, Schema, SchemaType
from ottla.connect.api.plugins import BadRecords
from ottla.connect.databases.schemas import PRECISION
from ottla.connect.databases.tables.moments import CLOCKS, clocks, is_beyond_a_day, postgres_days, postgres_moments
from ottla.connect.databases.tables.sink_rows import RowColumn

_DEBEZIUM_TIME = "io.debezium.time."
# What a schema says, in words that each database has a type for.
_KINDS = {
    DECIMAL: "decimal",
    DATE: "date",
    TIME: "time",
    TIMESTAMP: "timestamp",
    "io.debezium.time.Date": "date",
    "io.debezium.time.Time": "time",
    "io.debezium.time.MicroTime": "time",
    "io.debezium.time.Timestamp": "timestamp",
    "io.debezium.time.MicroTimestamp": "timestamp",
    "io.debezium.time.ZonedTimestamp": "zoned",
    "io.debezium.data.Uuid": "uuid",
    "io.debezium.data.Json": "json",
    "io.debezium.data.VariableScaleDecimal": "decimal",
}


def kind_of(schema: Schema) -> str:
    if schema.name in _KINDS:
        return _KINDS[schema.name]
    if schema.type in (SchemaType.ARRAY, SchemaType.MAP, SchemaType.STRUCT):
        return "json"
    return schema.type.value


def precision_and_scale(schema: Schema) -> tuple[int, int] | None:
    scale = schema.parameters.get("scale")
    if schema.name != DECIMAL or scale is None:
        return None
    return int(schema.parameters.get(PRECISION, "38")), int(scale)


def plain(column: RowColumn) -> Any:
    """An array of a type that a database knows: times as such instead of numbers, nested values as JSON."""
    data, name = column.data, column.schema.name
    if name == "io.debezium.time.Date":
        return data.cast(pa.date32())
    if name in ("io.debezium.time.Timestamp", "io.debezium.time.MicroTimestamp"):
        return data.cast(pa.timestamp("ms" if name.endswith(".Timestamp") else "us"))
    if name in CLOCKS:
        if is_beyond_a_day(data, CLOCKS[name]):
            raise BadRecords(f"A value of {column.name} is no time of a day, as the column has them.")
        return data.cast(pa.time32("ms") if CLOCKS[name] == "ms" else pa.time64("us"))
    if name == "io.debezium.data.VariableScaleDecimal":
        return pa.array([_variable(value) for value in data.to_pylist()], pa.string())
    if pa.types.is_timestamp(data.type) and data.type.tz is not None:
        return data.cast(pa.timestamp(data.type.unit))
    if column.schema.type in (SchemaType.ARRAY, SchemaType.MAP, SchemaType.STRUCT):
        return pa.array(
            [None if value is None else json.dumps(value, default=_in_json) for value in data.to_pylist()], pa.string()
        )
    return data


def _in_json(value: Any) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def _variable(value: dict[str, Any] | None) -> str | None:
    if value is None:
        return None
    return str(Decimal(int.from_bytes(value["value"], "big", signed=True)).scaleb(-value["scale"]))


def python_values(column: RowColumn) -> list[Any]:
    try:
        values: list[Any] = plain(column).to_pylist()
    except (ValueError, OverflowError) as error:
        raise BadRecords(f"A value of {column.name} is a moment that the database cannot be given: {error}.") from error
    return values


def mysql_values(column: RowColumn) -> list[Any]:
    """Its clocks show days and more."""
    unit = CLOCKS.get(column.schema.name or "")
    if unit is not None and is_beyond_a_day(column.data, unit):
        values: list[Any] = clocks(column.data, unit).to_pylist()
        return values
    return python_values(column)


def sqlite_values(column: RowColumn) -> list[Any]:
    """It has no types of time and no decimals: text in the form that its functions read."""
    return [_sqlite(value) for value in python_values(column)]


def _sqlite(value: Any) -> Any:
    if value is None or isinstance(value, int | float | str | bytes):
        return value
    return value.isoformat(" ") if hasattr(value, "hour") and hasattr(value, "year") else str(value)


def postgres_text(column: RowColumn) -> Any:
    """For COPY as CSV: numbers and booleans as such, all else as text."""
    unit = CLOCKS.get(column.schema.name or "")
    if unit is not None and is_beyond_a_day(column.data, unit):
        return clocks(column.data, unit)
    data = plain(column)
    kind = data.type
    if pa.types.is_binary(kind):
        return pa.array([None if value is None else "\\x" + value.hex() for value in data.to_pylist()], pa.string())
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind) or pa.types.is_string(kind):
        return data
    if pa.types.is_date(kind):
        return postgres_days(data)
    return postgres_moments(data) if pa.types.is_timestamp(kind) else pc.cast(data, pa.string())
