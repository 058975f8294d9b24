"""Which fields a record has, and what is in them: ReplaceField and MaskField."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ottla.connect.api.config import NO_DEFAULT, ConfigDef, ConfigType, Importance
from ottla.connect.api.data import DATE, DECIMAL, TIME, TIMESTAMP, Records, Schema, SchemaType
from ottla.connect.conversion.errors import DataError
from ottla.connect.conversion.java_text import as_float32, moment_of, parse_decimal, wrapped
from ottla.connect.conversion.rows import Row
from ottla.connect.conversion.schemas import (
    INTEGERS,
    field_value,
    logical,
    struct_schema,
    validate,
)
from ottla.connect.conversion.transforms.base import (
    REPLACE_NULLS,
    Transform,
    constant,
    distinct,
    distinct_if_any,
    key,
    not_empty,
    parts_of,
    remembered,
    require_map,
    require_struct,
    struct_array,
)


def _pairs(mappings: list[str]) -> str | None:
    wrong = next((each for each in mappings if len(_split(each)) != 2), None)
    return None if wrong is None else f"'{wrong}' is no pair of names as old:new."


def _split(mapping: str) -> list[str]:
    """As Java splits: empty parts at the end do not count."""
    parts = mapping.split(":")
    while parts and not parts[-1]:
        parts.pop()
    return parts


class ReplaceField(Transform):
    name = "ReplaceField"
    passes_nulls = True
    config_def = ConfigDef(
        (
            key("exclude", ConfigType.LIST, "Fields to leave out, even if included.", [], check=distinct_if_any),
            key("include", ConfigType.LIST, "Fields to keep; none: all of them.", [], check=distinct_if_any),
            key("renames", ConfigType.LIST, "Pairs of an old and a new name, as old:new.", [], check=_pairs),
            REPLACE_NULLS,
        )
    )

    def __init__(self, settings: Mapping[str, Any], part: str = "value") -> None:
        super().__init__(settings, part)
        self._exclude, self._include = frozenset(settings["exclude"]), frozenset(settings["include"])
        self._renames = dict(_split(each) for each in settings["renames"])
        self._originals = {new: old for old, new in self._renames.items()}
        self._defaults: bool = settings["replace.null.with.default"]

    def _keeps(self, name: str) -> bool:
        return name not in self._exclude and (not self._include or name in self._include)

    def _renamed(self, name: str) -> str:
        return self._renames.get(name, name)

    def row(self, row: Row) -> Row | None:
        schema, value = self.schema_of(row), self.value_of(row)
        if value is None:
            return row
        if schema is None:
            kept = {
                self._renamed(name): each
                for name, each in require_map(value, "ReplaceField").items()
                if self._keeps(name)
            }
            return self.with_value(row, None, kept)
        struct = require_struct(schema, value, "ReplaceField")
        made = self._schema(schema)
        kept = {}
        for each in made.fields:
            old = self._originals.get(each.name, each.name)
            field = next((one for one in schema.fields if one.name == old), None)
            if field is None:
                raise DataError(f"'{old}' is no field of the record.")
            kept[each.name] = field_value(struct, field, self._defaults)
            validate(each.schema, kept[each.name], f"the field '{each.name}'")
        return self.with_value(row, made, kept)

    @remembered
    def _schema(self, schema: Schema) -> Schema:
        kept = ((self._renamed(each.name), each.schema) for each in schema.fields if self._keeps(each.name))
        return struct_schema(kept, schema)

    def columns(self, records: Records) -> Records | None:
        found = self.struct_of(records)
        parts = None if found is None else parts_of(*found, self._defaults)
        if found is None or parts is None:
            return None
        schema = found[0]
        # Where a field is given the name of another that stays, rows say what comes of it.
        if any(self._originals.get(self._renamed(each.name), each.name) != each.name for each in schema.fields):
            return None
        made = self._schema(schema)
        kept = [part for each, part in zip(schema.fields, parts, strict=True) if self._keeps(each.name)]
        return self.with_column(records, made, struct_array(made, kept, len(records)))


# --- masks

_EMPTY: dict[SchemaType, Any] = {
    **dict.fromkeys(INTEGERS, 0),
    SchemaType.FLOAT32: 0.0,
    SchemaType.FLOAT64: 0.0,
    SchemaType.BOOLEAN: False,
    SchemaType.STRING: "",
    SchemaType.ARRAY: [],
    SchemaType.MAP: [],
}
_FIRST_MOMENT = moment_of(0)
_EMPTY_LOGICAL = {
    DECIMAL: Decimal(0),
    DATE: _FIRST_MOMENT.date(),
    TIME: _FIRST_MOMENT.time(),
    TIMESTAMP: _FIRST_MOMENT,
}


class MaskField(Transform):
    name = "MaskField"
    config_def = ConfigDef(
        (
            key("fields", ConfigType.LIST, "Fields to mask.", NO_DEFAULT, Importance.HIGH, distinct),
            key(
                "replacement",
                ConfigType.STRING,
                "What numbers and strings become, instead of 0 and the empty string.",
                None,
                Importance.LOW,
                not_empty,
            ),
            REPLACE_NULLS,
        )
    )

    def __init__(self, settings: Mapping[str, Any], part: str = "value") -> None:
        super().__init__(settings, part)
        self._fields = frozenset(settings["fields"])
        self._names: list[str] = settings["fields"]
        self._replacement: str | None = settings["replacement"]
        self._defaults: bool = settings["replace.null.with.default"]

    def row(self, row: Row) -> Row | None:
        schema, value = self.schema_of(row), self.value_of(row)
        if schema is None:
            masked = dict(require_map(value, "MaskField"))
            for name in self._names:
                masked[name] = None if masked.get(name) is None else self._mask(None, masked[name])
            return self.with_value(row, None, masked)
        struct = require_struct(schema, value, "MaskField")
        masked = {}
        for each in schema.fields:
            old = field_value(struct, each, self._defaults)
            masked[each.name] = self._mask(each.schema, old) if each.name in self._fields and old is not None else old
            validate(each.schema, masked[each.name], f"the field '{each.name}'")
        return self.with_value(row, schema, masked)

    def _mask(self, schema: Schema | None, value: Any) -> Any:
        name = logical(schema) if schema is not None else None
        kind = schema.type if schema is not None else _type_of(value)
        if self._replacement is not None:
            return self._replaced(name, kind, schema is None and isinstance(value, Decimal))
        if name is not None:
            return _EMPTY_LOGICAL[name]
        if schema is None and isinstance(value, datetime.date | datetime.time | Decimal):
            return Decimal(0) if isinstance(value, Decimal) else _FIRST_MOMENT
        if kind not in _EMPTY:
            raise DataError(f"MaskField cannot mask a value of type {type(value).__name__}.")
        if schema is None and kind is SchemaType.MAP:
            return {}
        return _EMPTY[kind]

    def _replaced(self, name: str | None, kind: SchemaType | None, is_decimal: bool) -> Any:
        text = self._replacement
        assert text is not None
        if name == DECIMAL or is_decimal:
            return parse_decimal(text)
        if name is None and kind in INTEGERS:
            return wrapped(int(parse_decimal(text)), INTEGERS[kind])
        if name is None and kind in (SchemaType.FLOAT32, SchemaType.FLOAT64):
            number = float(parse_decimal(text))
            return as_float32(number) if kind is SchemaType.FLOAT32 else number
        if name is None and kind is SchemaType.STRING:
            return text
        raise DataError(f"MaskField cannot put '{text}' in the place of a value that is no number and no string.")

    def columns(self, records: Records) -> Records | None:
        found = self.struct_of(records)
        parts = None if found is None else parts_of(*found, self._defaults)
        if found is None or parts is None:
            return None
        schema = found[0]
        for at, each in enumerate(schema.fields):
            if each.name not in self._fields or parts[at].null_count == len(records):
                continue
            kind = parts[at].type
            if pa.types.is_nested(kind) or pa.types.is_decimal(kind):
                return None
            try:
                value = self._mask(each.schema, True)
            except DataError:
                return None
            masked = constant(each.schema, value, len(records))
            parts[at] = pc.if_else(parts[at].is_valid(), masked, pa.nulls(len(records), kind))
        return self.with_column(records, schema, struct_array(schema, parts, len(records)))


def _type_of(value: Any) -> SchemaType | None:
    """Of a value without a schema, as JSON without schemas has them."""
    if isinstance(value, bool):
        return SchemaType.BOOLEAN
    for kind, found in (
        (int, SchemaType.INT64),
        (float, SchemaType.FLOAT64),
        (str, SchemaType.STRING),
        (bytes, SchemaType.BYTES),
        (list, SchemaType.ARRAY),
        (dict, SchemaType.MAP),
    ):
        if isinstance(value, kind):
            return found
    return None
