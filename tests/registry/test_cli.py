"""`ottla registry`, `ottla schema`, and records with schemas from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from ottla.testing import Broker, Registry
from tests.cli.command import Cli
from tests.registry.test_api import register

ORDER = """{"type":"record","name":"Order","fields":
 [{"name":"euro","type":"double"},{"name":"hash","type":["null","bytes"]}]}"""
ORDER_JSON = '{"type":"object","properties":{"euro":{"type":"number"}},"required":["euro"]}'
ORDER_PROTO = 'syntax = "proto3"; message Order { double euro = 1; Line line = 2; message Line { string text = 1; } }'


@pytest.fixture
def cli(broker: Broker, registry: Registry) -> Cli:
    return Cli(broker.bootstrap_servers, {"OTTLA_REGISTRY_URL": registry.url})


def test_a_schema_is_registered_shown_checked_and_deleted(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "order.avsc"
    file.write_text(ORDER)
    done = cli("schema", "register", "cli-value", file)
    assert done.status == 0 and "cli-value version 1 has id" in done.out, done.err
    listed = cli("schema", "list", "--output", "json").data
    assert [row["version"] for row in listed if row["subject"] == "cli-value"] == [1]
    assert json.loads(cli("schema", "get", "cli-value").out) == json.loads(ORDER)
    number = cli("schema", "get", "cli-value", "--output", "json").data["id"]
    assert json.loads(cli("schema", "get", str(number)).out) == json.loads(ORDER)
    file.write_text('{"type":"record","name":"Order","fields":[{"name":"yen","type":"long"}]}')
    refused = cli("schema", "check", "cli-value", file)
    assert refused.status == 1 and "READER_FIELD_MISSING_DEFAULT_VALUE" in refused.out
    assert cli("schema", "register", "cli-value", file, "--dry-run").status == 1
    failed = cli("schema", "register", "cli-value", file)
    assert failed.status == 1 and "40901" in failed.err and "Traceback" not in failed.err
    assert "would delete cli-value" in cli("schema", "delete", "cli-value", "--dry-run").out
    assert "deleted version 1 of cli-value" in cli("schema", "delete", "cli-value", "-y").out
    assert "40401" in cli("schema", "get", "cli-value").err


@pytest.mark.parametrize(
    ("kind", "schema", "value"),
    [
        ("avro", ORDER, {"euro": 7.5, "hash": "\u00ff\u0001"}),
        ("json", ORDER_JSON, {"euro": 7.5}),
        ("protobuf", ORDER_PROTO, {"euro": 7.5, "line": {"text": "x"}}),
    ],
)
def test_records_travel_with_their_schema(
    kind: str, schema: str, value: object, cli: Cli, broker: Broker, http: httpx.Client
) -> None:
    topic = f"travel-{kind}"
    broker.create_topic(topic)
    register(http, f"{topic}-value", schema, schemaType=kind.upper())
    sent = cli("produce", topic, "--schema", "-k", "one", json.dumps(value))
    assert sent.status == 0, sent.err
    assert broker.records(topic)[0].value[:1] == b"\x00"
    read = cli("consume", topic, "--schema", "-e", "--where", "value.euro > 7")
    assert read.status == 0 and json.loads(read.out) == value, read.err
    bad = cli("produce", topic, "--schema", '{"yen": 7}')
    assert (bad.status == 1 and "does not fit" in bad.err) or "no field" in bad.err
    assert len(broker.records(topic)) == 1


@pytest.mark.parametrize(
    ("kind", "schema", "value", "words"),
    [
        ("avro", ORDER, '{"euro": "x"}', "Order.euro is 'x', and the schema has 'double'"),
        ("json", ORDER_JSON, '{"euro": "x"}', "/euro: 'x' is not of type 'number'"),
        ("protobuf", ORDER_PROTO, '{"nope": 1}', 'no field named "nope"'),
    ],
)
def test_a_value_that_does_not_fit_is_told_in_one_line_with_its_place(
    kind: str, schema: str, value: str, words: str, cli: Cli, http: httpx.Client
) -> None:
    register(http, f"told-{kind}-value", schema, schemaType=kind.upper())
    told = cli("produce", f"told-{kind}", "--schema", value)
    assert told.status == 1 and words in told.err and told.err.strip().count("\n") == 0


def test_a_topic_without_a_schema_is_told_how_to_get_one(cli: Cli) -> None:
    told = cli("produce", "without", "--schema", "{}")
    assert told.status == 1 and "register one with `ottla schema register without-value FILE`" in told.err


def test_a_registry_that_is_not_there_is_named(cli: Cli) -> None:
    failed = cli("schema", "list", "--registry", "http://127.0.0.1:9")
    assert failed.status == 1 and "127.0.0.1:9" in failed.err and "ottla registry start" in failed.err


def test_bytes_without_a_schema_are_told_of(cli: Cli, broker: Broker) -> None:
    broker.produce("bare", "just text")
    failed = cli("consume", "bare", "--schema", "-e")
    assert failed.status == 1 and "bare-0 offset 0" in failed.err


def test_a_password_is_hashed(cli: Cli) -> None:
    assert cli("registry", "password", stdin="secret\n").out.startswith("scrypt:")
