"""Requests that nobody sends by mistake, and names that only look like that."""

from __future__ import annotations

import json
import select
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import Any

import httpx
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from ottla.client.schema_registry import RegistryClient
from ottla.registry.api.gate import HEADER_BYTES_MAX
from ottla.registry.parsing import parse
from ottla.schemas.registered import by_version
from ottla.testing import Broker, Registry
from tests.registry.test_api import refused, register
from tests.registry.test_bad_input import count

INT = {"schema": '"int"'}


@pytest.mark.parametrize("name", ["a/b", "/", "a b", "100%", "%2F", "ä/日本", "a+b?c#d", ":.ctx:x/y"])
def test_names_of_subjects_may_have_any_character(name: str, registry: Registry, http: httpx.Client) -> None:
    client = SchemaRegistryClient({"url": registry.url})
    number = client.register_schema(name, Schema('"int"', "AVRO"))
    assert client.get_latest_version(name).subject == name
    assert client.get_versions(name) == [1]
    assert name in http.get("/subjects?subjectPrefix=:*:").json()
    assert client.set_compatibility(name, "NONE") and client.get_compatibility(name) == "NONE"
    assert client.lookup_schema(name, Schema('"int"', "AVRO")).schema_id == number
    assert client.delete_subject(name) == [1]
    assert client.delete_subject(name, permanent=True) == [1]


def test_contexts_have_ids_and_settings_of_their_own(http: httpx.Client) -> None:
    first = register(http, ":.north:orders-value", '{"type":"fixed","name":"N","size":1}')
    second = register(http, ":.south:orders-value", '{"type":"fixed","name":"S","size":2}')
    assert first["id"] == second["id"] == 1
    assert http.get("/contexts/.north/subjects").json() == [":.north:orders-value"]
    assert '"N"' in http.get("/contexts/.north/schemas/ids/1").json()["schema"]
    assert '"S"' in http.get("/schemas/ids/1?subject=:.south:orders-value").json()["schema"]
    assert http.put("/config/:.north:", json={"compatibility": "FULL"}).status_code == 200
    assert http.get("/config/:.north:orders-value?defaultToGlobal=true").json()["compatibilityLevel"] == "FULL"
    assert http.get("/config/:.south:orders-value?defaultToGlobal=true").json()["compatibilityLevel"] == "BACKWARD"
    assert {".north", ".south"} <= set(http.get("/contexts").json())


def test_another_media_type_is_refused(http: httpx.Client, broker: Broker) -> None:
    register(http, "some-value")
    before = count(broker)
    for kind in ("text/plain", "application/xml", "application/x-www-form-urlencoded"):
        reply = http.post("/subjects/typed/versions", content=json.dumps(INT), headers={"Content-Type": kind})
        assert refused(reply) == (415, 415)
    assert count(broker) == before
    for kind in ("application/json; charset=utf-8", "application/vnd.schemaregistry+json", "application/octet-stream"):
        reply = http.post("/subjects/typed/versions", content=json.dumps(INT), headers={"Content-Type": kind})
        assert reply.status_code == 200


def test_headers_have_a_limit(http: httpx.Client) -> None:
    for size in (HEADER_BYTES_MAX, 5_000_000):
        assert refused(http.get("/subjects", headers={"X-Large": "x" * size})) == (431, 431)
    assert http.get("/subjects", headers={"X-Large": "x" * 8_000}).status_code == 200


def test_a_list_is_looked_through_for_a_few_prefixes_only(http: httpx.Client) -> None:
    """Thousands of them by thousands of subjects would be a minute in which nobody else is answered."""
    assert http.get("/subjects?" + "&".join(["subjectPrefix=a"] * 1_000)).status_code == 200, "one and the same"
    for path in ("/subjects", "/schemas"):
        asked = "&".join(f"subjectPrefix={number}" for number in range(1_000))
        assert refused(http.get(f"{path}?{asked}")) == (422, 422)


def raw(registry: Registry) -> socket.socket:
    address = httpx.URL(registry.url)
    return socket.create_connection((address.host, address.port or 0), timeout=60)


def test_a_head_without_end_is_refused_before_it_is_kept(registry: Registry) -> None:
    with raw(registry) as connection:
        connection.sendall(b"GET /subjects HTTP/1.1\r\nX-Large: ")
        while not select.select([connection], [], [], 0)[0]:
            connection.sendall(b"x" * 1_000)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 431 ")


def test_a_slow_client_is_not_waited_for(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.http.connection.HEAD_S_MAX", 0.3)
    with Registry(broker.bootstrap_servers, topic="_slow", group="slow", receive_timeout_s=0.3) as registry:
        beginnings = [
            b"",
            b"GET /subj",
            b"GET /subjects HTTP/1.1\r\nX-Slow: ",
            b'POST /subjects/a/versions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"schema',
        ]
        for beginning in beginnings:
            with raw(registry) as connection:
                connection.sendall(beginning)
                received = b""
                while chunk := connection.recv(65_536):
                    received += chunk
                assert received.startswith(b"HTTP/1.1 408 "), (beginning, received)
        with httpx.Client(base_url=registry.url, trust_env=False) as http:
            assert http.get("/subjects").json() == []
            time.sleep(0.4)  # longer than a head may take: a connection that is kept is not one
            assert http.get("/subjects").json() == []


def test_halves_of_characters_are_no_text(http: httpx.Client) -> None:
    inside = rb'{"schema":"{\"type\":\"record\",\"name\":\"R\",\"doc\":\"\\ud800\",\"fields\":[]}"}'
    assert refused(http.post("/subjects/halves/versions", content=inside)) == (422, 42201)
    assert refused(http.post("/subjects/halves/versions", content=inside.replace(rb"\\u", rb"\u"))) == (400, 400)
    whole = inside.replace(rb"\\ud800", rb"\\ud83d\\ude00")
    assert http.post("/subjects/halves/versions", content=whole).status_code == 200
    assert "😀" in http.get("/subjects/halves/versions/1").json()["schema"]


@pytest.mark.parametrize(
    "more",
    [
        {"metadata": {"properties": 5}},
        {"metadata": {"properties": {"a": 5}}},
        {"metadata": {"tags": {"a": "b"}}},
        {"metadata": {"sensitive": "a"}},
        {"metadata": [1]},
        {"ruleSet": {"domainRules": {}}},
        {"ruleSet": {"migrationRules": ["x"]}},
    ],
)
def test_metadata_and_rules_of_another_shape_are_refused(more: dict[str, Any], http: httpx.Client) -> None:
    assert refused(http.post("/subjects/shapes/versions", json=INT | more)) == (422, 422)
    assert refused(http.get("/subjects/shapes/versions")) == (404, 40401)


def test_tags_that_would_be_lost_are_refused(http: httpx.Client) -> None:
    entity = {"entityPath": "R.a", "entityType": "sr_field"}
    for name in ("schemaTagsToAdd", "schemaTagsToRemove"):
        more = {name: [{"schemaEntity": entity, "tags": ["PII"]}]}
        assert refused(http.post("/subjects/tagged/versions", json=INT | more)) == (422, 422)
        assert http.post("/subjects/tagged/versions", json=INT | {name: []}).status_code == 200


@pytest.mark.parametrize(
    "setting",
    [{"defaultMetadata": 7}, {"overrideRuleSet": "x"}, {"compatibilityGroup": [1]}, {"normalize": "yes"}, {"alias": 1}],
)
def test_settings_of_another_shape_are_refused(setting: dict[str, Any], http: httpx.Client) -> None:
    assert refused(http.put("/config/shapes", json=setting)) == (422, 422)
    assert register(http, "shapes-still")["version"] == 1


def test_a_million_ways_through_references_are_not_walked(http: httpx.Client) -> None:
    """Each schema refers twice to the one before it."""
    register(http, "chain-0", '{"type":"integer"}', schemaType="JSON")
    for number in range(1, 40):
        names = [f"{side}{number}.json" for side in "ab"]
        body = {
            "schema": json.dumps({"properties": {name: {"$ref": name} for name in names}}),
            "schemaType": "JSON",
            "references": [{"name": name, "subject": f"chain-{number - 1}", "version": 1} for name in names],
        }
        reply = http.post(f"/subjects/chain-{number}/versions", json=body)
        assert reply.status_code == 200, reply.text
    last = by_version(RegistryClient(str(http.base_url)), "chain-39", 1)
    assert len(last.references) == 78


@pytest.mark.parametrize(
    "body",
    [
        b'{"references": [' + b"{}," * 200_000 + b"{}]}",
        b'{"schema": [' + b"[]," * 200_000 + b"[]]}",
        b'{"schema": "x", "metadata": ' + b"[" * 500 + b"[]," * 200_000 + b"[]" + b"]" * 500 + b"}",
        b'{"schema": "' + b"x" * 300_000,
        b'{"schema": "' + b"x" * 300_000 + b'", "references": [' + b"{}," * 200_000 + b"{}]}",
    ],
    ids=["references", "no text", "metadata", "no end", "beside a schema"],
)
def test_what_is_around_a_schema_is_small_or_not_looked_at(body: bytes, http: httpx.Client) -> None:
    """Each of these becomes objects of hundreds of megabytes, if it is only long enough, and all others wait for it."""
    reply = http.post("/subjects/around/versions", content=body)
    assert refused(reply) in ((422, 42209), (400, 400))
    assert "Without its schema" in reply.text or "Unterminated" in reply.text


def test_a_large_schema_may_have_something_of_its_name_beside_it(http: httpx.Client) -> None:
    schema = json.dumps({"type": "record", "name": "R", "doc": '"' * 200_000, "fields": []})
    body = {"metadata": {"properties": {"schema": "a"}}, "schema": schema}
    assert http.post("/subjects/beside/versions", json=body).status_code == 200


def test_halves_of_characters_are_no_text_in_bytes_either(http: httpx.Client) -> None:
    inside = b'{"schema":"{\\"type\\":\\"record\\",\\"name\\":\\"R\\",\\"doc\\":\\"\xed\xa0\x80\\",\\"fields\\":[]}"}'
    assert refused(http.post("/subjects/halves-too/versions", content=inside)) == (400, 400)


def test_large_requests_that_do_not_end_are_in_nobodys_way_with_small_ones(broker: Broker) -> None:
    """What is kept of clients that announce much and do not send all of it has an end."""
    head = b"POST /subjects/a/versions HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"
    large = {"schema": json.dumps({"type": "fixed", "name": "F", "size": 1, "doc": "x" * 400_000})}
    settings: dict[str, Any] = {"topic": "_full", "group": "full", "incomplete_bytes_max": 1_000_000}
    with (
        Registry(broker.bootstrap_servers, **settings) as registry,
        httpx.Client(base_url=registry.url, trust_env=False, timeout=60) as http,
    ):

        def status() -> int:
            found = http.post("/subjects/large/versions", json=large).status_code
            assert found in (200, 503)
            return found

        with ExitStack() as kept:
            is_full = False
            while not is_full:
                slow = kept.enter_context(raw(registry))
                with suppress(ConnectionError):
                    slow.sendall(head + b'{"schema":"' + b"x" * 900_000)
                # What is sent is received a little later; and of the two it may be the slow one that is refused.
                while not select.select([slow], [], [], 0)[0] and not is_full:
                    is_full = status() == 503
            assert http.post("/subjects/small/versions", json=INT).status_code == 200
        while status() != 200:
            pass


def test_a_file_of_protobuf_is_read_where_nobody_else_is_answered(
    http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of a megabyte takes its parser seconds; clients of protobuf ask for each as a descriptor."""
    register(http, "serialized", 'syntax = "proto3"; message A { int32 a = 1; }', schemaType="PROTOBUF")
    number = http.get("/subjects/serialized/versions/1").json()["id"]
    threads: list[str] = []

    def noted(*arguments: Any, **more: Any) -> Any:
        threads.append(threading.current_thread().name)
        return parse(*arguments, **more)

    monkeypatch.setattr("ottla.registry.api.looking.parse", noted)
    for path in (f"/schemas/ids/{number}", f"/schemas/ids/{number}/schema", "/subjects/serialized/versions/1"):
        assert "message" not in http.get(f"{path}?format=serialized").text
    assert len(threads) == 3 and "ottla-registry" not in threads


def test_schemas_that_take_long_leave_room_for_those_of_others(
    http: httpx.Client, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are judged in threads, of which there are a few for everybody."""
    register(http, "slow-to-judge")
    begun, ended = threading.Semaphore(0), threading.Event()

    def slow(*_: object) -> list[str]:
        begun.release()
        assert ended.wait(60)
        return []

    monkeypatch.setattr("ottla.registry.api.looking.compatibility_messages", slow)

    def check() -> int:
        return httpx.post(f"{registry.url}/compatibility/subjects/slow-to-judge/versions", json=INT).status_code

    neighbour = httpx.HTTPTransport(local_address="127.0.0.2")
    with ThreadPoolExecutor(40) as many, httpx.Client(transport=neighbour, timeout=20) as other:
        asked = [many.submit(check) for _ in range(40)]
        try:
            assert begun.acquire(timeout=60)
            for number in range(20):
                body = {"schema": json.dumps({"type": "fixed", "name": "F", "size": number + 1})}
                assert other.post(f"{registry.url}/subjects/of-others-{number}/versions", json=body).status_code == 200
        finally:
            ended.set()
        assert [one.result() for one in asked] == [200] * 40
