"""What shape a record has: HoistField, ExtractField, ValueToKey, Flatten, SetSchemaMetadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ottla.connect.api.config import NO_DEFAULT, ConfigDef, ConfigInvalid, ConfigType, Importance
from ottla.connect.api.data import Column, Field, Records, Schema, SchemaType
from ottla.connect.conversion.arrow import fits
from ottla.connect.conversion.errors import ArgumentError, DataError
from ottla.connect.conversion.rows import Row
from ottla.connect.conversion.schemas import field_value, struct_schema, validate, with_default
from ottla.connect.conversion.transforms.base import (
    REPLACE_NULLS,
    Transform,
    distinct,
    filled_part,
    key,
    parts_of,
    remembered,
    require_map,
    require_struct,
    struct_array,
)
from ottla.connect.conversion.transforms.paths import SYNTAX_VERSION, FieldPath


class HoistField(Transform):
    name = "HoistField"
    config_def = ConfigDef((key("field", ConfigType.STRING, "The one field of what comes out.", NO_DEFAULT),))

    def __init__(self, settings: Mapping[str, Any], part: str = "value") -> None:
        super().__init__(settings, part)
        self._field: str = settings["field"]

    def row(self, row: Row) -> Row | None:
        schema, value = self.schema_of(row), self.value_of(row)
        if schema is None:
            return self.with_value(row, None, {self._field: value})
        made = struct_schema([(self._field, schema)])
        validate(schema, value, f"the field '{self._field}'")
        return self.with_value(row, made, {self._field: value})

    def columns(self, records: Records) -> Records | None:
        column = self.column_of(records)
        schema = column.schema
        if schema is None or isinstance(column.data, list) or not self._field:
            return None
        if (column.data.null_count and not schema.optional) or not fits(schema, column.data):
            return None
        made = struct_schema([(self._field, schema)])
        return self.with_column(records, made, struct_array(made, [column.data], len(records)))


class ExtractField(Transform):
    name = "ExtractField"
    config_def = ConfigDef(
        (
            key("field", ConfigType.STRING, "The field that becomes the whole key or value.", NO_DEFAULT),
            REPLACE_NULLS,
            SYNTAX_VERSION,
        )
    )

    def __init__(self, settings: Mapping[str, Any], part: str = "value") -> None:
        super().__init__(settings, part)
        self._path = FieldPath(settings["field"], settings["field.syntax.version"])
        self._defaults: bool = settings["replace.null.with.default"]

    def row(self, row: Row) -> Row | None:
        schema, value = self.schema_of(row), self.value_of(row)
        if schema is None:
            tree = None if value is None else require_map(value, "ExtractField")
            return self.with_value(row, None, None if tree is None else self._path.in_map(tree))
        if value is not None:
            require_struct(schema, value, "ExtractField")
        field = self._path.field(schema)
        if field is None:
            raise ArgumentError(f"the record has no field '{self._path.text}'.")
        found = None if value is None else self._path.in_struct(schema, value, self._defaults)
        return self.with_value(row, field.schema, found)

    def columns(self, records: Records) -> Records | None:
        column = self.column_of(records)
        schema, array = column.schema, column.data
        if schema is None or isinstance(array, list) or schema.type is not SchemaType.STRUCT:
            return None
        for step in self._path.steps:
            if schema.type is not SchemaType.STRUCT:
                return None
            at = next((at for at, each in enumerate(schema.fields) if each.name == step), None)
            if at is None:
                return None
            field, part = schema.fields[at], array.flatten()[at]
            if field.schema.default is not None and part.null_count:
                if array.null_count:
                    return None
                filled = filled_part(Field(step, replace(field.schema, optional=True)), part, self._defaults)
                if filled is None:
                    return None
                part = filled
            schema, array = field.schema, part
        return self.with_column(records, schema, array)


class ValueToKey(Transform):
    name = "ValueToKey"
    has_parts = False
    config_def = ConfigDef(
        (
            key(
                "fields",
                ConfigType.LIST,
                "Fields of the value that become the key.",
                NO_DEFAULT,
                Importance.HIGH,
                distinct,
            ),
            REPLACE_NULLS,
        )
    )

    def __init__(self, settings: Mapping[str, Any], part: str = "value") -> None:
        super().__init__(settings, part)
        self._fields: list[str] = settings["fields"]
        self._defaults: bool = settings["replace.null.with.default"]

    def row(self, row: Row) -> Row | None:
        schema = row.value_schema
        if schema is None:
            value = require_map(row.value, "ValueToKey")
            row.key_schema, row.key = None, {name: value.get(name) for name in self._fields}
            return row
        struct = require_struct(schema, row.value, "ValueToKey")
        made = self._schema(schema)
        found = {}
        for each in made.fields:
            found[each.name] = field_value(struct, each, self._defaults)
            validate(each.schema, found[each.name], f"the field '{each.name}'")
        row.key_schema, row.key = made, found
        return row

    @remembered
    def _schema(self, schema: Schema) -> Schema:
        parts = [(name, schema.field_named(name)) for name in self._fields]
        missing = next((name for name, part in parts if part is None), None)
        if missing is not None:
            raise DataError(f"the value has no field '{missing}' for the key.")
        return struct_schema([(name, part) for name, part in parts if part is not None])

    def columns(self, records: Records) -> Records | None:
        found = self.struct_of(records)
        if found is None or any(found[0].field_named(name) is None for name in self._fields):
            return None
        schema, array = found
        made = self._schema(schema)
        parts = []
        for each in made.fields:
            part = filled_part(each, array.field(each.name), self._defaults)
            if part is None:
                return None
            parts.append(part)
        return replace(records, keys=Column(made, struct_array(made, parts, len(records))))


class Flatten(Transform):
    name = "Flatten"
    passes_nulls = True
    config_def = ConfigDef(
        (key("delimiter", ConfigType.STRING, "What stands between the names of a field's levels.", "."),)
    )

    def __init__(self, settings: Mapping[str, Any], part: str = "value") -> None:
        super().__init__(settings, part)
        self._delimiter: str = settings["delimiter"]

    def _named(self, prefix: str, name: str) -> str:
        return f"{prefix}{self._delimiter}{name}" if prefix else name

    def row(self, row: Row) -> Row | None:
        schema, value = self.schema_of(row), self.value_of(row)
        if value is None:
            return row
        flat: dict[str, Any] = {}
        if schema is None:
            self._flatten_map(require_map(value, "Flatten"), "", flat)
            return self.with_value(row, None, flat)
        require_struct(schema, value, "Flatten")
        made = self._schema(schema)
        self._flatten_struct(schema, value, "", made, flat)
        return self.with_value(row, made, flat)

    def _flatten_map(self, value: dict[str, Any], prefix: str, flat: dict[str, Any]) -> None:
        for name, each in value.items():
            path = self._named(prefix, name)
            if isinstance(each, dict):
                self._flatten_map(each, path, flat)
            elif each is None or isinstance(each, bool | int | float | str | bytes | list):
                flat[path] = each
            else:
                raise DataError(f"Flatten does not take a {type(each).__name__} without a schema, as in '{path}'.")

    def _flatten_struct(
        self, schema: Schema, value: dict[str, Any] | None, prefix: str, made: Schema, flat: dict[str, Any]
    ) -> None:
        if value is None:
            return
        for each in schema.fields:
            path = self._named(prefix, each.name)
            if each.schema.type is SchemaType.STRUCT:
                self._flatten_struct(each.schema, value.get(each.name), path, made, flat)
                continue
            into = made.field_named(path)
            assert into is not None
            flat[path] = field_value(value, each)
            validate(into, flat[path], f"the field '{path}'")

    @remembered
    def _schema(self, schema: Schema) -> Schema:
        fields: list[tuple[str, Schema]] = []
        self._collect(schema, "", schema.optional, schema.default, fields)
        return struct_schema(fields, schema)

    def _collect(
        self,
        schema: Schema,
        prefix: str,
        optional: bool,
        default: dict[str, Any] | None,
        fields: list[tuple[str, Schema]],
    ) -> None:
        for each in schema.fields:
            path = self._named(prefix, each.name)
            is_optional = optional or each.schema.optional
            its_default = each.schema.default
            if its_default is None and default is not None:
                its_default = field_value(default, each)
            if each.schema.type is SchemaType.STRUCT:
                self._collect(each.schema, path, is_optional, its_default, fields)
            elif each.schema.type is SchemaType.MAP:
                raise DataError(f"Flatten does not take maps that have a schema, as '{path}'.")
            else:
                plain = replace(each.schema, optional=is_optional, default=None)
                fields.append((path, plain if its_default is None else with_default(plain, its_default)))

    def columns(self, records: Records) -> Records | None:
        found = self.struct_of(records)
        if found is None:
            return None
        schema, array = found
        try:
            made = self._schema(schema)
        except Exception:  # rows say what is wrong
            return None
        parts: list[Any] = []
        if not self._parts(schema, array, parts):
            return None
        for each, part in zip(made.fields, parts, strict=True):
            if (part.null_count and not each.schema.optional) or not fits(each.schema, part):
                return None
        return self.with_column(records, made, struct_array(made, parts, len(records)))

    def _parts(self, schema: Schema, array: Any, parts: list[Any]) -> bool:
        for each, part in zip(schema.fields, array.flatten(), strict=True):
            if each.schema.type is SchemaType.STRUCT:
                if not self._parts(each.schema, part, parts):
                    return False
            elif each.schema.default is not None and part.null_count:
                return False
            else:
                parts.append(part)
        return True


class SetSchemaMetadata(Transform):
    name = "SetSchemaMetadata"
    config_def = ConfigDef(
        (
            key("schema.name", ConfigType.STRING, "The name that the schema gets.", None, Importance.HIGH),
            key("schema.version", ConfigType.INT, "The version that the schema gets.", None, Importance.HIGH),
            REPLACE_NULLS,
        )
    )

    def __init__(self, settings: Mapping[str, Any], part: str = "value") -> None:
        super().__init__(settings, part)
        self._name: str | None = settings["schema.name"]
        self._version: int | None = settings["schema.version"]
        self._defaults: bool = settings["replace.null.with.default"]
        if self._name is None and self._version is None:
            raise ConfigInvalid("SetSchemaMetadata needs schema.name or schema.version.")

    @remembered
    def _schema(self, schema: Schema) -> Schema:
        if schema.type is not SchemaType.STRUCT:
            raise DataError("SetSchemaMetadata takes schemas of structs only, as Kafka Connect's does.")
        name = schema.name if self._name is None else self._name
        return replace(schema, name=name, version=schema.version if self._version is None else self._version)

    def row(self, row: Row) -> Row | None:
        schema, value = self.schema_of(row), self.value_of(row)
        if schema is None:
            if value is None:
                return row
            raise DataError("SetSchemaMetadata needs a schema, and the record has none.")
        made = self._schema(schema)
        if value is None:
            return self.with_value(row, made, None)
        found = {}
        for each in made.fields:
            found[each.name] = field_value(value, each, self._defaults)
            validate(each.schema, found[each.name], f"the field '{each.name}'")
        return self.with_value(row, made, found)

    def columns(self, records: Records) -> Records | None:
        found = self.struct_of(records)
        parts = None if found is None else parts_of(*found, self._defaults)
        if found is None or parts is None:
            return None
        made = self._schema(found[0])
        return self.with_column(records, made, struct_array(made, parts, len(records)))
