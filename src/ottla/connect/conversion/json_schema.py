"""Kafka Connect's schemas in the JSON that JsonConverter writes before each payload."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ottla.connect.api.data import DECIMAL, Schema, SchemaType
from ottla.connect.conversion.errors import DataError
from ottla.connect.conversion.schemas import (
    array_schema,
    logical,
    map_schema,
    scale_of,
    struct_schema,
    with_default,
)

_TYPES = {kind.value: kind for kind in SchemaType}

# A payload of this schema, from JSON and to JSON text.
Decode = Callable[[Schema, Any], Any]
Encode = Callable[[Schema, Any], str]


def schema_from_json(tree: Any, decode_default: Decode) -> Schema | None:
    """Raises DataError or SchemaError."""
    if tree is None:
        return None
    kind = tree.get("type") if isinstance(tree, dict) else None
    if not isinstance(kind, str):
        raise DataError("a schema needs a field 'type'.")
    if kind not in _TYPES:
        raise DataError(f"'{kind}' is no type of a schema: they are {', '.join(_TYPES)}.")
    schema = _by_type(tree, _TYPES[kind], decode_default)
    name, version, doc, parameters = (tree.get(word) for word in ("name", "version", "doc", "parameters"))
    schema = replace(
        schema,
        optional=tree.get("optional") is True,
        name=name if isinstance(name, str) else None,
        version=version if isinstance(version, int) and not isinstance(version, bool) else None,
        doc=doc if isinstance(doc, str) else None,
    )
    if isinstance(parameters, dict):
        if not all(isinstance(value, str) for value in parameters.values()):
            raise DataError("the parameters of a schema are strings.")
        schema = replace(schema, parameters=parameters)
    if logical(schema) == DECIMAL:
        scale_of(schema)
    if "default" in tree:
        default = decode_default(schema, tree["default"])
        schema = schema if default is None else with_default(schema, default)
    return schema


def _by_type(tree: dict[str, Any], kind: SchemaType, decode_default: Decode) -> Schema:
    if kind is SchemaType.ARRAY:
        if tree.get("items") is None:
            raise DataError("the schema of an array needs 'items'.")
        return array_schema(schema_from_json(tree["items"], decode_default))
    if kind is SchemaType.MAP:
        if tree.get("keys") is None or tree.get("values") is None:
            raise DataError("the schema of a map needs 'keys' and 'values'.")
        return map_schema(*(schema_from_json(tree[word], decode_default) for word in ("keys", "values")))
    if kind is not SchemaType.STRUCT:
        return Schema(kind)
    fields = tree.get("fields")
    if not isinstance(fields, list):
        raise DataError("the schema of a struct needs a list of 'fields'.")
    made: list[tuple[str, Schema]] = []
    for each in fields:
        name = each.get("field") if isinstance(each, dict) else None
        if not isinstance(name, str):
            raise DataError("each field of a struct's schema needs a name in 'field'.")
        schema = schema_from_json(each, decode_default)
        assert schema is not None
        made.append((name, schema))
    return struct_schema(made)


def schema_to_json(schema: Schema | None, encode_default: Encode, field: str | None = None) -> str:
    """`field`: the name that it has in its struct."""
    if schema is None:
        return "null"
    parts = [f'"type":"{schema.type.value}"']
    if schema.type is SchemaType.ARRAY:
        parts.append(f'"items":{schema_to_json(schema.value_schema, encode_default)}')
    elif schema.type is SchemaType.MAP:
        parts.append(f'"keys":{schema_to_json(schema.key_schema, encode_default)}')
        parts.append(f'"values":{schema_to_json(schema.value_schema, encode_default)}')
    elif schema.type is SchemaType.STRUCT:
        fields = (schema_to_json(each.schema, encode_default, each.name) for each in schema.fields)
        parts.append(f'"fields":[{",".join(fields)}]')
    parts.append(f'"optional":{"true" if schema.optional else "false"}')
    if schema.name is not None:
        parts.append(f'"name":{_text(schema.name)}')
    if schema.version is not None:
        parts.append(f'"version":{schema.version}')
    if schema.doc is not None:
        parts.append(f'"doc":{_text(schema.doc)}')
    if schema.parameters:
        parameters = (f"{_text(name)}:{_text(value)}" for name, value in schema.parameters.items())
        parts.append(f'"parameters":{{{",".join(parameters)}}}')
    if schema.default is not None:
        parts.append(f'"default":{encode_default(schema, schema.default)}')
    if field is not None:
        parts.append(f'"field":{_text(field)}')
    return f"{{{','.join(parts)}}}"


def _text(word: str) -> str:
    return json.dumps(word, ensure_ascii=False)
