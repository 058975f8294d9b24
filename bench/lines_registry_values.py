"""Protobuf and JSON of a registry, to columns and from columns, in CPU time of one core: our programs against the
libraries of the field, row by row (protobuf's own runtime, Python's json, jsonschema where rows are checked)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import cache
from typing import Any

from bench.measure import Arm, Comparison, Values, throughput

ROWS = 20_000
SECONDS = 2.0
HEAD = b"\x00\x00\x00\x00\x07"
PROTO = """syntax = "proto3"; package shop;
message Order { int64 id = 1; string customer = 2; double euro = 3; bool paid = 4; optional string note = 5;
  Colour colour = 6; repeated Line lines = 7; message Line { string sku = 1; int32 count = 2; } }
enum Colour { RED = 0; GREEN = 1; }"""
LINE = {"type": "object", "properties": {"sku": {"type": "string"}, "count": {"type": "integer"}}, "required": ["sku"]}
JSON_SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "customer": {"type": "string"},
        "euro": {"type": "number"},
        "paid": {"type": "boolean"},
        "note": {"type": ["string", "null"]},
        "colour": {"enum": ["RED", "GREEN"]},
        "lines": {"type": "array", "items": LINE},
    },
    "required": ["id", "customer"],
    "additionalProperties": False,
}


@cache
def orders() -> list[dict[str, Any]]:
    return [
        {
            "id": number,
            "customer": f"customer-{number % 1_000}",
            "euro": number * 0.5,
            "paid": number % 2 == 0,
            "note": None if number % 3 else "a note",
            "colour": "RED",
            "lines": [{"sku": f"sku-{number}", "count": 2}, {"sku": "z", "count": 3}],
        }
        for number in range(ROWS)
    ]


@cache
def columns() -> Any:
    import pyarrow as pa

    line = pa.struct([("sku", pa.string()), ("count", pa.int32())])
    parts = [("id", pa.int64()), ("customer", pa.string()), ("euro", pa.float64()), ("paid", pa.bool_())]
    parts += [("note", pa.string()), ("colour", pa.string()), ("lines", pa.list_(pa.field("element", line)))]
    return pa.array(orders(), pa.struct(parts))


@cache
def _protobuf() -> tuple[Any, Any]:
    """The schema as a registry gives it, and the class of its message."""
    from ottla.registry.protobuf.format import parse_protobuf
    from ottla.schemas.messages import message_classes
    from ottla.schemas.registered import PROTOBUF, Registered

    schema = Registered(7, PROTOBUF, parse_protobuf(PROTO, (), is_new=True).serialised())
    return schema, message_classes(schema.text, {})[0]


@cache
def _json() -> Any:
    from ottla.schemas.registered import JSON, Registered

    return Registered(7, JSON, json.dumps(JSON_SCHEMA))


def _nowhere() -> Any:
    """Nobody is asked: the schemas are given."""
    from ottla.schemas.registry import SchemaRegistry

    return SchemaRegistry("http://127.0.0.1:9")


def _counted(work: Callable[[], int], seconds: float) -> float:
    count, started = 0, time.process_time()
    while time.process_time() - started < seconds:
        count += work()
    return count / (time.process_time() - started) / 1e3


# --- Protobuf


def _written_protobuf() -> Any:
    from ottla.schemas.protobuf_rows import ProtobufRows

    rows = ProtobufRows(_protobuf()[0], None, columns().type.names)
    return rows.encode(columns().cast(rows.type))


def protobuf_by_program(seconds: float) -> Values:
    from ottla.schemas.protobuf_columns import ProtobufColumns
    from ottla.schemas.protobuf_rows import ProtobufRows

    schema, _ = _protobuf()
    reader, writer = ProtobufColumns(_nowhere(), schema), ProtobufRows(schema, None, columns().type.names)
    data, rows = _written_protobuf(), columns().cast(writer.type)
    return {
        "decoded": _counted(lambda: len(reader.decode(data)[0]), seconds),
        "encoded": _counted(lambda: len(writer.encode(rows)), seconds),
    }


def protobuf_row_by_row(seconds: float) -> Values:
    """As its own runtime does: messages, whose fields are then made columns, and the other way round."""
    import pyarrow as pa

    _, message = _protobuf()
    names = {0: "RED", 1: "GREEN"}
    numbers = {name: number for number, name in names.items()}
    data = _written_protobuf().to_pylist()

    def row(value: bytes) -> dict[str, Any]:
        found = message.FromString(value[len(HEAD) + 1 :])
        return {
            "id": found.id,
            "customer": found.customer,
            "euro": found.euro,
            "paid": found.paid,
            "note": found.note if found.HasField("note") else None,
            "colour": names[found.colour],
            "lines": [{"sku": line.sku, "count": line.count} for line in found.lines],
        }

    def encode() -> int:
        given = [each | {"colour": numbers[each["colour"]]} for each in columns().to_pylist()]
        return len(pa.array([HEAD + b"\x00" + message(**each).SerializeToString() for each in given]))

    return {
        "decoded": _counted(lambda: len(pa.array([row(value) for value in data], columns().type)), seconds),
        "encoded": _counted(encode, seconds),
    }


# --- JSON


def _written_json() -> Any:
    from ottla.schemas.json_rows import JsonRows

    return JsonRows(_json(), is_plain=False).encode(columns())


def json_by_program(seconds: float) -> Values:
    from ottla.schemas.json_columns import JsonColumns
    from ottla.schemas.json_rows import JsonRows

    reader, writer, data = JsonColumns(_json()), JsonRows(_json(), is_plain=False), _written_json()
    return {
        "decoded": _counted(lambda: len(reader.decode(data)[0]), seconds),
        "encoded": _counted(lambda: len(writer.encode(columns())), seconds),
    }


def json_row_by_row(seconds: float) -> Values:
    import pyarrow as pa
    from jsonschema import Draft7Validator

    validator = Draft7Validator(JSON_SCHEMA)
    data = _written_json().to_pylist()

    def encode() -> int:
        found = []
        for row in columns().to_pylist():
            value = {name: part for name, part in row.items() if part is not None}
            validator.validate(value)
            found.append(HEAD + json.dumps(value, ensure_ascii=False).encode())
        return len(pa.array(found))

    def decode() -> int:
        return len(pa.array([json.loads(value[len(HEAD) :]) for value in data], columns().type))

    return {"decoded": _counted(decode, seconds), "encoded": _counted(encode, seconds)}


def _line(name: str, title: str, theirs: tuple[str, Callable[[float], Values]], ours: Any, notes: str) -> Comparison:
    def arm(label: str, measure: Callable[[float], Values]) -> Arm:
        return Arm(label, lambda: measure(SECONDS), lambda: measure(SECONDS / 10))

    metrics = [throughput(word, "k rows/s", goal=3.0, digits=0) for word in ("decoded", "encoded")]
    return Comparison(name, title, metrics, [arm(*theirs), arm("ottla", ours)], notes=notes)


def protobuf_line() -> Comparison:
    return _line(
        "protobuf-values",
        "Protobuf of a registry to Arrow and back, one core",
        ("protobuf's runtime, row by row", protobuf_row_by_row),
        protobuf_by_program,
        "messages of seven fields, one a list of two messages",
    )


def json_line() -> Comparison:
    return _line(
        "json-values",
        "JSON of a registry to Arrow and back, one core",
        ("json and jsonschema, row by row", json_row_by_row),
        json_by_program,
        "objects of seven properties, one an array of two objects; each that is written is checked by its schema",
    )
