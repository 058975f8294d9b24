"""TimestampConverter: between text, Unix time and Kafka Connect's Date, Time and Timestamp."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from ottla.connect.api.config import NO_DEFAULT, ConfigDef, ConfigInvalid, ConfigType, Importance
from ottla.connect.api.data import DATE, TIME, TIMESTAMP, Records, Schema, SchemaType
from ottla.connect.conversion.errors import DataError, RecordError
from ottla.connect.conversion.java_dates import date_format
from ottla.connect.conversion.java_text import MILLIS_PER_DAY, are_moments, millis_of, moment_of
from ottla.connect.conversion.rows import Row
from ottla.connect.conversion.schemas import (
    DATE_SCHEMA,
    STRING_SCHEMA,
    TIME_SCHEMA,
    TIMESTAMP_SCHEMA,
    field_value,
    logical,
    struct_schema,
    validate,
    with_default,
)
from ottla.connect.conversion.transforms.base import (
    REPLACE_NULLS,
    Transform,
    key,
    parts_of,
    remembered,
    require_map,
    require_struct,
    struct_array,
)
from ottla.connect.conversion.transforms.routing import date_pattern

_TARGETS = {
    "string": STRING_SCHEMA,
    "unix": Schema(SchemaType.INT64),
    "Date": DATE_SCHEMA,
    "Time": TIME_SCHEMA,
    "Timestamp": TIMESTAMP_SCHEMA,
}
# How many of a unit a millisecond has: (times, divided by).
_UNITS = {"seconds": (1, 1000), "milliseconds": (1, 1), "microseconds": (1000, 1), "nanoseconds": (1_000_000, 1)}
_LONG_MAX = (1 << 63) - 1


def _target(text: str) -> str | None:
    return None if text in _TARGETS else f"it is one of {', '.join(_TARGETS)}."


def _unit(text: str) -> str | None:
    return None if text in _UNITS else f"it is one of {', '.join(_UNITS)}."


def _format(text: str) -> str | None:
    return date_pattern(text) if text.strip() else None


class TimestampConverter(Transform):
    name = "TimestampConverter"
    config_def = ConfigDef(
        (
            key("field", ConfigType.STRING, "The field; empty: the whole key or value is a time.", "", Importance.HIGH),
            key(
                "target.type",
                ConfigType.STRING,
                "What it becomes: string, unix, Date, Time or Timestamp.",
                NO_DEFAULT,
                Importance.HIGH,
                _target,
                tuple(_TARGETS),
            ),
            key(
                "format",
                ConfigType.STRING,
                "How text is written and read, in UTC: a pattern of java.text.SimpleDateFormat.",
                "",
                check=_format,
            ),
            key(
                "unix.precision",
                ConfigType.STRING,
                "The unit of Unix time, read and written. What is finer than a millisecond is lost.",
                "milliseconds",
                Importance.LOW,
                _unit,
                tuple(_UNITS),
            ),
            REPLACE_NULLS,
        )
    )

    def __init__(self, settings: Mapping[str, Any], part: str = "value") -> None:
        super().__init__(settings, part)
        self._field: str = settings["field"]
        self._target: str = settings["target.type"]
        pattern: str = settings["format"]
        self._format = date_format(pattern) if pattern.strip() else None
        self._times, self._over = _UNITS[settings["unix.precision"]]
        self._defaults: bool = settings["replace.null.with.default"]
        if self._target == "string" and self._format is None:
            raise ConfigInvalid("TimestampConverter needs a format to make strings.")

    def row(self, row: Row) -> Row | None:
        schema, value = self.schema_of(row), self.value_of(row)
        if schema is None:
            return self.with_value(row, None, self._schemaless(value))
        if not self._field:
            made = replace(_TARGETS[self._target], optional=schema.optional)
            source = _source(schema)
            return self.with_value(row, made, None if value is None else self._converted(source, value))
        if value is not None:
            require_struct(schema, value, "TimestampConverter")
        made = self._schema(schema)
        return self.with_value(row, made, None if value is None else self._struct(schema, value, made))

    def _schemaless(self, value: Any) -> Any:
        if value is None:
            return None
        if not self._field:
            return self._converted(_source_of(value), value)
        found = dict(require_map(value, "TimestampConverter"))
        old = found.get(self._field)
        found[self._field] = None if old is None else self._converted(_source_of(old), old)
        return found

    @remembered
    def _schema(self, schema: Schema) -> Schema:
        if schema.type is not SchemaType.STRUCT:
            raise DataError("TimestampConverter of a field needs a struct.")
        target = _TARGETS[self._target]
        fields = (
            (each.name, replace(target, optional=each.schema.optional) if each.name == self._field else each.schema)
            for each in schema.fields
        )
        made = replace(struct_schema(fields, schema), optional=schema.optional)
        if schema.default is not None:
            made = with_default(made, self._struct(schema, schema.default, made))
        return made

    def _struct(self, schema: Schema, value: dict[str, Any], made: Schema) -> dict[str, Any]:
        found = {}
        for each, into in zip(schema.fields, made.fields, strict=True):
            part = field_value(value, each, self._defaults)
            if each.name == self._field:
                source = _source(each.schema)
                part = None if part is None else self._converted(source, part)
            validate(into.schema, part, f"the field '{each.name}'")
            found[each.name] = part
        return found

    def _converted(self, source: str, value: Any) -> Any:
        return self._made(self._millis(source, value))

    def _millis(self, source: str, value: Any) -> int:
        if source == "string":
            if self._format is None:
                raise DataError("TimestampConverter needs a format to read strings.")
            return self._format.parse(value)
        if source == "unix":
            # Towards zero when a unit is left out, and never beyond what a long holds.
            millis: int = value * self._over
            millis = -(-millis // self._times) if millis < 0 else millis // self._times
            return max(-_LONG_MAX - 1, min(_LONG_MAX, millis))
        return millis_of(value)

    def _made(self, millis: int) -> Any:
        if self._target == "unix":
            scaled = millis * self._times
            scaled = -(-scaled // self._over) if scaled < 0 else scaled // self._over
            return max(-_LONG_MAX - 1, min(_LONG_MAX, scaled))
        if self._target == "string":
            assert self._format is not None
            return self._format.format(millis)
        if self._target == "Time":
            return moment_of(millis % MILLIS_PER_DAY).time()
        return moment_of(millis).date() if self._target == "Date" else moment_of(millis)

    def columns(self, records: Records) -> Records | None:
        if self._field:
            found = self.struct_of(records)
            parts = None if found is None else parts_of(*found, self._defaults)
            if found is None or parts is None or found[0].default is not None:
                return None
            at = next((at for at, each in enumerate(found[0].fields) if each.name == self._field), None)
            if at is not None:
                converted = self._column(found[0].fields[at].schema, parts[at])
                if converted is None:
                    return None
                parts[at] = converted
            made = self._schema(found[0])
            return self.with_column(records, made, struct_array(made, parts, len(records)))
        column = self.column_of(records)
        if column.schema is None or isinstance(column.data, list):
            return None
        converted = self._column(column.schema, column.data)
        if converted is None:
            return None
        made = replace(_TARGETS[self._target], optional=column.schema.optional)
        return self.with_column(records, made, converted)

    def _column(self, schema: Schema, array: Any) -> Any | None:
        try:
            source = _source(schema)
        except RecordError:
            return None
        if (self._times, self._over) != (1, 1) and "unix" in (source, self._target):
            return None
        if source == "unix" and self._target == "Timestamp" and are_moments(array):
            return array.cast(pa.timestamp("ms")).cast(pa.timestamp("ms", tz="UTC"))
        if source == "Timestamp" and self._target == "unix":
            return array.cast(pa.int64())
        if source == "Timestamp" and self._target == "Date":
            days = [None if each is None else each // MILLIS_PER_DAY for each in array.cast(pa.int64()).to_pylist()]
            try:
                return pa.array(days, pa.int32()).cast(pa.date32())
            except (pa.ArrowInvalid, OverflowError):
                return None
        return None


def _source(schema: Schema) -> str:
    named = {TIMESTAMP: "Timestamp", DATE: "Date", TIME: "Time"}.get(logical(schema) or "")
    if named is not None:
        return named
    if schema.type is SchemaType.STRING:
        return "string"
    if schema.type is SchemaType.INT64:
        return "unix"
    raise RecordError(f"TimestampConverter knows no times of the schema {schema.name or schema.type.name}.")


def _source_of(value: Any) -> str:
    if isinstance(value, datetime.date | datetime.time):
        return "Timestamp"
    if isinstance(value, int) and not isinstance(value, bool):
        return "unix"
    if isinstance(value, str):
        return "string"
    raise DataError(f"TimestampConverter takes no {type(value).__name__} for a time.")
