"""JSON Schema and Protobuf to columns."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from ottla.common.errors import OttlaError
from ottla.registry.protobuf.format import parse_protobuf
from ottla.schemas.json_columns import JsonColumns
from ottla.schemas.messages import message_classes
from ottla.schemas.protobuf_columns import ProtobufColumns
from ottla.schemas.registered import JSON, PROTOBUF, Registered
from ottla.schemas.registry import SchemaRegistry

HEAD = b"\x00\x00\x00\x00\x07"
ORDER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "euro": {"type": ["number", "null"]},
        "note": {"oneOf": [{"type": "null"}, {"type": "string"}]},
        "lines": {"type": "array", "items": {"$ref": "#/definitions/line"}},
        "tags": {"type": "object", "additionalProperties": {"type": "boolean"}},
        "what": {},
        "colour": {"enum": ["red", "green"]},
        "place": {"$ref": "place.json"},
    },
    "required": ["id"],
    "definitions": {"line": {"properties": {"sku": {"type": "string"}}}},
}
PLACE = {"type": "object", "properties": {"x": {"type": "number"}}}


def json_columns(schema: Any = ORDER) -> JsonColumns:
    return JsonColumns(Registered(7, JSON, json.dumps(schema), (("place.json", json.dumps(PLACE)),)))


def decode(columns: Any, *values: bytes | None) -> tuple[list[Any], list[str | None]]:
    rows, reasons = columns.decode(pa.array(values, pa.binary()))
    assert rows.type == columns.type
    return rows.to_pylist(), reasons.to_pylist()


def test_json_becomes_the_columns_of_its_schema() -> None:
    value = {
        "id": 7,
        "euro": 1,
        "lines": [{"sku": "a", "more": 1}],
        "tags": {"x": True},
        "what": {"any": [1]},
        "colour": "red",
        "place": {"x": 2.5},
        "unknown": 0,
    }
    rows, reasons = decode(json_columns(), HEAD + json.dumps(value).encode(), None, HEAD + b'{"id": 1.0}')
    assert reasons == [None, None, None]
    assert rows[0] == {
        "id": 7, "euro": 1.0, "note": None, "lines": [{"sku": "a"}], "tags": [("x", True)], "what": '{"any":[1]}',
        "colour": "red", "place": {"x": 2.5},
    }  # fmt: skip
    assert rows[1] is None and rows[2]["id"] == 1


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (b"no head", "no id of a schema"),
        (HEAD + b"{", "no JSON"),
        (HEAD + b'{"id": "x"}', "/id is no integer"),
        (HEAD + b'{"id": 1, "lines": [{"sku": 4}]}', "/lines/0/sku is no string"),
        (HEAD + b'{"euro": 1}', "/id is missing"),
        (HEAD + b'{"id": 18446744073709551616}', "/id is no integer"),
        (HEAD + b'{"id": 1, "euro": 1e999}', "/euro is no number"),
        (HEAD + b'{"id": 1, "note": "\\ud800"}', "/note is no text"),
        (HEAD + b"[]", "is no object"),
        (HEAD + b"null", "is null"),
    ],
)
def test_json_that_does_not_fit_says_where(value: bytes, words: str) -> None:
    rows, (reason,) = decode(json_columns(), value)
    assert rows == [None] and reason is not None and words in reason


def test_a_json_schema_that_contains_itself_has_no_columns() -> None:
    with pytest.raises(OttlaError, match="contains itself"):
        json_columns({"type": "object", "properties": {"next": {"$ref": "#"}}})


PROTO = """syntax = "proto3"; package shop; import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
message Order { int64 id = 1; optional string note = 2; repeated Line lines = 3; map<string, double> tags = 4;
  Colour colour = 5; google.protobuf.Timestamp at = 6; uint64 big = 7; oneof how { string card = 8; bool cash = 9; }
  google.protobuf.StringValue wrapped = 10; bytes raw = 11; message Line { string sku = 1; uint32 n = 2; } }
message Other { string x = 1; } enum Colour { RED = 0; GREEN = 1; }"""


def registered(text: str) -> Registered:
    return Registered(7, PROTOBUF, parse_protobuf(text, (), is_new=True).serialised())


def columns_for(text: str, message: str | None = None) -> ProtobufColumns:
    return ProtobufColumns(SchemaRegistry("http://127.0.0.1:9", message=message), registered(text))


def message(text: str, name: str = "Order") -> Any:
    classes = message_classes(registered(text).text, {})
    return {each.DESCRIPTOR.name: each for each in classes}[name]


def test_protobuf_becomes_the_columns_of_its_message() -> None:
    order = message(PROTO)(id=5, colour=1, big=2**64 - 1, cash=False, raw=b"\x00")
    order.lines.add(sku="a", n=2**32 - 1)
    order.tags["x"] = 1.5
    order.at.FromDatetime(datetime.datetime(2024, 1, 2, 3, 4, 5))
    order.wrapped.value = ""
    columns = columns_for(PROTO)
    rows, reasons = decode(columns, HEAD + b"\x00" + order.SerializeToString(), HEAD + b"\x00", None)
    assert reasons == [None] * 3
    assert rows[0] == {
        "id": 5, "note": None, "lines": [{"sku": "a", "n": 2**32 - 1}], "tags": [("x", 1.5)], "colour": "GREEN",
        "at": datetime.datetime(2024, 1, 2, 3, 4, 5, tzinfo=datetime.UTC), "big": Decimal(2**64 - 1), "card": None,
        "cash": False, "wrapped": "", "raw": b"\x00",
    }  # fmt: skip
    assert rows[1]["id"] == 0 and rows[1]["at"] is None and rows[1]["wrapped"] is None
    assert rows[2] is None


def test_a_newer_protobuf_writer_is_read_by_the_readers_numbers() -> None:
    newer = message('syntax = "proto3"; message Order { int64 renamed = 1; string more = 99; }')(renamed=3, more="x")
    rows, reasons = decode(columns_for(PROTO), HEAD + b"\x00" + newer.SerializeToString())
    assert reasons == [None] and rows[0]["id"] == 3


def test_protobuf_that_does_not_fit_is_told_of() -> None:
    columns = columns_for(PROTO)
    far = message(PROTO)()
    far.at.seconds = 2**62
    rows, reasons = decode(columns, b"x", HEAD + b"\x00\xff", HEAD + b"\x02\x02", HEAD)
    assert rows == [None] * 4 and None not in reasons
    assert "another message" in str(reasons[2])
    latest = columns.decode(pa.array([HEAD + b"\x00" + far.SerializeToString()]))[0].field("at")
    assert latest.cast(pa.int64()).to_pylist() == [2**63 - 1]


def test_another_message_of_the_file_is_chosen_by_its_name() -> None:
    other = message(PROTO, "Other")(x="y")
    columns = columns_for(PROTO, "Other")
    assert decode(columns, HEAD + b"\x02\x02" + other.SerializeToString())[0] == [{"x": "y"}]
    nested = columns_for(PROTO, "shop.Order.Line")
    # Maps are messages within their message as well: they have numbers too.
    within = [each.name for each in message(PROTO).DESCRIPTOR.nested_types].index("Line")
    place = b"\x04\x00" + bytes([2 * within])
    assert decode(nested, HEAD + place + b"\x0a\x01z")[0] == [{"sku": "z", "n": 0}]
    with pytest.raises(OttlaError, match="no message 'None'"):
        columns_for(PROTO, "None")


def test_a_message_that_contains_itself_has_no_columns() -> None:
    with pytest.raises(OttlaError, match="contains itself"):
        columns_for('syntax = "proto3"; message A { A next = 1; }')
