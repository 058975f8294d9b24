"""Cast: fields, or the whole key or value, to another type, as Java casts."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ottla.connect.api.config import NO_DEFAULT, ConfigDef, ConfigType, Importance
from ottla.connect.api.data import DATE, Records, Schema, SchemaType
from ottla.connect.conversion.arrow import arrow_type
from ottla.connect.conversion.errors import DataError, RecordError
from ottla.connect.conversion.java_text import (
    MILLIS_PER_DAY,
    as_float32,
    base64_text,
    iso_text,
    millis_of,
    narrowed,
    parse_float,
    parse_integer,
    text_of,
    wrapped,
)
from ottla.connect.conversion.rows import Row
from ottla.connect.conversion.schemas import (
    FLOATS,
    INTEGERS,
    field_value,
    logical,
    struct_schema,
    validate,
    with_basics,
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

_TARGETS = {kind.name: kind for kind in (*INTEGERS, *FLOATS, SchemaType.BOOLEAN, SchemaType.STRING)}
_SOURCES = frozenset((*_TARGETS.values(), SchemaType.BYTES))
_NO_SOURCES = "Cast takes numbers, booleans, strings and bytes"


def _spec(mappings: list[str]) -> str | None:
    if not mappings:
        return "it needs at least one field to cast."
    for mapping in mappings:
        parts = mapping.split(":")
        while parts and not parts[-1]:
            parts.pop()
        if len(parts) not in (1, 2):
            return f"'{mapping}' is no pair of a field and a type."
        if parts[-1].strip().upper() not in _TARGETS:
            return f"'{parts[-1].strip()}' is no type to cast to: {', '.join(_TARGETS).lower()} are."
        if len(parts) == 1 and len(mappings) > 1:
            return "a type without a field is for the whole value, and stands alone."
    return None


class Cast(Transform):
    name = "Cast"
    passes_nulls = True
    config_def = ConfigDef(
        (
            key(
                "spec",
                ConfigType.LIST,
                "Fields and their new types, as field:int32, or one type for the whole: int8, int16, int32, int64, "
                "float32, float64, boolean, string. Bytes can be cast to a string only, which is base64.",
                NO_DEFAULT,
                Importance.HIGH,
                _spec,
            ),
            REPLACE_NULLS,
        )
    )

    def __init__(self, settings: Mapping[str, Any], part: str = "value") -> None:
        super().__init__(settings, part)
        self._whole: SchemaType | None = None
        self._casts: dict[str, SchemaType] = {}
        for mapping in settings["spec"]:
            name, _, kind = mapping.rpartition(":") if ":" in mapping.rstrip(":") else ("", "", mapping.rstrip(":"))
            if name:
                self._casts[name.strip()] = _TARGETS[kind.strip().upper()]
            else:
                self._whole = _TARGETS[kind.strip().upper()]
        self._defaults: bool = settings["replace.null.with.default"]

    def row(self, row: Row) -> Row | None:
        schema, value = self.schema_of(row), self.value_of(row)
        if value is None:
            return row
        if schema is None:
            return self.with_value(row, None, self._schemaless(value))
        made = self._schema(schema)
        if self._whole is not None:
            return self.with_value(row, made, cast_value(schema, value, self._whole))
        struct = require_struct(schema, value, "Cast")
        found = {}
        for each, into in zip(schema.fields, made.fields, strict=True):
            old = field_value(struct, each, self._defaults)
            kind = self._casts.get(each.name)
            found[each.name] = old if kind is None else cast_value(each.schema, old, kind)
            validate(into.schema, found[each.name], f"the field '{each.name}'")
        return self.with_value(row, made, found)

    def _schemaless(self, value: Any) -> Any:
        if self._whole is not None:
            return cast_value(None, value, self._whole)
        found = dict(require_map(value, "Cast"))
        for name, kind in self._casts.items():
            found[name] = cast_value(None, found.get(name), kind)
        return found

    @remembered
    def _schema(self, schema: Schema) -> Schema:
        if self._whole is not None:
            made = with_basics(Schema(self._whole), schema)
        else:
            if schema.type is not SchemaType.STRUCT:
                raise DataError("Cast of fields needs a struct.")
            made = struct_schema([(each.name, self._field(each.name, each.schema)) for each in schema.fields], schema)
        made = replace(made, optional=schema.optional)
        if schema.default is not None:
            made = with_default(made, cast_value(schema, schema.default, made.type))
        return made

    def _field(self, name: str, schema: Schema) -> Schema:
        kind = self._casts.get(name)
        if kind is None:
            return schema
        made = Schema(kind, schema.optional)
        return made if schema.default is None else with_default(made, cast_value(schema, schema.default, kind))

    def columns(self, records: Records) -> Records | None:
        if self._whole is not None:
            return None
        found = self.struct_of(records)
        parts = None if found is None else parts_of(*found, self._defaults)
        if found is None or parts is None:
            return None
        try:
            made = self._schema(found[0])
        except RecordError:
            return None
        for at, each in enumerate(found[0].fields):
            if (kind := self._casts.get(each.name)) is None:
                continue
            cast = cast_column(each.schema, parts[at], kind)
            if cast is None:
                return None
            parts[at] = cast
        return self.with_column(records, made, struct_array(made, parts, len(records)))


def cast_column(schema: Schema, part: Any, kind: SchemaType) -> Any | None:
    """Only where Arrow casts as Java does."""
    source, target = schema.type, arrow_type(Schema(kind))
    if logical(schema) is not None or source not in _SOURCES:
        return None
    if source is kind:
        return part
    if source in INTEGERS or source is SchemaType.BOOLEAN:
        if kind is SchemaType.BOOLEAN:
            return pc.not_equal(part, pa.scalar(0, part.type))
        if source is SchemaType.BOOLEAN and kind in FLOATS:
            return part.cast(pa.int8()).cast(target)
        # To fewer bits: the lowest stay, as in Java.
        return part.cast(target, safe=False)
    if source is SchemaType.FLOAT32 and kind is SchemaType.FLOAT64:
        return part.cast(target)
    if source is SchemaType.FLOAT64 and kind is SchemaType.FLOAT32:
        return part.cast(target, safe=False)
    return None


def cast_value(schema: Schema | None, value: Any, kind: SchemaType) -> Any:
    """Raises DataError."""
    if value is None:
        return None
    if schema is not None and schema.type not in _SOURCES:
        raise DataError(f"{_NO_SOURCES}, and a value is {schema.type.name}.")
    is_time = isinstance(value, datetime.date | datetime.time)
    if schema is None and (isinstance(value, list | dict | Decimal) or is_time):
        raise DataError(f"{_NO_SOURCES}, and a value is {type(value).__name__}.")
    if kind is SchemaType.STRING:
        return _to_text(schema, value)
    if is_time:
        value = millis_of(value) // (MILLIS_PER_DAY if schema is not None and schema.name == DATE else 1)
    if isinstance(value, bytes | bytearray | memoryview):
        raise DataError("Cast turns bytes into a string only.")
    if kind is SchemaType.BOOLEAN:
        return value.lower() == "true" if isinstance(value, str) else _to_integer(value, 64) != 0
    if kind in INTEGERS:
        return _to_integer(value, INTEGERS[kind])
    number = parse_float(value) if isinstance(value, str) else float(value)
    return as_float32(number) if kind is SchemaType.FLOAT32 else number


def _to_text(schema: Schema | None, value: Any) -> str:
    if isinstance(value, datetime.date | datetime.time):
        return iso_text(millis_of(value))
    if isinstance(value, bytes | bytearray | memoryview):
        return base64_text(bytes(value))
    return text_of(schema, value)


def _to_integer(value: Any, bits: int) -> int:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str):
        return parse_integer(value, bits)
    if isinstance(value, float):
        return narrowed(value, bits)
    return wrapped(int(value), bits)
