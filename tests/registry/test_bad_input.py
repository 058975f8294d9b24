"""Whatever is sent: Confluent's error code, and nothing is stored."""

from __future__ import annotations

import json

import httpx
import pytest

from ottla.testing import Broker
from tests.registry.test_api import refused, register

BAD_AVRO = {
    "no JSON": '{"type":',
    "no type": '{"name":"x"}',
    "an unknown type": '"integer"',
    "a record without fields": '{"type":"record","name":"R"}',
    "a field twice": '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"a","type":"int"}]}',
    "a name twice": '[{"type":"fixed","name":"F","size":1},{"type":"enum","name":"F","symbols":[]}]',
    "a bad name": '{"type":"record","name":"1R","fields":[]}',
    "a union in a union": '["int",["string"]]',
    "a bad default": '{"type":"record","name":"R","fields":[{"name":"a","type":"int","default":"x"}]}',
    "a number": "42",
}


def count(broker: Broker) -> int:
    return len(broker.records("_schemas"))


@pytest.mark.parametrize("name", BAD_AVRO)
def test_bad_avro_is_no_schema(name: str, http: httpx.Client, broker: Broker, subject: str) -> None:
    register(http, "some-value")
    before = count(broker)
    reply = http.post("/subjects/bad-avro/versions", json={"schema": BAD_AVRO[name]})
    assert refused(reply) == (422, 42201)
    assert "AVRO" in reply.json()["message"]
    assert count(broker) == before
    assert refused(http.get("/subjects/bad-avro/versions")) == (404, 40401)


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        ("JSON", "{"),
        ("JSON", '{"type": "objekt"}'),
        ("JSON", '{"$ref": "nowhere.json"}'),
        ("JSON", "[]"),
        ("PROTOBUF", "message {"),
        ("PROTOBUF", 'syntax = "proto3"; message A { B b = 1; }'),
        ("PROTOBUF", 'syntax = "proto3"; message A { int32 a = 1; int32 b = 1; }'),
        ("PROTOBUF", 'syntax = "proto3"; import "other.proto"; message A { }'),
        ("XML", "<xs:schema/>"),
        ("AVRO", "   "),
    ],
)
def test_bad_schemas_of_other_types_are_refused(kind: str, schema: str, http: httpx.Client) -> None:
    reply = http.post("/subjects/bad-others/versions", json={"schema": schema, "schemaType": kind})
    assert refused(reply) == (422, 42201)
    assert refused(http.get("/subjects/bad-others/versions")) == (404, 40401)


def test_a_body_that_is_no_json_is_a_bad_request(http: httpx.Client) -> None:
    for body in (b"", b"{", b"[1]", b"\xff\xfe", b'{"schema": ' + b"[" * 100_000):
        assert refused(http.post("/subjects/x/versions", content=body)) == (400, 400)
    assert refused(http.post("/subjects/x/versions", json={"schema": '"int"', "colour": "red"})) == (422, 422)
    assert refused(http.post("/subjects/x/versions", json={"schema": 5})) == (422, 422)


def test_a_schema_of_ten_megabytes_is_too_large(http: httpx.Client, broker: Broker) -> None:
    before = count(broker)
    doc = "x" * (10 * 1024 * 1024)
    schema = json.dumps({"type": "record", "name": "R", "doc": doc, "fields": []})
    assert refused(http.post("/subjects/large/versions", json={"schema": schema})) == (422, 42209)
    assert count(broker) == before
    assert register(http, "large")["version"] == 1, "the writer goes on"


def test_deep_nesting_is_refused(http: httpx.Client) -> None:
    for kind, opening, inner, closing in (
        ("AVRO", '{"type":"array","items":', '"int"', "}"),
        ("JSON", '{"items":', "{}", "}"),
    ):
        for depth in (1_000, 15_000):
            schema = opening * depth + inner + closing * depth
            reply = http.post("/subjects/deep/versions", json={"schema": schema, "schemaType": kind})
            assert refused(reply) == (422, 42201), (kind, depth)
    proto = 'syntax = "proto3";' + "message A {" * 500 + "}" * 500
    assert refused(http.post("/subjects/deep/versions", json={"schema": proto, "schemaType": "PROTOBUF"})) == (
        422,
        42201,
    )


def test_a_reference_that_is_not_there_is_refused(http: httpx.Client) -> None:
    for reference in (
        {"name": "a.B", "subject": "nobody", "version": 1},
        {"name": "a.B", "subject": "circle", "version": 1},
        {"name": "", "subject": "", "version": 1},
    ):
        body = {"schema": '{"type":"array","items":"a.B"}', "references": [reference]}
        assert refused(http.post("/subjects/circle/versions", json=body)) == (422, 42201)
    register(http, "json-side", "{}", schemaType="JSON")
    body = {"schema": '"int"', "references": [{"name": "x", "subject": "json-side", "version": 1}]}
    assert refused(http.post("/subjects/circle/versions", json=body)) == (422, 42201)


@pytest.mark.parametrize("name", ["__GLOBAL", "%00", ":.ctx:"])
def test_some_names_are_no_subjects(name: str, http: httpx.Client) -> None:
    assert refused(http.post(f"/subjects/{name}/versions", json={"schema": '"int"'})) == (422, 42208)
