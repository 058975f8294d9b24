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

The kernel (`ottla.kernel.json_values`) reads all values of which it is plain what they say, into columns and at once;
the others are read one by one here, with Python's parser, and what is wrong with them is said here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import unquote, urldefrag

import pyarrow as pa

from ottla.common.errors import OttlaError
from ottla.kernel.avro_steps import ColumnShape, Kind
from ottla.kernel.json_steps import JsonNode, JsonStep
from ottla.kernel.json_values import JsonDecoder
from ottla.schemas.framing import HEAD
from ottla.schemas.registered import Registered

_DEPTH_MAX = 50
_LONG_MAX = 2**63 - 1
VALUE = "value"

Convert = Callable[[Any, str], Any]


class Unfit(Exception):
    pass


class Made(NamedTuple):
    """What a schema has become: the type of its column, how Python's values are converted to it, and its step."""

    kind: Any
    convert: Convert
    step: int


class JsonColumns:
    def __init__(self, reader: Registered) -> None:
        documents = {name: json.loads(text) for name, text in reader.references}
        tree = json.loads(reader.text)
        maker = _Maker(documents, reader.id)
        # Column 0 is the struct of a row; without properties it is one around the value.
        made = maker.column(tree, tree, 0)
        self._convert = made.convert
        self._is_object = pa.types.is_struct(made.kind)
        self.type = made.kind if self._is_object else pa.struct([pa.field(VALUE, made.kind)])
        self._decoder = maker.decoder(made, self.type)

    def decode(self, values: Any) -> tuple[Any, Any]:
        rows, left = self._decoder.decode(values)
        if not left:
            return rows, pa.nulls(len(rows), pa.string())
        reasons: list[str | None] = [None] * len(rows)
        # Of the rows that are read here, which place they have among them.
        found: list[Any] = []
        places = list(range(len(rows)))
        for row, value in zip(left, values.take(pa.array(left, pa.int64())).to_pylist(), strict=True):
            try:
                found.append(self._row(value))
                places[row] = len(rows) + len(found) - 1
            except Unfit as error:
                reasons[row] = str(error)
        if found:
            both = pa.concat_arrays([rows, pa.array(found, self.type)])
            rows = both.take(pa.array(places, pa.int64()))
        return rows, pa.array(reasons, pa.string())

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


_SIMPLE: dict[str, tuple[JsonStep, Kind, Any]] = {
    "integer": (JsonStep.INTEGER, Kind.INT64, pa.int64()),
    "number": (JsonStep.NUMBER, Kind.DOUBLE, pa.float64()),
    "string": (JsonStep.STRING, Kind.BYTES, pa.string()),
    "boolean": (JsonStep.BOOLEAN, Kind.BOOLEAN, pa.bool_()),
}
_ANYTHING = (JsonStep.TEXT, Kind.BYTES, pa.string())


class _Maker:
    def __init__(self, documents: dict[str, Any], number: int) -> None:
        self._documents = documents
        self._number = number
        self._shapes: list[ColumnShape] = []
        self._nodes: list[JsonNode] = []
        self._edges: list[int] = []
        self._constants = bytearray()

    def decoder(self, made: Made, kind: Any) -> JsonDecoder:
        column = self._nodes[made.step].column
        if not pa.types.is_struct(made.kind):
            self._shapes.append(ColumnShape(int(Kind.STRUCT), (column,)))
            column = len(self._shapes) - 1
        # The kernel has the rows in column 0, and begins with the last step.
        last = column
        shapes = [self._shapes[last], *self._shapes[:last], *self._shapes[last + 1 :]]
        shapes = [ColumnShape(each.kind, tuple(_moved(child, last) for child in each.children)) for each in shapes]
        nodes = [each._replace(column=_moved(each.column, last)) for each in self._nodes]
        return JsonDecoder(shapes, kind, nodes, self._edges, bytes(self._constants))

    def _add(self, step: JsonStep, kind: Kind, children: tuple[int, ...] = (), a: int = 0, b: int = 0) -> int:
        """A column and its step, after those that it is made of."""
        self._shapes.append(ColumnShape(int(kind), children))
        self._nodes.append(JsonNode(int(step), len(self._shapes) - 1, a, b))
        return len(self._nodes) - 1

    def _column_of(self, made: Made) -> int:
        return self._nodes[made.step].column

    def column(self, schema: Any, document: Any, depth: int) -> Made:
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
            item = self.column(schema["items"], document, depth + 1)
            step = self._add(JsonStep.LIST, Kind.LIST, (self._column_of(item),), item.step)
            return Made(pa.list_(pa.field("element", item.kind)), _list(item.convert), step)
        if kind == "either":
            others = [each for each in _branches(schema) if _type_of(self._resolved(each, document)[0]) != "null"]
            if len(others) == 1:
                return self.column(others[0], document, depth + 1)
        return self._single(kind)

    def _single(self, name: str) -> Made:
        step, kind, arrow = _SIMPLE.get(name, _ANYTHING)
        return Made(arrow, _CONVERTS[step], self._add(step, kind))

    def _object(self, schema: Any, document: Any, depth: int) -> Made:
        properties, rest = schema.get("properties"), schema.get("additionalProperties")
        if not properties and isinstance(rest, dict):
            item = self.column(rest, document, depth + 1)
            self._shapes.append(ColumnShape(int(Kind.BYTES)))
            children = (len(self._shapes) - 1, self._column_of(item))
            step = self._add(JsonStep.MAP, Kind.MAP, children, item.step)
            return Made(pa.map_(pa.string(), item.kind), _map(item.convert), step)
        if not properties:
            return self._single("")
        parts = {name: self.column(each, document, depth + 1) for name, each in properties.items()}
        required = frozenset(schema.get("required") or ())
        steps = {name: made.step for name, made in parts.items()}
        for name in sorted(required - parts.keys()):
            self._nodes.append(JsonNode(int(JsonStep.SKIP)))
            steps[name] = len(self._nodes) - 1
        start = len(self._edges)
        for name, step in steps.items():
            data = name.encode("utf-8", "surrogatepass")
            self._edges += (len(self._constants), len(data), step, int(name in required))
            self._constants += data
        inner = tuple(self._column_of(made) for made in parts.values())
        number = self._add(JsonStep.STRUCT, Kind.STRUCT, inner, start, len(steps))
        fields = [pa.field(name, made.kind) for name, made in parts.items()]
        convert = _struct({name: made.convert for name, made in parts.items()}, required)
        return Made(pa.struct(fields), convert, number)

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


def _moved(column: int, last: int) -> int:
    """Its number once column `last` is the first."""
    return 0 if column == last else column + (0 <= column < last)


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
    with suppress(OverflowError):  # an integer that is larger than any double
        if type(value) in (int, float) and math.isfinite(value):
            return float(value)
    raise _unfit(where, "number")


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


_CONVERTS: dict[JsonStep, Convert] = {
    JsonStep.INTEGER: _integer,
    JsonStep.NUMBER: _real,
    JsonStep.STRING: _text,
    JsonStep.BOOLEAN: _boolean,
    JsonStep.TEXT: _as_text,
}
