"""JSON with the id of a schema before it, to columns that follow from the reader's JSON Schema.

| JSON Schema | Arrow, and so Spark |
|---|---|
| an object with `properties` | a struct of them |
| one with a schema for all others only | a map |
| an array with one schema for `items` | a list |
| `integer`, `number`, `boolean`, `string` | long, double, boolean, string |
| one of these, or null | the same; every column may be null |
| anything else | its JSON as text |

Types and `required` are checked, other rules (`pattern`, `maximum`) are not: they are the producer's to keep, as
Confluent's own deserialisers have it unless they are told otherwise. The schema of the writer does not matter.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote, urldefrag

import pyarrow as pa

from ottla.common.errors import OttlaError
from ottla.schemas.framing import HEAD
from ottla.schemas.registered import Registered

_DEPTH_MAX = 50
_LONG_MAX = 2**63 - 1
VALUE = "value"

Convert = Callable[[Any, str], Any]


class Unfit(Exception):
    pass


class JsonColumns:
    def __init__(self, reader: Registered) -> None:
        documents = {name: json.loads(text) for name, text in reader.references}
        tree = json.loads(reader.text)
        kind, convert = _Maker(documents, reader.id).column(tree, tree, 0)
        self._convert = convert
        self._is_object = pa.types.is_struct(kind)
        self.type = kind if self._is_object else pa.struct([pa.field(VALUE, kind)])

    def decode(self, values: Any) -> tuple[Any, Any]:
        rows: list[Any] = []
        reasons: list[str | None] = []
        for value in values.to_pylist():
            row, reason = None, None
            if value is not None:
                try:
                    row = self._row(value)
                except Unfit as error:
                    reason = str(error)
            rows.append(row)
            reasons.append(reason)
        return pa.array(rows, self.type), pa.array(reasons, pa.string())

    def _row(self, data: bytes) -> Any:
        if len(data) < HEAD.size or data[0] != 0:
            raise Unfit("the value has no id of a schema before it: it was not written with a registry")
        try:
            tree = json.loads(data[HEAD.size :])
        except (ValueError, RecursionError) as error:
            raise Unfit(f"the value is no JSON: {error}") from None
        found = self._convert(tree, "")
        if self._is_object and found is None:
            raise Unfit("the value is null")
        return found if self._is_object else {VALUE: found}


class _Maker:
    def __init__(self, documents: dict[str, Any], number: int) -> None:
        self._documents = documents
        self._number = number

    def column(self, schema: Any, document: Any, depth: int) -> tuple[Any, Convert]:
        if depth > _DEPTH_MAX:
            raise OttlaError(
                f"the JSON Schema {self._number} contains itself, or is nested deeper than {_DEPTH_MAX} levels: Spark "
                "has no columns for that. Read the topic without a schema."
            )
        schema, document = self._resolved(schema, document)
        kind = _type_of(schema)
        if kind == "object":
            return self._object(schema, document, depth)
        if kind == "array" and isinstance(schema.get("items"), dict):
            item, convert = self.column(schema["items"], document, depth + 1)
            return pa.list_(pa.field("element", item)), _list(convert)
        if kind == "either":
            others = [each for each in _branches(schema) if _type_of(self._resolved(each, document)[0]) != "null"]
            if len(others) == 1:
                return self.column(others[0], document, depth + 1)
        simple = {"integer": (pa.int64(), _integer), "number": (pa.float64(), _real), "string": (pa.string(), _text)}
        simple["boolean"] = (pa.bool_(), _boolean)
        return simple.get(kind, (pa.string(), _as_text))

    def _object(self, schema: Any, document: Any, depth: int) -> tuple[Any, Convert]:
        properties, rest = schema.get("properties"), schema.get("additionalProperties")
        if not properties and isinstance(rest, dict):
            item, convert = self.column(rest, document, depth + 1)
            return pa.map_(pa.string(), item), _map(convert)
        if not properties:
            return pa.string(), _as_text
        parts = {name: self.column(each, document, depth + 1) for name, each in properties.items()}
        fields = [pa.field(name, kind) for name, (kind, _) in parts.items()]
        required = frozenset(schema.get("required") or ())
        return pa.struct(fields), _struct({name: convert for name, (_, convert) in parts.items()}, required)

    def _resolved(self, schema: Any, document: Any) -> tuple[Any, Any]:
        for _ in range(_DEPTH_MAX):
            if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str):
                return schema, document
            name, fragment = urldefrag(schema["$ref"])
            if name and name in self._documents:
                document = self._documents[name]
            elif name and (not isinstance(document, dict) or name != document.get("$id")):
                raise OttlaError(f"the JSON Schema {self._number} refers to '{name}', which has no reference.")
            schema = document
            for part in unquote(fragment).lstrip("/").split("/") if fragment else ():
                try:
                    step = part.replace("~1", "/").replace("~0", "~")
                    schema = schema[int(step)] if isinstance(schema, list) else schema[step]
                except (KeyError, IndexError, ValueError, TypeError):
                    raise OttlaError(
                        f"the JSON Schema {self._number} refers to '#{fragment}', which is not there."
                    ) from None
        return schema, document


def _type_of(schema: Any) -> str:
    """The one type of its values, `either` where it is one of several schemas, or nothing that a column could be."""
    if not isinstance(schema, dict):
        return ""
    named = schema.get("type")
    if isinstance(named, list):
        others = [each for each in named if each != "null"]
        named = others[0] if len(others) == 1 else "number" if set(others) == {"integer", "number"} else None
    if isinstance(named, str):
        return named
    if "properties" in schema:
        return "object"
    if _branches(schema):
        return "either"
    listed = schema.get("enum", [schema["const"]] if "const" in schema else [])
    return "string" if listed and all(isinstance(each, str) for each in listed) else ""


def _branches(schema: dict[str, Any]) -> list[Any]:
    found = schema.get("oneOf") or schema.get("anyOf")
    return found if isinstance(found, list) else []


# --- one value; `where` is its path, for the sentence


def _unfit(where: str, wanted: str) -> Unfit:
    return Unfit(f"the value does not fit the schema: {where or 'it'} is no {wanted}")


def _integer(value: Any, where: str) -> Any:
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # 1.0 is an integer to JSON Schema
    if value is not None and (type(value) is not int or not -_LONG_MAX - 1 <= value <= _LONG_MAX):
        raise _unfit(where, "integer of 64 bits")
    return value


def _real(value: Any, where: str) -> Any:
    if value is None:
        return None
    if type(value) not in (int, float) or not math.isfinite(value):
        raise _unfit(where, "number")
    return float(value)


def _text(value: Any, where: str) -> Any:
    if value is not None and not isinstance(value, str):
        raise _unfit(where, "string")
    return _encodable(value, where)


def _encodable(value: str | None, where: str) -> str | None:
    """JSON may have halves of characters, which are no text elsewhere."""
    try:
        if value is not None and not value.isascii():
            value.encode()
    except UnicodeEncodeError:
        raise _unfit(where, "text") from None
    return value


def _boolean(value: Any, where: str) -> Any:
    if value is not None and not isinstance(value, bool):
        raise _unfit(where, "boolean")
    return value


def _as_text(value: Any, where: str) -> Any:
    if value is None or isinstance(value, str):
        return _encodable(value, where)
    return json.dumps(value, separators=(",", ":"))


def _list(convert: Convert) -> Convert:
    def converted(value: Any, where: str) -> Any:
        if value is None:
            return None
        if not isinstance(value, list):
            raise _unfit(where, "array")
        return [convert(each, f"{where}/{number}") for number, each in enumerate(value)]

    return converted


def _map(convert: Convert) -> Convert:
    def converted(value: Any, where: str) -> Any:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise _unfit(where, "object")
        return [(_encodable(name, where), convert(each, f"{where}/{name}")) for name, each in value.items()]

    return converted


def _struct(parts: dict[str, Convert], required: frozenset[str]) -> Convert:
    def converted(value: Any, where: str) -> Any:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise _unfit(where, "object")
        found = {name: convert(value.get(name), f"{where}/{name}") for name, convert in parts.items()}
        if not required <= value.keys():
            missing = min(required - value.keys())
            raise Unfit(f"the value does not fit the schema: {where}/{missing} is missing")
        return found

    return converted
