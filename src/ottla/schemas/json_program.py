"""The program with which the kernel writes columns by a JSON Schema.

A step is made from the type of a column and the schema of what is written there. Where it is not plain that whatever
the column holds fits the schema, the step leaves it to others (`JsonWrite.LEFT`): so it is enough here to know the
common keywords. Which keywords a draft judges is asked of jsonschema; all others are remarks.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from ottla.kernel.json_encode import JsonEncoder
from ottla.kernel.json_steps import JsonWrite, JsonWriteStep
from ottla.schemas.registered import Registered

_NUMBERS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_TEXTS = frozenset({"minLength", "maxLength", "pattern"})
_LISTS = frozenset(
    "items additionalItems contains minItems maxItems uniqueItems prefixItems unevaluatedItems".split()  # noqa: SIM905
)
_OBJECTS = frozenset(
    """properties required additionalProperties patternProperties propertyNames minProperties maxProperties
    dependencies dependentRequired dependentSchemas unevaluatedProperties""".split()  # noqa: SIM905
)
_OF_TYPES = {"integer": _NUMBERS, "number": _NUMBERS, "string": _TEXTS, "array": _LISTS, "object": _OBJECTS}
# What is judged here, of any type; `format` is a remark as long as nobody gives jsonschema a checker.
_JUDGED = frozenset({"type", "enum", "const", "format"})
_REFS_MAX = 50
_LEGACY = ("Draft4Validator", "Draft6Validator", "Draft7Validator")


class NotPlain(Exception):
    """Nothing here says whether a value fits."""


class JsonProgram:
    def __init__(self, schema: Registered) -> None:
        from jsonschema.validators import Draft7Validator, validator_for

        self._document = json.loads(schema.text)
        draft = validator_for(self._document, default=Draft7Validator)
        self._keywords = frozenset(draft.VALIDATORS)
        # In these a `$ref` hides what stands beside it.
        self._is_legacy = draft.__name__ in _LEGACY
        # In the first of them `true` is no schema.
        self._has_flags = draft.__name__ != "Draft4Validator"
        self._is_known = draft.__name__ != "Draft3Validator"
        self._steps: list[JsonWriteStep] = []
        self._edges: list[int] = []
        self._constants = bytearray()

    def encoder(self, kind: Any) -> JsonEncoder:
        """For an array of this type."""
        if self._is_known:
            self._step(kind, self._document)
        else:
            self._steps.append(JsonWriteStep(int(JsonWrite.LEFT)))
        return JsonEncoder(self._steps, self._edges, bytes(self._constants))

    def _step(self, kind: Any, schema: Any) -> int:
        """The number of the step. Those of its parts come before it, also where it leaves them to others."""
        try:
            schema, null_fits = self._plain(schema)
            step = self._made(kind, schema)._replace(null_fits=int(null_fits))
        except NotPlain:
            step = JsonWriteStep(int(JsonWrite.LEFT))
        self._steps.append(step)
        return len(self._steps) - 1

    # --- what a schema says

    def _plain(self, schema: Any) -> tuple[dict[str, Any], bool]:
        """Without references and without `X or null`; and whether null fits."""
        schema = self._resolved(schema)
        judged = schema.keys() & self._keywords
        for word in ("oneOf", "anyOf"):
            if word not in judged:
                continue
            others = [branch for branch in schema[word] if not _is_null(branch)]
            if judged != {word} or len(others) != 1 or len(schema[word]) != 2:
                raise NotPlain
            inner, inner_fits = self._plain(others[0])
            return inner, not inner_fits if word == "oneOf" else True
        # Rules for numbers, texts, lists and objects say nothing of null.
        return schema, _null_fits(schema) and judged <= _JUDGED.union(*_OF_TYPES.values())

    def _resolved(self, schema: Any) -> dict[str, Any]:
        found: dict[str, Any]
        for _ in range(_REFS_MAX):
            if schema is True and self._has_flags:
                return {}
            if not isinstance(schema, dict):
                raise NotPlain
            if schema is not self._document and ("$id" in schema or isinstance(schema.get("id"), str)):
                raise NotPlain  # references within it have another beginning
            if "$ref" not in schema:
                found = schema
                return found
            if not self._is_legacy and schema.keys() & self._keywords != {"$ref"}:
                raise NotPlain
            schema = self._referred(schema["$ref"])
        raise NotPlain

    def _referred(self, reference: Any) -> Any:
        if not isinstance(reference, str) or (reference != "#" and not reference.startswith("#/")):
            raise NotPlain
        found = self._document
        for part in unquote(reference).split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, dict) or name not in found or (found is not self._document and "$id" in found):
                raise NotPlain
            found = found[name]
        return found

    def _require_judged(self, schema: dict[str, Any], kind: str, *known: str) -> None:
        """Raises NotPlain where the schema asks more of a value of this JSON type than what is known."""
        named = schema.get("type")
        allowed = [named] if isinstance(named, str) else named
        if allowed is not None and kind not in allowed and (kind != "integer" or "number" not in allowed):
            raise NotPlain
        others = frozenset().union(*(words for name, words in _OF_TYPES.items() if words is not _OF_TYPES.get(kind)))
        if (schema.keys() & self._keywords) - _JUDGED - others - frozenset(known):
            raise NotPlain

    # --- what is written by it

    def _made(self, kind: Any, schema: dict[str, Any]) -> JsonWriteStep:
        types = pa.types
        if types.is_struct(kind):
            return self._struct(kind, schema)
        if types.is_map(kind):
            return self._map(kind, schema)
        if types.is_list(kind):
            self._require_judged(schema, "array", "items")
            self._require_no_list(schema)
            return JsonWriteStep(int(JsonWrite.LIST), children=(self._step(kind.value_type, schema.get("items", {})),))
        if types.is_string(kind):
            self._require_judged(schema, "string")
            return JsonWriteStep(int(JsonWrite.STRING), 0, *self._symbols(schema))
        if types.is_null(kind):
            return JsonWriteStep(int(JsonWrite.NOTHING))
        step, name = _SINGLE.get(kind, (None, ""))
        if types.is_timestamp(kind) and kind.unit == "us" and kind.tz in (None, "UTC"):
            step, name = JsonWriteStep(int(JsonWrite.MOMENT), a=int(kind.tz is not None)), "string"
        if step is None:
            raise NotPlain
        self._require_judged(schema, name)
        self._require_no_list(schema)
        return step

    def _require_no_list(self, schema: dict[str, Any]) -> None:
        """Of values."""
        if schema.keys() & self._keywords & {"enum", "const"}:
            raise NotPlain

    def _symbols(self, schema: dict[str, Any]) -> tuple[int, int]:
        listed = schema["enum"] if "enum" in schema else [schema["const"]] if self._has_const(schema) else None
        if listed is None:
            return 0, 0
        texts = [each.encode() for each in listed if isinstance(each, str) and _is_text(each)]
        if not texts or ("enum" in schema and self._has_const(schema)):
            raise NotPlain
        start = len(self._edges)
        for text in texts:
            self._edges += (len(self._constants), len(text))
            self._constants += text
        return start, len(texts)

    def _has_const(self, schema: dict[str, Any]) -> bool:
        return "const" in schema and "const" in self._keywords

    def _struct(self, kind: Any, schema: dict[str, Any]) -> JsonWriteStep:
        self._require_judged(schema, "object", "properties", "required", "additionalProperties")
        self._require_no_list(schema)
        properties, others = schema.get("properties", {}), _of_others(schema)
        names = [kind.field(place).name for place in range(kind.num_fields)]
        required = schema.get("required", [])
        if len(set(names)) < len(names) or not isinstance(required, list) or not set(required) <= set(names):
            raise NotPlain
        children, edges = [], []
        for place, name in enumerate(names):
            children.append(self._step(kind.field(place).type, properties.get(name, others)))
            text = f"{json.dumps(name, ensure_ascii=False)}: ".encode()
            edges += [len(self._constants), len(text), int(name in required)]
            self._constants += text
        start = len(self._edges)
        self._edges += edges
        return JsonWriteStep(int(JsonWrite.STRUCT), a=start, children=tuple(children))

    def _map(self, kind: Any, schema: dict[str, Any]) -> JsonWriteStep:
        self._require_judged(schema, "object", "properties", "required", "additionalProperties")
        self._require_no_list(schema)
        if not pa.types.is_string(kind.key_type) or schema.get("properties") or schema.get("required"):
            raise NotPlain
        item = self._step(kind.item_type, _of_others(schema))
        return JsonWriteStep(int(JsonWrite.MAP), children=(item,))


_SINGLE: dict[Any, tuple[JsonWriteStep | None, str]] = {
    pa.int8(): (JsonWriteStep(int(JsonWrite.INT8)), "integer"),
    pa.int16(): (JsonWriteStep(int(JsonWrite.INT16)), "integer"),
    pa.int32(): (JsonWriteStep(int(JsonWrite.INT32)), "integer"),
    pa.int64(): (JsonWriteStep(int(JsonWrite.INT64)), "integer"),
    pa.float32(): (JsonWriteStep(int(JsonWrite.FLOAT)), "number"),
    pa.float64(): (JsonWriteStep(int(JsonWrite.DOUBLE)), "number"),
    pa.bool_(): (JsonWriteStep(int(JsonWrite.BOOLEAN)), "boolean"),
    pa.binary(): (JsonWriteStep(int(JsonWrite.BASE64)), "string"),
    pa.date32(): (JsonWriteStep(int(JsonWrite.DATE)), "string"),
}


def _of_others(schema: dict[str, Any]) -> Any:
    """What properties have to be that are not named."""
    others = schema.get("additionalProperties", True)
    return {} if others is True else others


def _is_null(schema: Any) -> bool:
    return isinstance(schema, dict) and schema in ({"type": "null"}, {"type": ["null"]})


def _null_fits(schema: dict[str, Any]) -> bool:
    named = schema.get("type", "null")
    listed = schema.get("enum", [None])
    return (
        (named == "null" or (isinstance(named, list) and "null" in named))
        and isinstance(listed, list)
        and None in listed
        and schema.get("const") is None
    )


def _is_text(text: str) -> bool:
    """JSON may have halves of characters, which no column has."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
