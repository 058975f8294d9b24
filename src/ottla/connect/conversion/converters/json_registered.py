"""JsonSchemaConverter: JSON with the id of a JSON Schema before it.

Kafka Connect's schema stands in the JSON Schema as Confluent's converter writes it (`connect.type`, `connect.index`,
`title`); a JSON Schema that somebody wrote by hand is read by the same rules. Payloads are those of JsonConverter
without its envelope.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import pyarrow as pa

from ottla.connect.api.config import ConfigDef, ConfigKey, ConfigType
from ottla.connect.api.data import DECIMAL, Column, Schema, SchemaType
from ottla.connect.conversion.arrow import has_decimals, readable
from ottla.connect.conversion.converters.base import OnFailure, Piece, pieces_of
from ottla.connect.conversion.converters.registered import REGISTRY_SETTINGS, RegisteredConverter
from ottla.connect.conversion.errors import DataError, RecordError
from ottla.connect.conversion.json_columns import columns_to_json, json_to_columns
from ottla.connect.conversion.json_text import encoder_of
from ottla.connect.conversion.json_values import NeedsExact, decoder_of, parse
from ottla.connect.conversion.schemas import array_schema, logical, map_schema, struct_schema
from ottla.schemas.framing import HEAD
from ottla.schemas.registered import JSON, Registered

_PLAIN = {
    "boolean": SchemaType.BOOLEAN,
    "integer": SchemaType.INT64,
    "number": SchemaType.FLOAT64,
    "string": SchemaType.STRING,
}
_TOLD = {
    "int8": SchemaType.INT8,
    "int16": SchemaType.INT16,
    "int32": SchemaType.INT32,
    "int64": SchemaType.INT64,
    "float32": SchemaType.FLOAT32,
    "float64": SchemaType.FLOAT64,
    "bytes": SchemaType.BYTES,
}
_WORDS = {kind: word for word, kind in _TOLD.items()}
_DEPTH_MAX = 50


class JsonSchemaConverter(RegisteredConverter):
    class_name = "io.confluent.connect.json.JsonSchemaConverter"
    kind = JSON
    config_def = REGISTRY_SETTINGS + ConfigDef(
        (
            ConfigKey(
                "use.optional.for.nonrequired",
                ConfigType.BOOLEAN,
                "Whether a property that is not in `required` may be missing, in schemas that are read.",
                False,
            ),
            ConfigKey(
                "decimal.format",
                ConfigType.STRING,
                "How decimals are written: BASE64 (their bytes) or NUMERIC (a JSON number). Both are read.",
                "BASE64",
                check=lambda text: None if text.upper() in ("BASE64", "NUMERIC") else "it is BASE64 or NUMERIC.",
            ),
        )
    )

    def __init__(self, settings: Mapping[str, Any], *, is_key: bool) -> None:
        super().__init__(settings, is_key=is_key)
        self._lenient: bool = settings["use.optional.for.nonrequired"]
        self._as_numbers = settings["decimal.format"].upper() == "NUMERIC"

    def read(self, schema: Registered, data: Any, on_failure: OnFailure) -> Piece:
        made = _read_schema(schema, self._lenient)
        payloads = [each[HEAD.size :] for each in data.to_pylist()]
        if (array := json_to_columns(made, payloads, True)) is not None:
            return Piece(Column(made, array))
        decode, exact = decoder_of(made, True), has_decimals(made)
        at, values = [], []
        for place, payload in enumerate(payloads):
            try:
                try:
                    value = decode(parse(payload, exact=exact))
                except NeedsExact:
                    value = decode(parse(payload, exact=True))
                at.append(place)
                values.append(value)
            except RecordError as error:
                on_failure(place, error)
        pieces = pieces_of({made: (at, values)}, len(payloads), on_failure)
        return pieces[0] if pieces else Piece(Column(None, []), pa.array([], pa.int64()))

    def text_of(self, schema: Schema) -> str:
        return json.dumps(_tree(replace(schema, optional=False), self._as_numbers), separators=(",", ":"))

    def write(self, schema: Registered, column: Column, on_failure: OnFailure) -> Any:
        assert column.schema is not None
        head = HEAD.pack(0, schema.id)
        whole = columns_to_json(column.schema, column.data, True, self._as_numbers, "", "")
        if whole is not None:
            return pa.array([head + each for each in whole.to_pylist()], pa.binary())
        encode = encoder_of(column.schema, True, self._as_numbers)
        found: list[bytes | None] = [None] * len(column)
        for at, value in readable(column, on_failure):
            try:
                found[at] = head + encode(value).encode()
            except (RecordError, UnicodeEncodeError) as error:
                on_failure(at, error)
        return pa.array(found, pa.binary())


# --- JSON Schema to Kafka Connect's


@lru_cache(maxsize=256)
def _read_schema(schema: Registered, lenient: bool) -> Schema:
    documents = {name: json.loads(text) for name, text in schema.references}
    tree = json.loads(schema.text)
    return _Reader(tree, documents, lenient).schema(tree, 0)


class _Reader:
    def __init__(self, root: Any, documents: dict[str, Any], lenient: bool) -> None:
        self._root, self._documents, self._lenient = root, documents, lenient

    def schema(self, tree: Any, depth: int) -> Schema:
        if not isinstance(tree, dict) or depth > _DEPTH_MAX:
            raise DataError("the JSON Schema has a part that is no object, or that contains itself.")
        if "$ref" in tree:
            return self.schema(self._referred(str(tree["$ref"])), depth + 1)
        kind = tree.get("type")
        choices = tree.get("oneOf") or tree.get("anyOf")
        if isinstance(choices, list):
            others = [each for each in choices if each != {"type": "null"}]
            if len(others) != 1:
                raise DataError("a oneOf of several types, as the JSON Schema has it, is not known here.")
            return replace(self.schema(others[0], depth + 1), optional=len(others) < len(choices))
        if isinstance(kind, list):
            words = [word for word in kind if word != "null"]
            if len(words) != 1:
                raise DataError(f"a part of several types ({', '.join(map(str, kind))}) is not known here.")
            return replace(self.schema({**tree, "type": words[0]}, depth + 1), optional=len(words) < len(kind))
        if kind is None and "enum" in tree:
            kind = "string"
        made = self._by_kind(str(kind), tree, depth)
        version, parameters = tree.get("connect.version"), tree.get("connect.parameters")
        title, doc = tree.get("title"), tree.get("connect.doc") or tree.get("description")
        made = replace(
            made,
            name=title if isinstance(title, str) else None,
            version=version if isinstance(version, int) else None,
            doc=doc if isinstance(doc, str) else None,
            parameters=parameters if isinstance(parameters, dict) else {},
        )
        return _with_default(made, tree.get("default"))

    def _by_kind(self, kind: str, tree: dict[str, Any], depth: int) -> Schema:
        told = tree.get("connect.type")
        if kind == "array":
            items = tree.get("items")
            if told == "map" and isinstance(items, dict):
                parts = items.get("properties", {})
                return map_schema(*(self.schema(parts.get(word), depth + 1) for word in ("key", "value")))
            return array_schema(self.schema(items, depth + 1))
        if kind == "object":
            rest = tree.get("additionalProperties")
            if told == "map" or ("properties" not in tree and isinstance(rest, dict)):
                return map_schema(Schema(SchemaType.STRING), self.schema(rest, depth + 1))
            return self._struct(tree, depth)
        if kind not in _PLAIN:
            raise DataError(f"the type '{kind}' of the JSON Schema is not known here.")
        return Schema(_TOLD.get(str(told), _PLAIN[kind]))

    def _struct(self, tree: dict[str, Any], depth: int) -> Schema:
        properties = tree.get("properties") or {}
        required = tree.get("required") or []
        order = sorted(properties, key=lambda name: (_index(properties[name]), name))
        fields = []
        for name in order:
            part = self.schema(properties[name], depth + 1)
            if self._lenient and name not in required:
                part = replace(part, optional=True)
            fields.append((name, part))
        return struct_schema(fields)

    def _referred(self, reference: str) -> Any:
        document, _, path = reference.partition("#")
        found = self._documents.get(document) if document else self._root
        for step in path.strip("/").split("/") if path.strip("/") else ():
            found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
        if found is None:
            raise DataError(f"the JSON Schema refers to '{reference}', which is not there.")
        return found


def _with_default(schema: Schema, default: Any) -> Schema:
    """One that does not fit its own schema does not count."""
    if default is None or schema.type is SchemaType.STRUCT:
        return schema
    try:
        return replace(schema, default=decoder_of(schema, False)(default))
    except (RecordError, NeedsExact):
        return schema


def _index(tree: Any) -> int:
    told = tree.get("connect.index") if isinstance(tree, dict) else None
    return told if isinstance(told, int) else 1 << 31


# --- Kafka Connect's to JSON Schema


def _tree(schema: Schema, as_numbers: bool, index: int | None = None) -> dict[str, Any]:
    tree = _inner(schema, as_numbers)
    if schema.name is not None:
        tree["title"] = schema.name
    if schema.version is not None:
        tree["connect.version"] = schema.version
    if schema.doc is not None:
        tree["connect.doc"] = schema.doc
    if schema.parameters:
        tree["connect.parameters"] = dict(schema.parameters)
    if schema.default is not None and schema.type is not SchemaType.STRUCT:
        tree["default"] = json.loads(encoder_of(schema, False, as_numbers)(schema.default))
    if schema.optional:
        tree = {"oneOf": [{"type": "null"}, tree]}
    if index is not None:
        tree["connect.index"] = index
    return tree


def _inner(schema: Schema, as_numbers: bool) -> dict[str, Any]:
    kind = schema.type
    if kind is SchemaType.STRUCT:
        parts = {each.name: _tree(each.schema, as_numbers, at) for at, each in enumerate(schema.fields)}
        return {"type": "object", "properties": parts}
    if kind is SchemaType.ARRAY:
        return {"type": "array", "items": _tree(_part(schema.value_schema), as_numbers)}
    if kind is SchemaType.MAP:
        key, value = _part(schema.key_schema), _tree(_part(schema.value_schema), as_numbers)
        if key.type is not SchemaType.STRING:
            raise DataError("JsonSchemaConverter writes maps with strings as keys only.")
        return {"type": "object", "connect.type": "map", "additionalProperties": value}
    if logical(schema) == DECIMAL:
        return {"type": "number" if as_numbers else "string", "connect.type": "bytes"}
    word = {SchemaType.BOOLEAN: "boolean", SchemaType.STRING: "string", SchemaType.BYTES: "string"}.get(kind)
    if word is None:
        word = "number" if kind in (SchemaType.FLOAT32, SchemaType.FLOAT64) else "integer"
    return {"type": word, "connect.type": _WORDS[kind]} if kind in _WORDS else {"type": word}


def _part(schema: Schema | None) -> Schema:
    if schema is None:
        raise DataError("an array or a map has no schema for what is in it.")
    return schema
