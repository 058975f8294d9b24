"""Avro's schemas as Kafka Connect's and back, as Confluent's converter has them: what Avro has no word for stands in
properties called `connect.…`."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

from ottla.avro import schema as avro
from ottla.connect.api.data import DATE, DECIMAL, TIME, TIMESTAMP, Schema, SchemaType
from ottla.connect.conversion.arrow import PRECISION
from ottla.connect.conversion.errors import DataError, RecordError
from ottla.connect.conversion.json_text import encoder_of
from ottla.connect.conversion.json_values import decimal_of, decoder_of
from ottla.connect.conversion.schemas import (
    DATE_SCHEMA,
    TIME_SCHEMA,
    TIMESTAMP_SCHEMA,
    array_schema,
    logical,
    map_schema,
    scale_of,
    struct_schema,
)

UNION = "io.confluent.connect.avro.Union"
ENUM = "io.confluent.connect.avro.Enum"
MAP_ENTRY = "MapEntry"
INTERNAL = "connect.internal.type"

_DIGITS = 64
_PLAIN = {
    "boolean": SchemaType.BOOLEAN,
    "int": SchemaType.INT32,
    "long": SchemaType.INT64,
    "float": SchemaType.FLOAT32,
    "double": SchemaType.FLOAT64,
    "bytes": SchemaType.BYTES,
    "string": SchemaType.STRING,
    "fixed": SchemaType.BYTES,
    "enum": SchemaType.STRING,
}
_WRITTEN = {kind: word for word, kind in _PLAIN.items() if word not in ("fixed", "enum")}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_UNNAMED = re.compile(r"io\.confluent\.connect\.avro\.ConnectDefault[0-9]*")
_SMALL = {"int8": SchemaType.INT8, "int16": SchemaType.INT16}


# --- to Kafka Connect


def to_connect(schema: avro.Schema, above: tuple[int, ...] = ()) -> Schema:
    """Raises DataError for what Kafka Connect has no schema for."""
    if schema.type == "union":
        others = [branch for branch in schema.branches if branch.type != "null"]
        optional = len(others) < len(schema.branches)
        if len(others) == 1:
            return replace(to_connect(others[0], above), optional=optional)
        parts = ((member_name(branch), replace(to_connect(branch, above), optional=True)) for branch in others)
        return replace(struct_schema(parts), name=UNION, optional=optional)
    if schema.is_record:
        if id(schema) in above:
            raise DataError(f"the schema '{schema.full_name}' contains itself: there are no columns for that.")
        fields = [(its.name, _field(its, (*above, id(schema)))) for its in schema.fields]
        # What had no name was given one to be written.
        name = None if _UNNAMED.fullmatch(schema.full_name) else schema.full_name
        made = replace(struct_schema(fields), name=name)
    elif schema.type == "array":
        item = schema.element()
        if item.is_record and item.properties.get(INTERNAL) == MAP_ENTRY:
            made = map_schema(*(to_connect(its.schema, above) for its in item.fields))
        else:
            made = array_schema(to_connect(item, above))
    elif schema.type == "map":
        made = map_schema(Schema(SchemaType.STRING), to_connect(schema.element(), above))
    elif schema.type in _PLAIN:
        made = _single(schema)
    else:
        raise DataError("a schema that is always null has no columns.")
    return _with_properties(made, schema)


def member_name(branch: avro.Schema) -> str:
    return branch.name.simple if branch.name is not None else branch.type


def _single(schema: avro.Schema) -> Schema:
    word = schema.properties.get("logicalType")
    if schema.type == "int" and word == "date":
        return DATE_SCHEMA
    if schema.type == "int" and word == "time-millis":
        return TIME_SCHEMA
    if schema.type == "long" and word == "timestamp-millis":
        return TIMESTAMP_SCHEMA
    if schema.type in ("bytes", "fixed") and word == "decimal":
        parameters = {"scale": str(schema.properties.get("scale", 0))}
        if (digits := schema.properties.get("precision")) not in (None, _DIGITS):
            parameters[PRECISION] = str(digits)
        return Schema(SchemaType.BYTES, name=DECIMAL, version=1, parameters=parameters)
    if schema.type == "enum":
        symbols = {f"{ENUM}.{symbol}": symbol for symbol in schema.symbols}
        return Schema(SchemaType.STRING, parameters={ENUM: schema.full_name, **symbols})
    small = _SMALL.get(str(schema.properties.get("connect.type"))) if schema.type == "int" else None
    return Schema(small or _PLAIN[schema.type])


def _with_properties(made: Schema, schema: avro.Schema) -> Schema:
    told = schema.properties
    name, version, doc = told.get("connect.name"), told.get("connect.version"), told.get("connect.doc")
    parameters = told.get("connect.parameters")
    return replace(
        made,
        name=name if isinstance(name, str) else made.name,
        version=version if isinstance(version, int) else made.version,
        doc=doc if isinstance(doc, str) else schema.doc or made.doc,
        parameters={**made.parameters, **parameters} if isinstance(parameters, dict) else made.parameters,
    )


def _field(its: avro.Field, above: tuple[int, ...]) -> Schema:
    made = to_connect(its.schema, above)
    if its.doc and not made.doc:
        made = replace(made, doc=its.doc)
    if not its.has_default or its.default is None or made.type in (SchemaType.STRUCT, SchemaType.MAP):
        return made
    try:
        if made.type is SchemaType.BYTES:
            data = str(its.default).encode("latin-1")
            if logical(made) == DECIMAL:
                return replace(made, default=decimal_of(int.from_bytes(data, "big", signed=True), scale_of(made)))
            return replace(made, default=data)
        return replace(made, default=decoder_of(replace(made, optional=True), False)(its.default))
    except (RecordError, UnicodeEncodeError):
        return made


# --- from Kafka Connect


def to_avro(schema: Schema) -> str:
    """The text of a schema. Raises DataError."""
    return json.dumps(_Writer().tree(schema, optional=False), separators=(",", ":"), ensure_ascii=False)


class _Writer:
    def __init__(self) -> None:
        self._names: dict[str, Schema] = {}
        self._unnamed = 0

    def tree(self, schema: Schema, *, optional: bool | None = None) -> Any:
        inner = self._tree(schema)
        if not (schema.optional if optional is None else optional):
            return inner
        if isinstance(inner, list):
            return ["null", *inner]
        # A default is of the first branch.
        return [inner, "null"] if schema.default is not None else ["null", inner]

    def _tree(self, schema: Schema) -> Any:
        if schema.type is SchemaType.STRUCT:
            return self._struct(schema)
        tree: dict[str, Any]
        if schema.type is SchemaType.ARRAY:
            tree = {"type": "array", "items": self.tree(_part(schema.value_schema))}
        elif schema.type is SchemaType.MAP:
            tree = self._map(schema)
        elif schema.type is SchemaType.STRING and ENUM in schema.parameters:
            return self._enum(schema)
        else:
            tree = _single_tree(schema)
        tree |= _properties(schema)
        return tree["type"] if tree.keys() == {"type"} else tree

    def _map(self, schema: Schema) -> dict[str, Any]:
        key, value = _part(schema.key_schema), _part(schema.value_schema)
        if key.type is SchemaType.STRING and not key.optional:
            return {"type": "map", "values": self.tree(value)}
        name = self._unnamed_one("MapEntry")
        fields = [{"name": "key", "type": self.tree(key)}, {"name": "value", "type": self.tree(value)}]
        entry = {"type": "record", "name": name, "namespace": "io.confluent.connect.avro", "fields": fields}
        return {"type": "array", "items": {**entry, INTERNAL: MAP_ENTRY}}

    def _unnamed_one(self, word: str) -> str:
        self._unnamed += 1
        return word if self._unnamed == 1 else f"{word}{self._unnamed}"

    def _struct(self, schema: Schema) -> Any:
        if schema.name == UNION:
            return [self.tree(replace(each.schema, optional=False)) for each in schema.fields]
        name = schema.name or f"io.confluent.connect.avro.{self._unnamed_one('ConnectDefault')}"
        if name in self._names:
            if self._names[name] != replace(schema, optional=False, default=None):
                raise DataError(f"two different structs are called '{name}', which Avro does not have.")
            return name
        self._names[name] = replace(schema, optional=False, default=None)
        space, _, simple = name.rpartition(".")
        if not all(_NAME.fullmatch(part) for part in name.split(".")):
            raise DataError(f"'{name}' is no name of a record in Avro: SetSchemaMetadata gives another.")
        tree: dict[str, Any] = {"type": "record", "name": simple}
        if space:
            tree["namespace"] = space
        tree["fields"] = [self._field(each.name, each.schema) for each in schema.fields]
        return tree | _properties(schema)

    def _field(self, name: str, schema: Schema) -> dict[str, Any]:
        if not _NAME.fullmatch(name):
            raise DataError(f"'{name}' is no name of a field in Avro: ReplaceField gives another.")
        tree: dict[str, Any] = {"name": name, "type": self.tree(schema)}
        if schema.default is not None and schema.type not in (SchemaType.STRUCT, SchemaType.MAP, SchemaType.ARRAY):
            tree["default"] = _default(schema)
        elif schema.optional:
            tree["default"] = None
        return tree

    def _enum(self, schema: Schema) -> Any:
        name = schema.parameters[ENUM]
        if name in self._names:
            return name
        self._names[name] = schema
        space, _, simple = name.rpartition(".")
        symbols = [value for word, value in schema.parameters.items() if word.startswith(f"{ENUM}.")]
        tree = {"type": "enum", "name": simple, "symbols": symbols}
        return {**tree, "namespace": space} if space else tree


def _part(schema: Schema | None) -> Schema:
    if schema is None:
        raise DataError("an array or a map has no schema for what is in it.")
    return schema


def _single_tree(schema: Schema) -> dict[str, Any]:
    name = logical(schema)
    if name == DECIMAL:
        told = schema.parameters.get(PRECISION, "")
        digits = int(told) if told.isdecimal() else _DIGITS
        return {"type": "bytes", "scale": scale_of(schema), "precision": digits, "logicalType": "decimal"}
    if name is not None:
        kind = "long" if name == TIMESTAMP else "int"
        word = {DATE: "date", TIME: "time-millis", TIMESTAMP: "timestamp-millis"}[name]
        return {"type": kind, "logicalType": word}
    if schema.type in (SchemaType.INT8, SchemaType.INT16):
        return {"type": "int", "connect.type": schema.type.value}
    return {"type": _WRITTEN[schema.type]}


def _properties(schema: Schema) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if schema.doc is not None:
        found["connect.doc"] = schema.doc
    if schema.version is not None:
        found["connect.version"] = schema.version
    parameters = {word: value for word, value in schema.parameters.items() if not word.startswith(ENUM)}
    if parameters:
        found["connect.parameters"] = parameters
    if schema.name is not None:
        found["connect.name"] = schema.name
    return found


def _default(schema: Schema) -> Any:
    if schema.type is SchemaType.BYTES:
        if logical(schema) == DECIMAL:
            import base64

            return base64.b64decode(json.loads(encoder_of(schema, False, False)(schema.default))).decode("latin-1")
        return bytes(schema.default).decode("latin-1")
    return json.loads(encoder_of(schema, False, True)(schema.default))
