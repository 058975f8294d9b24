"""InsertField: fields for what is known of a record besides its data, and for a static value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from ottla.connect.api.config import ConfigDef, ConfigInvalid, ConfigType
from ottla.connect.api.data import Records, Schema, SchemaType
from ottla.connect.conversion.errors import DataError
from ottla.connect.conversion.java_text import are_moments, moment_of
from ottla.connect.conversion.rows import Row
from ottla.connect.conversion.schemas import TIMESTAMP_SCHEMA, field_value, struct_schema, validate
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


class _Inserted(NamedTuple):
    name: str
    optional: bool


def _spec(text: str | None) -> _Inserted | None:
    if text is None:
        return None
    return _Inserted(text[:-1], text[-1:] == "?") if text[-1:] in ("?", "!") else _Inserted(text, True)


_SUFFIX = "With ! at the end the field is required, with ? or without anything optional."


class InsertField(Transform):
    name = "InsertField"
    passes_nulls = True
    config_def = ConfigDef(
        (
            key("topic.field", ConfigType.STRING, f"A field for the topic. {_SUFFIX}", None),
            key("partition.field", ConfigType.STRING, f"A field for the partition. {_SUFFIX}", None),
            key("offset.field", ConfigType.STRING, f"A field for the offset, in sinks. {_SUFFIX}", None),
            key("timestamp.field", ConfigType.STRING, f"A field for the record's timestamp. {_SUFFIX}", None),
            key("static.field", ConfigType.STRING, f"A field for the static value. {_SUFFIX}", None),
            key("static.value", ConfigType.STRING, "What stands in the static field of all records.", None),
            REPLACE_NULLS,
        )
    )

    def __init__(self, settings: Mapping[str, Any], part: str = "value") -> None:
        super().__init__(settings, part)
        words = ("topic", "partition", "offset", "timestamp", "static")
        self._specs = {word: spec for word in words if (spec := _spec(settings[f"{word}.field"])) is not None}
        self._value: str | None = settings["static.value"]
        self._defaults: bool = settings["replace.null.with.default"]
        if not self._specs:
            raise ConfigInvalid("InsertField needs a field to insert, as topic.field or static.field.")
        if "static" in self._specs and self._value is None:
            raise ConfigInvalid("InsertField needs static.value for its static.field.")

    def row(self, row: Row) -> Row | None:
        schema, value = self.schema_of(row), self.value_of(row)
        if value is None:
            return row
        if schema is None:
            return self.with_value(row, None, {**require_map(value, "InsertField"), **self._inserted(row, False)})
        struct = require_struct(schema, value, "InsertField")
        made = self._schema(schema)
        kept = {}
        for each in schema.fields:
            kept[each.name] = field_value(struct, each, self._defaults)
            validate(each.schema, kept[each.name], f"the field '{each.name}'")
        for name, inserted in self._inserted(row, True).items():
            into = made.field_named(name)
            assert into is not None
            validate(into, inserted, f"the field '{name}'")
            kept[name] = inserted
        return self.with_value(row, made, kept)

    def _inserted(self, row: Row, has_schema: bool) -> dict[str, Any]:
        """What is not known is left open, even in a required field; an offset has to be there."""
        found: dict[str, Any] = {}
        for word, spec in self._specs.items():
            if word == "topic":
                found[spec.name] = row.topic
            elif word == "partition" and row.partition is not None:
                found[spec.name] = row.partition
            elif word == "offset":
                if row.offset is None:
                    raise DataError("InsertField has an offset.field, and records of a source have no offsets.")
                found[spec.name] = row.offset
            elif word == "timestamp" and row.timestamp is not None:
                found[spec.name] = moment_of(row.timestamp) if has_schema else row.timestamp
            elif word == "static":
                found[spec.name] = self._value
        return found

    @remembered
    def _schema(self, schema: Schema) -> Schema:
        added = []
        for word, spec in self._specs.items():
            kind = {"partition": SchemaType.INT32, "offset": SchemaType.INT64}.get(word, SchemaType.STRING)
            plain = TIMESTAMP_SCHEMA if word == "timestamp" else Schema(kind)
            added.append((spec.name, Schema(plain.type, spec.optional, plain.name, plain.version)))
        return struct_schema([*((each.name, each.schema) for each in schema.fields), *added], schema)

    def columns(self, records: Records) -> Records | None:
        found = self.struct_of(records)
        parts = None if found is None else parts_of(*found, self._defaults)
        if found is None or parts is None or ("offset" in self._specs and records.offsets is None):
            return None
        made = self._schema(found[0])
        for word in self._specs:
            if word == "static":
                parts.append(pa.repeat(pa.scalar(self._value, pa.string()), len(records)))
            elif word == "timestamp":
                if not are_moments(records.timestamps):
                    return None
                parts.append(records.timestamps.cast(pa.timestamp("ms")).cast(pa.timestamp("ms", tz="UTC")))
            else:
                columns = {"topic": records.topics, "partition": records.partitions, "offset": records.offsets}
                parts.append(columns[word])
        return self.with_column(records, made, struct_array(made, parts, len(records)))
