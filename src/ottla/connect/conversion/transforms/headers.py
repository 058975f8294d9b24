"""Transforms of headers: DropHeaders, InsertHeader, HeaderFrom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ottla.connect.api.config import NO_DEFAULT, ConfigDef, ConfigInvalid, ConfigType, Importance
from ottla.connect.api.data import Header, Records, Schema
from ottla.connect.conversion.errors import DataError
from ottla.connect.conversion.rows import NO_HEADERS, Row
from ottla.connect.conversion.schemas import field_value, struct_schema, validate
from ottla.connect.conversion.transforms.base import (
    REPLACE_NULLS,
    Transform,
    distinct,
    key,
    not_empty,
    parts_of,
    remembered,
    require_map,
    require_struct,
    struct_array,
)
from ottla.connect.conversion.values import parse_value


class DropHeaders(Transform):
    name = "DropHeaders"
    has_parts = False
    config_def = ConfigDef(
        (key("headers", ConfigType.LIST, "Names of headers that records lose.", NO_DEFAULT, Importance.HIGH, distinct),)
    )

    def __init__(self, settings: Mapping[str, Any], part: str = "value") -> None:
        super().__init__(settings, part)
        self._names = frozenset(settings["headers"])

    def row(self, row: Row) -> Row | None:
        row.headers = self._kept(row.headers)
        return row

    def _kept(self, headers: tuple[Header, ...]) -> tuple[Header, ...]:
        return tuple(each for each in headers if each.key not in self._names)

    def columns(self, records: Records) -> Records | None:
        if records.headers is None:
            return records
        return replace(records, headers=[self._kept(each) for each in records.headers])


class InsertHeader(Transform):
    name = "InsertHeader"
    has_parts = False
    config_def = ConfigDef(
        (
            key("header", ConfigType.STRING, "The name of the header.", NO_DEFAULT, Importance.HIGH),
            key(
                "value.literal",
                ConfigType.STRING,
                "Its value, for all records. What looks like a number, a date, an array or a map is one.",
                NO_DEFAULT,
                Importance.HIGH,
            ),
        )
    )

    def __init__(self, settings: Mapping[str, Any], part: str = "value") -> None:
        super().__init__(settings, part)
        schema, value = parse_value(settings["value.literal"])
        self._header = Header(settings["header"], schema, value)

    def row(self, row: Row) -> Row | None:
        row.headers = (*row.headers, self._header)
        return row

    def columns(self, records: Records) -> Records | None:
        before = records.headers or [NO_HEADERS] * len(records)
        return replace(records, headers=[(*each, self._header) for each in before])


def _operation(text: str) -> str | None:
    return None if text in ("move", "copy") else "it is move or copy."


class HeaderFrom(Transform):
    name = "HeaderFrom"
    config_def = ConfigDef(
        (
            key(
                "fields", ConfigType.LIST, "Fields whose values become headers.", NO_DEFAULT, Importance.HIGH, not_empty
            ),
            key(
                "headers",
                ConfigType.LIST,
                "The names of the headers, in the order of the fields.",
                NO_DEFAULT,
                Importance.HIGH,
                not_empty,
            ),
            key(
                "operation",
                ConfigType.STRING,
                "Whether fields are taken away (move) or stay (copy).",
                NO_DEFAULT,
                Importance.HIGH,
                _operation,
                ("move", "copy"),
            ),
            REPLACE_NULLS,
        )
    )

    def __init__(self, settings: Mapping[str, Any], part: str = "value") -> None:
        super().__init__(settings, part)
        self._fields: list[str] = settings["fields"]
        self._headers: list[str] = settings["headers"]
        self._moves = settings["operation"] == "move"
        self._defaults: bool = settings["replace.null.with.default"]
        if len(self._fields) != len(self._headers):
            raise ConfigInvalid("HeaderFrom needs as many names in `headers` as in `fields`.")

    def row(self, row: Row) -> Row | None:
        schema, value = self.schema_of(row), self.value_of(row)
        if schema is None:
            return self._schemaless(row, require_map(value, "HeaderFrom"))
        struct = require_struct(schema, value, "HeaderFrom")
        added = []
        for name, header in zip(self._fields, self._headers, strict=True):
            field = next((each for each in schema.fields if each.name == name), None)
            if field is None:
                raise DataError(f"HeaderFrom needs the field '{name}', and the record has none.")
            taken = field_value(struct, field, self._defaults)
            if taken is None and not field.schema.optional:
                raise DataError(f"the header '{header}' would be null, and its schema is not optional.")
            added.append(Header(header, field.schema, taken))
        if self._moves:
            schema, struct = self._moved(schema, struct)
        row.headers = (*row.headers, *added)
        return self.with_value(row, schema, struct)

    def _moved(self, schema: Schema, struct: dict[str, Any]) -> tuple[Schema, dict[str, Any]]:
        made = self._left(schema)
        kept = {}
        for each in made.fields:
            kept[each.name] = field_value(struct, each, self._defaults)
            validate(each.schema, kept[each.name], f"the field '{each.name}'")
        return made, kept

    @remembered
    def _left(self, schema: Schema) -> Schema:
        left = ((each.name, each.schema) for each in schema.fields if each.name not in self._fields)
        return struct_schema(left, schema)

    def _schemaless(self, row: Row, value: dict[str, Any]) -> Row:
        added = tuple(
            Header(header, None, value.get(name)) for name, header in zip(self._fields, self._headers, strict=True)
        )
        if self._moves:
            value = {name: each for name, each in value.items() if name not in self._fields}
        row.headers = (*row.headers, *added)
        return self.with_value(row, None, value)

    def columns(self, records: Records) -> Records | None:
        found = self.struct_of(records)
        if found is None:
            return None
        schema, array = found
        names = [each.name for each in schema.fields]
        parts = parts_of(schema, array, self._defaults)
        if parts is None or any(name not in names for name in self._fields):
            return None
        at = [names.index(name) for name in self._fields]
        try:
            taken = [parts[place].to_pylist() for place in at]
        except (ValueError, OverflowError):
            return None
        fields = [schema.fields[place] for place in at]
        added = [
            tuple(
                Header(name, each.schema, value) for name, each, value in zip(self._headers, fields, row, strict=True)
            )
            for row in zip(*taken, strict=True)
        ]
        before = records.headers or [NO_HEADERS] * len(records)
        records = replace(records, headers=[(*old, *new) for old, new in zip(before, added, strict=True)])
        if not self._moves:
            return records
        left = self._left(schema)
        kept = [part for name, part in zip(names, parts, strict=True) if name not in self._fields]
        return self.with_column(records, left, struct_array(left, kept, len(records)))
