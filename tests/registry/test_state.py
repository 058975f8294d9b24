"""State is what replaying records gives; records are Confluent's, byte for byte in their keys."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from confluent_kafka import Producer

from ottla.registry import changes, records
from ottla.registry.changes import Registration
from ottla.registry.errors import RegistryError
from ottla.registry.records import UnreadableRecord, decode
from ottla.registry.schemas import Reference, SchemaText
from ottla.registry.state import RegistryState
from ottla.testing import Broker, Registry

# As Confluent's registry writes them.
CONFLUENT = [
    (b'{"keytype":"NOOP","magic":0}', None),
    (b'{"keytype":"CONFIG","subject":null,"magic":0}', b'{"compatibilityLevel":"FULL"}'),
    (
        b'{"keytype":"SCHEMA","subject":"a","version":1,"magic":1}',
        b'{"subject":"a","version":1,"id":1,"schema":"\\"int\\"","deleted":false}',
    ),
    (
        b'{"keytype":"SCHEMA","subject":"a","version":2,"magic":1}',
        b'{"subject":"a","version":2,"id":2,"md5":"Pz8=","schema":"\\"long\\"","deleted":false}',
    ),
    (
        b'{"keytype":"SCHEMA","subject":"b","version":1,"magic":1}',
        b'{"subject":"b","version":1,"id":3,"schemaType":"JSON","references":[{"name":"x","subject":"a","version":1}],'
        b'"schema":"{}","deleted":false}',
    ),
    (b'{"keytype":"MODE","subject":"b","magic":0}', b'{"subject":"b","mode":"READONLY"}'),
    (b'{"keytype":"DELETE_SUBJECT","subject":"a","magic":0}', b'{"subject":"a","version":1}'),
    (b'{"keytype":"CONTEXT","tenant":"default","context":".","magic":0}', b'{"tenant":"default","context":"."}'),
]


def replayed(*pairs: tuple[bytes, bytes | None]) -> RegistryState:
    state = RegistryState()
    for key, value in pairs:
        state.replay(decode(key, value))
    return state


def register(state: RegistryState, subject: str, text: str, *references: Reference) -> int:
    schema = SchemaText("AVRO", text, references)
    change = changes.register(state, Registration(subject, schema))
    for record in change.records:
        state.replay(decode(*record.encode()))
    number: int = change.reply["id"]
    return number


def test_a_topic_of_confluents_is_understood() -> None:
    state = replayed(*CONFLUENT)
    assert state.level("a") == "FULL" and state.mode("b") == "READONLY"
    assert list(state.versions("a")) == [2] and list(state.versions("a", deleted=True)) == [1, 2]
    assert state.ids(".").schemas[3].type == "JSON" and state.next_id("c") == 4
    assert state.referrers[("a", 1)] == {("b", 1): None}
    state.replay(decode(b'{"keytype":"CLEAR_SUBJECT","subject":"a","magic":0}', b'{"subject":"a"}'))
    assert list(state.versions("a", deleted=True)) == [2]


def test_keys_are_written_as_confluent_writes_them() -> None:
    written = [
        records.noop(),
        records.config_record(None, {}),
        records.tombstone("a", 1),
        records.mode_record("b", None),
        records.delete_subject("a", 1),
    ]
    keys = {key for key, _ in CONFLUENT}
    assert all(record.encode()[0] in keys for record in written)


def test_replay_refuses_an_id_that_belongs_to_another_schema() -> None:
    state = replayed(*CONFLUENT)
    with pytest.raises(UnreadableRecord, match="id 2"):
        state.replay(
            decode(
                b'{"keytype":"SCHEMA","subject":"z","version":1,"magic":1}',
                b'{"subject":"z","version":1,"id":2,"schema":"\\"bytes\\"","deleted":false}',
            )
        )
    assert "z" not in state.subjects


@pytest.mark.parametrize("key", [None, b"", b"{", b"[]", b'{"subject":"a"}', b'{"keytype":"SCHEMA"}'])
def test_records_of_nobody_are_told_apart(key: bytes | None) -> None:
    with pytest.raises(UnreadableRecord):
        RegistryState().replay(decode(key, b"{}"))


NO_SCHEMAS = [
    {},
    {"id": 1},
    {"id": "x", "schema": "{}"},
    {"id": float("inf"), "schema": "{}"},
    {"id": 1, "schema": 5},
    {"id": 1, "schema": "{}", "schemaType": 5},
    {"id": 1, "schema": "{}", "references": ["a"]},
    {"id": 1, "schema": "{}", "references": [{"name": "a", "subject": {}, "version": 1}]},
    {"id": 1, "schema": "{}", "metadata": [1]},
    {"id": 1, "schema": "{}", "guid": 7},
    {"id": 1, "schema": "{}", "ts": "now"},
    {"id": 1, "schema": "\ud800"},
]


@pytest.mark.parametrize("value", NO_SCHEMAS, ids=str)
def test_a_schema_record_of_another_shape_is_passed_over_and_does_not_end_the_replay(value: dict[str, Any]) -> None:
    state = RegistryState()
    with pytest.raises(UnreadableRecord):
        key = records.Key(records.SCHEMA, "a", 1).encode()
        state.replay(decode(key, json.dumps({"subject": "a", "version": 1} | value).encode()))
    assert not state.subjects and not state.guids


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b'{"keytype":"SCHEMA","subject":["a"],"version":1}', b"{}"),
        (b'{"keytype":"SCHEMA","subject":"a","version":"1"}', b"{}"),
        (b'{"keytype":"DELETE_SUBJECT","subject":"a"}', b'{"subject":"a","version":"x"}'),
        (b'{"keytype":"CONTEXT","tenant":"t"}', b"{}"),
        (b'{"keytype":"CONFIG","subject":"a"}', b'{"compatibilityLevel":"SOMEHOW"}'),
        (b"[" * 100_000, b"{}"),
    ],
)
def test_keys_and_settings_of_another_shape_are_passed_over(key: bytes, value: bytes) -> None:
    with pytest.raises(UnreadableRecord):
        RegistryState().replay(decode(key, value))


def test_the_key_says_where_a_schema_belongs() -> None:
    """By the key the topic is compacted: what the value says besides would be lost with it."""
    value = {"subject": "b", "version": 9, "id": 1, "schema": '"int"'}
    state = replayed((records.Key(records.SCHEMA, "a", 1).encode(), json.dumps(value).encode()))
    assert list(state.subjects) == ["a"] and list(state.versions("a")) == [1]


def test_settings_in_small_letters_are_understood() -> None:
    state = replayed(
        (b'{"keytype":"CONFIG","subject":null,"magic":0}', b'{"compatibilityLevel":"full"}'),
        (b'{"keytype":"MODE","subject":"a","magic":0}', b'{"subject":"a","mode":"readonly"}'),
    )
    assert state.level("a") == "FULL" and state.mode("a") == "READONLY"


def test_a_clearing_is_for_a_subject_a_context_or_all() -> None:
    for scope, left in (("a", [":.c:a", "b"]), (":.c:", ["a", "b"]), (None, [])):
        state = RegistryState()
        for subject in ("a", "b", ":.c:a"):
            register(state, subject, '"int"')
            for record in changes.delete_subject(state, subject, permanent=False).records:
                state.replay(decode(*record.encode()))
        state.replay(decode(*records.clear_subject(scope).encode()))
        assert sorted(state.subjects) == left, scope


def test_a_context_is_saved_once_in_a_record_of_its_own() -> None:
    """Confluent's registry finds contexts by these records."""
    state = RegistryState()
    schema = SchemaText("AVRO", '"int"')
    change = changes.register(state, Registration(":.c:a", schema))
    assert change.records[0].encode() == (
        b'{"keytype":"CONTEXT","tenant":"default","context":".c","magic":0}',
        b'{"tenant":"default","context":".c"}',
    )
    for record in change.records:
        state.replay(decode(*record.encode()))
    assert state.context_names() == {".", ".c"}
    assert [record.key.type for record in changes.register(state, Registration(":.c:b", schema)).records] == ["SCHEMA"]
    assert [record.key.type for record in changes.register(state, Registration("a", schema)).records] == ["SCHEMA"]


def test_references_in_a_circle_are_refused() -> None:
    """No request makes them; a topic that somebody wrote to by hand may have them."""
    state = RegistryState()
    for subject, other in (("a", "b"), ("b", "a")):
        value = {"subject": subject, "version": 1, "id": 1 if subject == "a" else 2, "schema": f'"{other}"'}
        value["references"] = [{"name": other, "subject": other, "version": 1}]
        key = records.Key(records.SCHEMA, subject, 1).encode()
        state.replay(decode(key, json.dumps(value).encode()))
    with pytest.raises(RegistryError, match="circle") as caught:
        register(state, "c", '"a"', Reference("a", "a", 1))
    assert caught.value.code == 42201


def test_references_that_lead_through_too_many_schemas_are_refused() -> None:
    """Whoever registers one after the other gets so far that the way back is longer than anybody's stack."""
    state = RegistryState()
    for number in range(2_000):
        before = [{"name": "a", "subject": f"s{number - 1}", "version": 1}] if number else []
        value = {"subject": f"s{number}", "version": 1, "id": number + 1, "references": before, "schema": '"int"'}
        key = {"keytype": "SCHEMA", "subject": f"s{number}", "version": 1, "magic": 1}
        state.replay(decode(json.dumps(key).encode(), json.dumps(value).encode()))
    with pytest.raises(RegistryError, match="too many schemas") as caught:
        register(state, "last", '"long"', Reference("a", "s1999", 1))
    assert caught.value.code == 42201


def test_a_schema_that_comes_back_takes_a_new_version_and_its_old_id() -> None:
    state = RegistryState()
    first = register(state, "a", '"int"')
    for record in changes.delete_version(state, "a", 1, permanent=False).records:
        state.replay(record)
    assert register(state, "a", '"int"') == first
    assert list(state.versions("a", deleted=True)) == [2]


def test_ten_thousand_schemas_are_read_at_a_start(broker: Broker) -> None:
    count = 10_000
    broker.create_topic("_many", 1, {"cleanup.policy": "compact"})
    produce = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(1, count + 1):
        text = f'{{"type":"record","name":"R{number}","fields":[{{"name":"a","type":"int"}}]}}'
        value = {"subject": f"s{number}", "version": 1, "id": number, "schema": text, "deleted": False}
        produce.produce("_many", json.dumps(value), records.Key(records.SCHEMA, f"s{number}", 1).encode())
        produce.poll(0)
    produce.flush()
    with Registry(broker.bootstrap_servers, topic="_many", group="many") as registry:
        assert len(httpx.get(f"{registry.url}/subjects", trust_env=False).json()) == count
        assert httpx.get(f"{registry.url}/schemas/ids/{count}", trust_env=False).status_code == 200
