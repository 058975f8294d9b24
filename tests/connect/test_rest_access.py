"""HTTPS and logins of a worker's REST API, by Kafka Connect's settings: without a cluster and without Spark."""

from __future__ import annotations

import base64
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

from ottla.common.errors import OttlaError
from ottla.common.passwords import hashed
from ottla.connect.rest.app import build
from ottla.connect.worker.errors import Refused
from ottla.connect.worker.moving import sink_row
from ottla.connect.worker.rest_settings import parse_rest
from ottla.connect.worker.signing import SIGNATURE, signature
from tests.support.certificates import Certificates

BASIC = "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"
KEY = b"k" * 32


def client_of(rest: Any) -> TestClient:
    written: list[Any] = []
    worker = SimpleNamespace(
        settings=SimpleNamespace(rest=rest, providers={}, defaults={}),
        configs=SimpleNamespace(configs={}, tasks={}, session_key=KEY),
        changing=threading.RLock(),
        url="http://worker",
        wait_for_leader=lambda timeout_s: None,
        write_tasks=lambda *given: written.append(given),
        written=written,
    )
    return TestClient(build(worker))  # type: ignore[arg-type]


def test_only_those_get_in_who_have_a_password(tmp_path: Path) -> None:
    file = tmp_path / "credentials.properties"
    file.write_text(f"anna=plain words\nben={hashed('s3cret')}\n")
    rest = parse_rest({"rest.extension.classes": BASIC, "ottla.rest.credentials.file": str(file)}, None)
    asked = client_of(rest)
    for login in (None, ("anna", "wrong"), ("nobody", "plain words"), ("ben", rest.credentials["ben"])):  # type: ignore[index]
        told = asked.get("/connectors", auth=login)
        assert told.status_code == 401 and told.headers["www-authenticate"].startswith("Basic ")
        assert told.json() == {"error_code": 401, "message": "User cannot access the resource."}
    for header in (b"Bearer x", b"Basic", b"Basic \xff", b"Basic ====", b"Basic " + base64.b64encode(b"\xffanna"), b""):
        assert asked.get("/connectors", headers={"Authorization": header}).status_code == 401
    for login in (("anna", "plain words"), ("ben", "s3cret"), ("anna", "plain words")):
        assert asked.get("/connectors", auth=login).json() == []


@pytest.mark.parametrize("has_login", [True, False])
def test_what_workers_ask_of_each_other_is_signed(tmp_path: Path, has_login: bool) -> None:
    file = tmp_path / "credentials.properties"
    file.write_text("anna=a\n")
    asked = client_of(parse_rest({"ottla.rest.credentials.file": str(file)} if has_login else {}, None))
    path, body = "/ottla/tasks/a%20b", b'{"class": "x", "tasks": 2}'
    wrong = [signature(KEY, "/ottla/tasks/c", body), signature(b"x", path, body), b"\xff\xfe", ""]
    for headers in ({}, *({SIGNATURE: each} for each in wrong)):
        assert asked.put(path, content=body, headers=headers).status_code == 403
    assert asked.put(path, content=body, headers={SIGNATURE: signature(KEY, path, body)}).status_code == 204
    assert asked.app.state.worker.written == [("a b", "x", 2)]  # type: ignore[attr-defined]


def test_a_login_goes_along_with_what_is_forwarded(tmp_path: Path) -> None:
    file = tmp_path / "credentials.properties"
    file.write_text("anna=a\n")
    asked = client_of(parse_rest({"ottla.rest.credentials.file": str(file)}, None))
    seen: list[str | None] = []

    def leader(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers.get("authorization"))
        return httpx.Response(204)

    state: Any = asked.app.state  # type: ignore[attr-defined]
    state.forwarding = httpx.Client(transport=httpx.MockTransport(leader))
    state.worker.wait_for_leader = lambda timeout_s: "https://leader"
    state.worker.config_topic = SimpleNamespace(read_to_end=lambda: None)
    assert asked.put("/connectors/x/pause", auth=("anna", "a")).status_code == 204
    assert seen == [f"Basic {base64.b64encode(b'anna:a').decode()}"]


NOBODY = parse_rest({}, None)
GENERATOR = {"connector.class": "DataGenerator", "topic": "t"}


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"name": "x", "config": {"a": ' + b"[" * 100_000,
        b'{"name": "\\ud800", "config": {}}',
        b'{"name": "x", "config": {"a": NaN}}',
        b'{"name": "\xff"}',
        json.dumps({"name": "x", "config": GENERATOR, "initial_state": 5}).encode(),
        json.dumps({"name": "x", "config": GENERATOR, "initial_state": ["RUNNING"]}).encode(),
    ],
)
def test_bodies_that_make_no_sense_are_refused_with_a_sentence(body: bytes) -> None:
    told = client_of(NOBODY).post("/connectors", content=body)
    assert told.status_code == 400 and told.json()["error_code"] == 400, told.text


class _Looked(dict[str, Any]):
    """Two that look at the same time go on at the same time, if nothing keeps them apart."""

    def __init__(self) -> None:
        self._both = threading.Barrier(2)

    def _wait(self) -> None:
        try:
            self._both.wait(0.3)
        except threading.BrokenBarrierError:
            return

    def __contains__(self, name: object) -> bool:
        found = super().__contains__(name)
        self._wait()
        return found

    def get(self, name: str, default: Any = None) -> Any:  # type: ignore[override]
        found = super().get(name, default)
        self._wait()
        return found


def together(client: TestClient, *requests: tuple[str, str, Any]) -> list[int]:
    worker: Any = client.app.state.worker  # type: ignore[attr-defined]
    known = worker.configs.configs = _Looked()
    known["old"] = {**GENERATOR, "name": "old"}

    def write(records: Any) -> None:
        for key, value in records:
            kind, _, name = key.decode().partition("-")
            if kind == "connector":
                known[name] = json.loads(value)["properties"]

    worker.write_configs = write
    with ThreadPoolExecutor(2) as pool:
        answers = pool.map(lambda each: client.request(each[0], each[1], json=each[2]).status_code, requests)
        return sorted(answers)


def test_of_two_that_make_the_same_connector_one_is_told_that_it_exists() -> None:
    body = {"name": "new", "config": GENERATOR}
    assert together(client_of(NOBODY), ("POST", "/connectors", body), ("POST", "/connectors", body)) == [201, 409]


def test_two_that_change_settings_of_a_connector_do_not_lose_each_others() -> None:
    client = client_of(NOBODY)
    patches = [("PATCH", "/connectors/old/config", each) for each in ({"rate": "5"}, {"count": "7"})]
    assert together(client, *patches) == [200, 200]
    config = dict(client.app.state.worker.configs.configs["old"])  # type: ignore[attr-defined]
    assert config == {**GENERATOR, "name": "old", "rate": "5", "count": "7"}


@pytest.mark.parametrize("number", [1.7, True, "x", "1_0", None, [], 1e400, 2**63, -1])
def test_offsets_of_a_sink_are_whole_numbers(number: Any) -> None:
    for row in ({"kafka_partition": number}, {"kafka_offset": number}):
        if row == {"kafka_offset": None}:
            continue
        partition = {"kafka_topic": "t", "kafka_partition": 0, **row}
        offset = {"kafka_offset": 5, **row}
        with pytest.raises(Refused, match="kafka_partition and kafka_offset are") as caught:
            sink_row({"partition": partition, "offset": offset})
        assert caught.value.status == 400
    for topic in (None, 5, ""):
        with pytest.raises(Refused, match="kafka_topic"):
            sink_row({"partition": {"kafka_topic": topic, "kafka_partition": 0}, "offset": None})


def test_settings_of_https_have_the_prefix_or_none(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    mine, other = str(certificates.issue("localhost")), str(certificates.issue("other"))
    plain = {"ssl.keystore.type": "PEM", "ssl.keystore.location": other, "ssl.client.auth": "required"}
    plain |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(certificates.ca)}
    prefixed = {"listeners.https.ssl.keystore.type": "PEM", "listeners.https.ssl.keystore.location": mine}
    https = {"listeners": "https://localhost:8443,http://localhost:1"}
    found = parse_rest({**https, **plain, **prefixed}, None)
    assert (found.scheme, found.port, found.certificate, found.requires_client) == ("https", 8443, mine, False)
    found = parse_rest({**https, **plain}, "127.0.0.1:0")
    assert (found.scheme, found.port, found.certificate, found.requires_client) == ("https", 0, other, True)
    assert found.client_ca == str(certificates.ca)
    assert parse_rest(plain, None).scheme == "http"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"listeners": "https://0.0.0.0:8083"}, "set listeners.https.ssl.keystore.location to a PEM file"),
        (
            {"listeners": "https://0.0.0.0:8083", "ssl.keystore.location": "a.jks"},
            "ssl.keystore.location is a store of type JKS",
        ),
        (
            {"listeners": "https://x:1", "ssl.keystore.location": "a.pem", "ssl.client.auth": "required"},
            "name in listeners.https.ssl.truststore.location whom to trust",
        ),
        ({"listeners": "ftp://x:1"}, "is no place to listen"),
        ({"rest.extension.classes": "com.example.Mine"}, "has 'com.example.Mine', which is not known here"),
        ({"rest.extension.classes": BASIC}, "name in ottla.rest.credentials.file the file"),
        ({"ottla.rest.credentials.file": "/nowhere"}, "/nowhere"),
    ],
)
def test_what_would_leave_the_door_open_is_refused_at_start(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(OttlaError) as caught:
        parse_rest(given, None)
    assert sentence in str(caught.value)
