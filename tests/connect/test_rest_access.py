"""HTTPS and logins of a worker's REST API, by Kafka Connect's settings: without a cluster and without Spark."""

from __future__ import annotations

import base64
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

from ottla.common.errors import OttlaError
from ottla.common.passwords import hashed
from ottla.connect.rest.app import build
from ottla.connect.worker.rest_settings import parse_rest
from ottla.connect.worker.signing import SIGNATURE, signature
from tests.support.certificates import Certificates

BASIC = "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"
KEY = b"k" * 32


def client_of(rest: Any) -> TestClient:
    written: list[Any] = []
    worker = SimpleNamespace(
        settings=SimpleNamespace(rest=rest),
        configs=SimpleNamespace(configs={}, session_key=KEY),
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
    assert asked.get("/connectors", headers={"Authorization": "Bearer x"}).status_code == 401
    for login in (("anna", "plain words"), ("ben", "s3cret"), ("anna", "plain words")):
        assert asked.get("/connectors", auth=login).json() == []


@pytest.mark.parametrize("has_login", [True, False])
def test_what_workers_ask_of_each_other_is_signed(tmp_path: Path, has_login: bool) -> None:
    file = tmp_path / "credentials.properties"
    file.write_text("anna=a\n")
    asked = client_of(parse_rest({"ottla.rest.credentials.file": str(file)} if has_login else {}, None))
    path, body = "/ottla/tasks/a%20b", b'{"class": "x", "tasks": 2}'
    for headers in ({}, {SIGNATURE: signature(KEY, "/ottla/tasks/c", body)}, {SIGNATURE: signature(b"x", path, body)}):
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
