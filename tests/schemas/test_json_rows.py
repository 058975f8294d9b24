"""What the kernel writes by a JSON Schema is what Python would have written after jsonschema has looked at it, and what
it leaves to them is little."""

from __future__ import annotations

import datetime
import decimal
import json
import random
from typing import Any

import pyarrow as pa
import pytest

import ottla.schemas.json_program as json_program
from ottla.common.errors import OttlaError
from ottla.kernel import json_encode_pure, json_steps
from ottla.schemas.encoding import is_plain
from ottla.schemas.json_rows import JsonRows
from ottla.schemas.registered import JSON, Registered

compiled = pytest.importorskip(
    "ottla.kernel._json_encode", reason="the kernel is not compiled here: run `python hatch_build.py`"
)
HEAD = b"\x00\x00\x00\x00\x07"
UTC = datetime.UTC


def registered(schema: Any) -> Registered:
    return Registered(7, JSON, json.dumps(schema), (), "orders-value")


class Counting:
    """The compiled encoder, and how many rows it left to others."""

    left = 0

    def __init__(self, *program: Any) -> None:
        self._encoder = compiled.JsonEncoder(*program)

    def encode(self, rows: Any, head: bytes) -> Any:
        values, left = self._encoder.encode(rows, head)
        Counting.left += len(left)
        return values, left


def outcome(schema: Any, rows: Any, encoder: Any) -> Any:
    made = registered(schema)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_program, "JsonEncoder", encoder)
        try:
            found = JsonRows(made, is_plain=is_plain(made)).encode(rows)
        except OttlaError as error:
            return str(error)
    found.validate(full=True)
    return found.to_pylist()


def check(schema: Any, rows: Any) -> tuple[Any, int]:
    """The outcome, which is the same with and without the kernel, and how many rows the kernel left to Python."""
    Counting.left = 0
    fast, slow = outcome(schema, rows, Counting), outcome(schema, rows, json_encode_pure.JsonEncoder)
    assert fast == slow
    return fast, Counting.left


def table(kind: Any, *rows: Any) -> Any:
    return pa.array(rows, kind)


ORDER = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "state": {"enum": ["open", "paid", "größer"]},
        "euro": {"type": ["number", "null"], "minimum": 0},
        "lines": {"type": "array", "items": {"$ref": "#/definitions/line"}},
        "tags": {"type": "object", "additionalProperties": {"type": ["string", "null"]}},
        "at": {"type": "string", "format": "date-time"},
    },
    "required": ["id"],
    "additionalProperties": False,
    "definitions": {
        "line": {"type": "object", "properties": {"text": {"oneOf": [{"type": "null"}, {"type": "string"}]}}}
    },
}
LINE = pa.struct([("text", pa.string()), ("more", pa.bool_())])
ORDERS = pa.struct(
    [
        ("id", pa.int64()),
        ("state", pa.string()),
        ("lines", pa.list_(LINE)),
        ("tags", pa.map_(pa.string(), pa.string())),
        ("at", pa.timestamp("us", "UTC")),
    ]
)


def test_rows_that_fit_are_written_by_the_kernel() -> None:
    moment = datetime.datetime(2024, 2, 29, 12, 30, 1, 5, UTC)
    rows = table(
        ORDERS,
        {"id": 1, "state": "open", "lines": [{"text": 'a"\n\x01ü'}, None, {"more": True}], "tags": [("k", None)]},
        None,
        {"id": -(2**63), "state": "größer", "lines": [], "tags": [], "at": moment},
    )
    values, left = check(ORDER, rows)
    assert left == 1, "an item that is null does not fit"
    assert isinstance(values, str) and "None is not of type 'object'" in values
    values, left = check(ORDER, rows.slice(1))
    assert left == 0
    assert values[0] is None
    assert values[1] == (
        HEAD
        + '{"id": -9223372036854775808, "state": "größer", "lines": [], "tags": {}, '
        '"at": "2024-02-29T12:30:01.000005Z"}'.encode()
    )


@pytest.mark.parametrize(
    ("schema", "kind", "value"),
    [
        ({"required": ["a", "b"]}, pa.struct([("a", pa.int64())]), {"a": 1}),
        ({"required": ["a"]}, pa.struct([("a", pa.int64())]), {"a": None}),
        ({"additionalProperties": False}, pa.struct([("a", pa.int64())]), {"a": 1}),
        ({"properties": {"a": {"type": "string"}}}, pa.struct([("a", pa.int64())]), {"a": 1}),
        ({"properties": {"a": {"type": "integer"}}}, pa.struct([("a", pa.bool_())]), {"a": True}),
        ({"properties": {"a": {"type": "integer"}}}, pa.struct([("a", pa.float64())]), {"a": 1.5}),
        ({"properties": {"a": {"enum": ["x"]}}}, pa.struct([("a", pa.string())]), {"a": "y"}),
        ({"properties": {"a": {"const": "x"}}}, pa.struct([("a", pa.string())]), {"a": "y"}),
        ({"properties": {"a": False}}, pa.struct([("a", pa.string())]), {"a": "y"}),
        ({"properties": {"a": {"maximum": 3}}}, pa.struct([("a", pa.int64())]), {"a": 4}),
        ({"properties": {"a": {"maxLength": 3}}}, pa.struct([("a", pa.string())]), {"a": "four"}),
        (
            {"properties": {"a": {"items": {"type": "string"}}}},
            pa.struct([("a", pa.list_(pa.string()))]),
            {"a": [None]},
        ),
        ({"properties": {"a": {"minItems": 1}}}, pa.struct([("a", pa.list_(pa.string()))]), {"a": []}),
        ({"patternProperties": {"^a": {"type": "string"}}}, pa.struct([("a", pa.int64())]), {"a": 4}),
        ({"allOf": [{"required": ["b"]}]}, pa.struct([("a", pa.int64())]), {"a": 4}),
        ({"not": {"required": ["a"]}}, pa.struct([("a", pa.int64())]), {"a": 4}),
        ({"properties": {"a": {"type": "number"}}}, pa.struct([("a", pa.float64())]), {"a": float("nan")}),
        ({"properties": {"a": {"type": "number"}}}, pa.struct([("a", pa.float32())]), {"a": float("-inf")}),
        ({"oneOf": [{"required": ["a"]}, {"required": ["a"]}]}, pa.struct([("a", pa.int64())]), {"a": 4}),
        (
            {"properties": {"a": {"additionalProperties": {"type": "integer"}}}},
            pa.struct([("a", pa.map_(pa.string(), pa.int64()))]),
            {"a": [("k", None)]},
        ),
        (
            {"properties": {"a": {"required": ["k"]}}},
            pa.struct([("a", pa.map_(pa.string(), pa.int64()))]),
            {"a": [("l", 1)]},
        ),
        (
            {
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "$ref": "#/$defs/x",
                "required": ["b"],
                "$defs": {"x": {}},
            },
            pa.struct([("a", pa.int64())]),
            {"a": 1},
        ),
    ],
)
def test_a_row_that_the_schema_refuses_is_refused(schema: Any, kind: Any, value: Any) -> None:
    told, _ = check({"type": "object", **schema}, table(kind, value))
    assert isinstance(told, str) and told.startswith("the value does not fit the schema of orders-value: ")


def test_rules_that_the_kernel_does_not_know_hold_up_only_rows_that_they_concern() -> None:
    kind = pa.struct([("id", pa.int64()), ("euro", pa.float64())])
    values, left = check(ORDER, table(kind, {"id": 1}, {"id": 2, "euro": 3.0}, {"id": 3}))
    assert left == 1
    assert values == [HEAD + b'{"id": 1}', HEAD + b'{"id": 2, "euro": 3.0}', HEAD + b'{"id": 3}']


def test_an_empty_map_is_an_object() -> None:
    kind = pa.struct([("m", pa.map_(pa.string(), pa.decimal128(9, 2)))])
    schema = {"type": "object", "properties": {"m": {"type": "object"}}}
    rows = table(kind, {"m": []}, {"m": [("a", decimal.Decimal("1.50")), ("b", decimal.Decimal("2.00"))]})
    assert check(schema, rows)[0] == [HEAD + b'{"m": {}}', HEAD + b'{"m": {"a": 1.5, "b": 2}}']


def test_values_without_fields() -> None:
    kind = pa.struct([("value", pa.int32())])
    values, left = check({"type": ["integer", "null"]}, table(kind, {"value": 7}, {"value": None}, None))
    assert (values, left) == ([HEAD + b"7", None, None], 0)


def test_an_object_that_may_be_null_has_fields() -> None:
    schema = {"type": ["object", "null"], "properties": {"value": {"type": "integer"}}}
    assert check(schema, table(pa.struct([("value", pa.int32())]), {"value": 7})) == ([HEAD + b'{"value": 7}'], 0)


def test_days_and_moments_are_those_of_python() -> None:
    days = [*range(-719162, 2932896, 997), -719162, 2932896, -1, 0, 1, 11016, 11017]
    moments = [day * 86_400_000_000 + (day * 7919) % 86_400_000_000 for day in days]
    kind = pa.struct([("d", pa.date32()), ("u", pa.timestamp("us", "UTC")), ("n", pa.timestamp("us"))])
    parts = [pa.array(days, pa.int32()).cast(pa.date32())]
    parts += [pa.array(moments, pa.int64()).cast(kind.field(place).type) for place in (1, 2)]
    rows = pa.StructArray.from_arrays(parts, ["d", "u", "n"])
    assert check({"type": "object"}, rows)[1] == 0


# --- at random


def random_kind(chance: random.Random, depth: int = 0) -> Any:
    leaves = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.bool_(), pa.string()]
    leaves += [pa.binary(), pa.date32(), pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.decimal128(9, 2), pa.null()]
    what = chance.randrange(10) if depth < 3 else 9
    if depth == 0 or what < 2:
        names = chance.sample(["a", "b", "ü", "", 'q"', "value", "x"], chance.randint(0, 4))
        return pa.struct([(name, random_kind(chance, depth + 1)) for name in names])
    if what == 2:
        return pa.list_(random_kind(chance, depth + 1))
    if what == 3:
        return pa.map_(pa.string(), random_kind(chance, depth + 1))
    return chance.choice(leaves)


_TEXTS = ["", "x", "open", "größer", "\x00\x1f\x7f", '"\\/\n\r\t\b\f', "日本\U0001f600", "a" * 40]


def random_value(chance: random.Random, kind: Any) -> Any:
    types = pa.types
    if types.is_null(kind) or chance.random() < 0.15:
        return None
    if types.is_struct(kind):
        parts = [kind.field(place) for place in range(kind.num_fields)]
        return {part.name: random_value(chance, part.type) for part in parts}
    if types.is_list(kind):
        return [random_value(chance, kind.value_type) for _ in range(chance.randint(0, 3))]
    if types.is_map(kind):
        keys = chance.sample(_TEXTS, chance.randint(0, 3))
        return [(key, random_value(chance, kind.item_type)) for key in keys]
    if types.is_integer(kind):
        return chance.choice([0, 1, -1, 2 ** (kind.bit_width - 1) - 1, -(2 ** (kind.bit_width - 1))])
    if types.is_floating(kind):
        return chance.choice([0.0, -0.0, 1.0, 1.5, 1e16, 1e-7, 123456789.125, 3.0e38, chance.random()])
    if types.is_boolean(kind):
        return chance.random() < 0.5
    if types.is_string(kind):
        return chance.choice(_TEXTS)
    if types.is_binary(kind):
        return chance.randbytes(chance.randint(0, 7))
    if types.is_decimal(kind):
        return decimal.Decimal(chance.randint(-999, 999)) / 4
    moment = datetime.datetime(1, 1, 1) + datetime.timedelta(microseconds=chance.randrange(315_537_897_599_999_999))
    if types.is_date32(kind):
        return moment.date()
    return moment.replace(tzinfo=UTC) if kind.tz else moment


_NAMES = {"object": 0, "array": 1, "string": 2, "integer": 3, "number": 4, "boolean": 5, "null": 6}


def fitting_name(kind: Any) -> str:
    types = pa.types
    for is_one, name in (
        (types.is_struct, "object"),
        (types.is_map, "object"),
        (types.is_list, "array"),
        (types.is_boolean, "boolean"),
        (types.is_integer, "integer"),
        (types.is_floating, "number"),
        (types.is_decimal, "number"),
        (types.is_null, "null"),
    ):
        if is_one(kind):
            return name
    return "string"


_RULES: list[dict[str, Any]] = [
    {"minimum": 0},
    {"maxLength": 5},
    {"minItems": 1},
    {"maxProperties": 2},
    {"enum": ["open", 1, None, "x"]},
    {"const": "x"},
    {"not": {"const": 1}},
    {"allOf": [{"type": "object"}]},
    {"pattern": "^o"},
    {"format": "date"},
]


def random_schema(chance: random.Random, kind: Any) -> dict[str, Any]:
    """One that the type fits, as a rule."""
    if chance.random() < 0.1:
        return chance.choice([{}, {"title": "x"}, {"$ref": "#/definitions/any"}, {"not": {}}])
    name = fitting_name(kind) if chance.random() < 0.93 else chance.choice(list(_NAMES))
    schema: dict[str, Any] = {"type": name}
    if chance.random() < 0.3:
        schema["type"] = [name, "null"]
    if chance.random() < 0.1:
        del schema["type"]
    if chance.random() < 0.1:
        schema |= chance.choice(_RULES)
    if pa.types.is_struct(kind):
        names = [kind.field(place).name for place in range(kind.num_fields)]
        known = [one for one in names if chance.random() < 0.9]
        schema["properties"] = {one: random_schema(chance, kind.field(one).type) for one in known}
        if chance.random() < 0.2:
            schema["required"] = chance.sample(names, min(1, len(names))) + ["more"] * (chance.random() < 0.1)
        if chance.random() < 0.2:
            schema["additionalProperties"] = chance.choice([False, True, {"type": "string"}])
    elif pa.types.is_list(kind):
        schema["items"] = random_schema(chance, kind.value_type)
    elif pa.types.is_map(kind) and chance.random() < 0.8:
        schema["additionalProperties"] = random_schema(chance, kind.item_type)
    if chance.random() < 0.1:
        schema = {chance.choice(["oneOf", "anyOf"]): [{"type": "null"}, schema]}
    return schema


_DRAFTS = [
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
]


@pytest.mark.parametrize("seed", range(5))
def test_random_rows_by_random_schemas(seed: int) -> None:
    chance = random.Random(seed)
    written = rest = refused = 0
    for _ in range(25):
        kind = random_kind(chance)
        schema = random_schema(chance, kind)
        schema = {"$schema": chance.choice(_DRAFTS), **schema, "definitions": {"any": {"type": ["string", "null"]}}}
        rows = pa.array([random_value(chance, kind) for _ in range(12)], kind)
        rows = rows.slice(chance.randint(0, 3))
        if is_plain(registered(schema)) and kind.num_fields == 0:
            continue
        for row in range(len(rows)):
            told, left = check(schema, rows.slice(row, 1))
            if isinstance(told, str):
                refused += 1
            else:
                rest, written = rest + left, written + 1 - left
        check(schema, rows)
    assert written > 100 and refused > 20, (written, rest, refused)


def test_the_steps_have_the_same_numbers(request: pytest.FixtureRequest) -> None:
    text = (request.config.rootpath / "src/ottla/kernel/json_encode.pyx").read_text()
    for step in json_steps.JsonWrite:
        assert f"    WRITE_{step.name} = {step.value}\n" in text
