"""Users, rights by subject, TLS, read-only instances, and the registry's own login to a cluster."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import trustme

from ottla.common.errors import OttlaError
from ottla.registry.api.access import hashed, is_password, load_users
from ottla.testing import Broker, Registry
from tests.registry.test_api import refused

BODY = {"schema": '"int"'}


@pytest.fixture(scope="module")
def guarded(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    file = tmp_path_factory.mktemp("users") / "users.toml"
    file.write_text(
        f"""
[users.root]
password = "{hashed("r00t")}"
admin = true
[users.sales]
password = "s4les"
write = ["orders-*"]
read = ["public-*"]
"""
    )
    with Registry(broker.bootstrap_servers, topic="_guarded", group="guarded", users_file=str(file)) as running:
        yield running


def client(registry: Registry, *login: str) -> httpx.Client:
    return httpx.Client(base_url=registry.url, auth=login or None, trust_env=False, timeout=60)  # type: ignore[arg-type]


def test_nobody_is_let_in_without_a_password(guarded: Registry) -> None:
    for login in ((), ("sales", "wrong"), ("nobody", "s4les"), ("root", "")):
        with client(guarded, *login) as http:
            assert refused(http.get("/subjects")) == (401, 401)
    with client(guarded) as http:
        assert "Basic" in http.get("/subjects").headers["www-authenticate"]
        assert http.get("/subjects", headers={"Authorization": "Basic \u00e4".encode()}).status_code == 401


def test_rights_count_by_subject(guarded: Registry) -> None:
    with client(guarded, "root", "r00t") as root, client(guarded, "sales", "s4les") as sales:
        assert root.post("/subjects/public-a/versions", json=BODY).status_code == 200
        secret = root.post("/subjects/secret/versions", json={"schema": '"bytes"'}).json()["id"]
        assert sales.post("/subjects/orders-value/versions", json=BODY).status_code == 200
        assert refused(sales.post("/subjects/public-a/versions", json=BODY)) == (403, 40301)
        assert sales.get("/subjects/public-a/versions/1").status_code == 200
        assert refused(sales.get("/subjects/secret/versions/1")) == (403, 40301)
        assert refused(sales.get(f"/schemas/ids/{secret}")) == (404, 40403)
        assert refused(sales.delete("/subjects/secret")) == (403, 40301)
        assert refused(sales.put("/config", json={"compatibility": "NONE"})) == (403, 40301)
        assert refused(sales.put("/config/orders-value", json={"compatibility": "NONE"})) == (403, 40301)
        assert sorted(sales.get("/subjects").json()) == ["orders-value", "public-a"]
        assert {one["subject"] for one in sales.get("/schemas").json()} == {"orders-value", "public-a"}
        assert root.put("/config", json={"compatibility": "NONE"}).status_code == 200


def test_a_read_only_instance_answers_and_changes_nothing(broker: Broker) -> None:
    with (
        Registry(broker.bootstrap_servers, topic="_mirror", group="mirror") as writing,
        Registry(broker.bootstrap_servers, topic="_mirror", group="mirror", is_read_only=True) as reading,
        client(writing) as writer,
        client(reading) as reader,
    ):
        number = writer.post("/subjects/a/versions", json=BODY).json()["id"]
        reply = reader.get(f"/schemas/ids/{number}")
        while reply.status_code == 404:  # it follows
            reply = reader.get(f"/schemas/ids/{number}")
        assert reply.json()["schema"] == '"int"'
        assert reader.post("/subjects/a/versions", json=BODY).json()["id"] == number, "nothing is changed by that"
        assert refused(reader.post("/subjects/a/versions", json={"schema": '"long"'})) == (422, 42205)
        assert refused(reader.delete("/subjects/a")) == (422, 42205)


def test_tls_is_spoken(broker: Broker, tmp_path: Path) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    certificate, key, ca = (str(tmp_path / name) for name in ("certificate.pem", "key.pem", "ca.pem"))
    issued.private_key_pem.write_to_path(key)
    for number, blob in enumerate(issued.cert_chain_pems):
        blob.write_to_path(certificate, append=number > 0)
    authority.cert_pem.write_to_path(ca)
    settings = {"certificate": certificate, "key": key, "ca": ca, "topic": "_tls", "group": "tls"}
    with Registry(broker.bootstrap_servers, **settings) as registry:
        assert registry.url.startswith("https://")
        context = ssl.create_default_context(cafile=ca)
        assert httpx.get(f"{registry.url}/subjects", verify=context, trust_env=False).json() == []
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{registry.url}/subjects", trust_env=False)


def test_a_password_is_kept_as_a_hash() -> None:
    assert is_password("x", hashed("x")) and not is_password("y", hashed("x"))
    assert is_password("x", "x") and not is_password("x", "y")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "names no user"),
        ("[users.a]\n", "needs a password"),
        ('[users.a]\npassword = "x"\nwrites = []\n', "writes"),
        ('[users.a]\npassword = "x"\nread = "*"\n', "is a list"),
        ("[users", "TOML"),
    ],
)
def test_a_bad_file_of_users_is_refused_with_a_sentence(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "users.toml").write_text(text)
    with pytest.raises(OttlaError, match=told):
        load_users(str(tmp_path / "users.toml"))
