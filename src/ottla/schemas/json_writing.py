"""The JSON Schema that follows from columns.

Objects are closed (`additionalProperties: false`): so a column more is a change that BACKWARD, the level that a
registry has by itself, lets pass. A column that is null is left out of its object; items of lists and maps may be null.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ottla.common.errors import OttlaError

_DRAFT = "http://json-schema.org/draft-07/schema#"


def json_schema_of(kind: Any, name: str) -> dict[str, Any]:
    """Raises OttlaError for a type that JSON has no words for."""
    return {"$schema": _DRAFT, "title": name, **_of(kind, name)}


def _of(kind: Any, name: str) -> dict[str, Any]:
    types = pa.types
    if types.is_struct(kind):
        parts = [kind.field(index) for index in range(kind.num_fields)]
        properties = {part.name: _of(part.type, f"{name}.{part.name}") for part in parts}
        return {"type": "object", "properties": properties, "additionalProperties": False}
    if types.is_map(kind):
        if not types.is_string(kind.key_type):
            raise OttlaError(f"the keys of a map are text in JSON, and '{name}' has {kind.key_type}.")
        return {"type": "object", "additionalProperties": _or_null(_of(kind.item_type, name))}
    if types.is_list(kind):
        return {"type": "array", "items": _or_null(_of(kind.value_type, name))}
    if types.is_timestamp(kind):
        return {"type": "string", "format": "date-time"}
    if types.is_date32(kind):
        return {"type": "string", "format": "date"}
    if types.is_binary(kind):
        return {"type": "string", "contentEncoding": "base64"}
    for is_one, word in (
        (types.is_null, "null"),
        (types.is_boolean, "boolean"),
        (types.is_signed_integer, "integer"),
        (types.is_floating, "number"),
        (types.is_decimal, "number"),
        (types.is_string, "string"),
    ):
        if is_one(kind):
            return {"type": word}
    raise OttlaError(f"JSON Schema has no type for '{name}', which is {kind}: cast the column, or leave it out.")


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    if set(schema) == {"type"}:
        return {"type": ["null", schema["type"]]}
    return {"oneOf": [{"type": "null"}, schema]}
