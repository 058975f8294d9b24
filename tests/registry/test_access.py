"""Users, rights by subject, TLS, read-only instances, and the registry's own login to a cluster."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme

from ottla.common.errors import OttlaError
from ottla.common.passwords import hashed, is_password
from ottla.registry.api.access import load_logins
from ottla.registry.topic.election import Identity
from ottla.schemas.registry import SchemaRegistry
from ottla.security.distinguished_name import subject_of
from ottla.testing import Broker, Registry
from tests.cli.command import Cli
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


def test_what_may_not_be_seen_is_not_found_on_any_way(guarded: Registry) -> None:
    place = '{"type":"record","name":"Place","fields":[{"name":"x","type":"int"}]}'
    user = '{"type":"record","name":"U","fields":[{"name":"place","type":"Place"}]}'
    with client(guarded, "root", "r00t") as root, client(guarded, "sales", "s4les") as sales:
        hidden = root.post("/subjects/hidden/versions", json={"schema": place}).json()
        referring = {"schema": user, "references": [{"name": "Place", "subject": "hidden", "version": 1}]}
        root.post("/subjects/:.vault:hidden/versions", json={"schema": place})
        root.put("/config/orders-alias", json={"alias": "hidden"})
        for path in (f"/schemas/guids/{hidden['guid']}", f"/schemas/guids/{hidden['guid']}/ids"):
            assert root.get(path).status_code == 200
            assert refused(sales.get(path)) == (404, 40403)
        for path in ("", "/schema", "/versions", "/subjects"):
            assert refused(sales.get(f"/schemas/ids/{hidden['id']}{path}")) == (404, 40403)
            assert refused(sales.get(f"/schemas/ids/{hidden['id']}{path}?subject=orders-alias")) == (404, 40403)
        for path in (
            "/subjects/hidden",
            "/contexts/:.:/subjects/hidden",
            "/subjects/orders-alias",
            "/subjects/%68idden",
        ):
            assert refused(sales.get(f"{path}/versions")) == (403, 40301)
            assert refused(sales.get(f"{path}/versions/latest")) == (403, 40301)
            assert refused(sales.post(f"{path}/versions", json=BODY)) == (403, 40301)
            assert refused(sales.post(path, json={"schema": place})) == (403, 40301)
            assert refused(sales.delete(path)) == (403, 40301)
        for path in ("/subjects/orders-u/versions", "/compatibility/subjects/orders-u/versions", "/subjects/orders-u"):
            assert refused(sales.post(path, json=referring)) == (403, 40301)
        assert root.post("/subjects/secret-u/versions", json=referring).status_code == 200
        assert ".vault" in root.get("/contexts").json() and ".vault" not in sales.get("/contexts").json()
        for query in ("", "?subjectPrefix=:*:", "?subjectPrefix=hidden", "?deleted=true"):
            assert "hidden" not in sales.get(f"/subjects{query}").text
            assert "hidden" not in sales.get(f"/schemas{query}").text


def test_a_login_that_came_over_tls_is_forwarded_by_tls_or_not_at_all(broker: Broker, tmp_path: Path) -> None:
    """Who writes is what the group says, and whoever may read the group may join it."""
    authority = trustme.CA()
    identity, ca, users = (tmp_path / name for name in ("identity.pem", "ca.pem", "users.toml"))
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(identity))
    authority.cert_pem.write_to_path(str(ca))
    users.write_text('[users.root]\npassword = "r00t"\nadmin = true\n')
    files = {"users_file": str(users), "certificate": str(identity), "ca": str(ca)}
    with (
        Registry(broker.bootstrap_servers, topic="_downgraded", group="downgraded", **files) as registry,
        socket.create_server(("127.0.0.1", 0)) as thief,
    ):
        said = Identity("127.0.0.1", thief.getsockname()[1], "http")
        assert registry._loop is not None
        registry._loop.call_soon_threadsafe(registry.server.instance._learn_writer, said)
        with httpx.Client(
            base_url=registry.url, auth=("root", "r00t"), verify=ssl.create_default_context(cafile=ca), timeout=60
        ) as http:
            assert refused(http.post("/subjects/a/versions", json=BODY)) == (500, 50003)
        thief.setblocking(False)
        with pytest.raises(BlockingIOError):
            thief.accept()


@pytest.mark.parametrize("name", ["root", "nobody"])
def test_a_guess_holds_up_nobody_who_is_known(name: str, guarded: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hash takes tens of milliseconds of a core: it is not made where everybody else is answered. And it is made for
    names that are none too, so that the time does not tell them apart."""
    begun, answered, in_time = threading.Event(), threading.Event(), []

    def slow(given: str, stored: str) -> bool:
        begun.set()
        in_time.append(answered.wait(10))
        return False

    with client(guarded, "root", "r00t") as root, ThreadPoolExecutor(1) as other:
        assert root.get("/subjects").status_code == 200
        monkeypatch.setattr("ottla.common.basic_logins.is_password", slow)
        guess = other.submit(_guess, guarded, name)
        assert begun.wait(10)
        assert root.get("/subjects").status_code == 200
        answered.set()
        assert guess.result() == 401
    assert in_time == [True]


def _guess(registry: Registry, name: str) -> int:
    with client(registry, name, "a guess") as http:
        return http.get("/subjects").status_code


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


class Shown:
    """Certificates of one authority, each with its key in one file."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._authority = folder, trustme.CA()
        self.ca = str(folder / "ca.pem")
        self._authority.cert_pem.write_to_path(self.ca)

    def issue(self, name: str, *hosts: str) -> tuple[str, str]:
        """The file, and the subject as the registry has it."""
        issued = self._authority.issue_cert(*hosts, f"{name}@example.com", common_name=name)
        file = self._folder / f"{name}.pem"
        issued.private_key_and_cert_chain_pem.write_to_path(str(file))
        return str(file), subject_of(ssl.PEM_cert_to_DER_cert(issued.cert_chain_pems[0].bytes().decode()))

    def client(self, url: str, file: str | None, **more: Any) -> httpx.Client:
        context = ssl.create_default_context(cafile=self.ca)
        if file is not None:
            context.load_cert_chain(file)
        return httpx.Client(base_url=url, verify=context, trust_env=False, timeout=60, **more)


def test_a_certificate_is_a_login_on_every_instance_and_passwords_still_are(broker: Broker, tmp_path: Path) -> None:
    shown = Shown(tmp_path)
    own, own_name = shown.issue("registry", "127.0.0.1")
    sales, sales_name = shown.issue("sales")
    stranger, _ = shown.issue("stranger")
    users = tmp_path / "users.toml"
    users.write_text(
        f"[users.instances]\ncertificate = {json.dumps(own_name)}\nforwards = true\n"
        f"[users.sales]\ncertificate = {json.dumps(sales_name)}\nwrite = ['orders-*']\n"
        "[users.root]\npassword = 'r00t'\nadmin = true\n"
    )
    given = {"certificate": own, "key": own, "ca": shown.ca, "client_ca": shown.ca, "users_file": str(users)}
    given |= {"topic": "_shown", "group": "shown"}
    with Registry(broker.bootstrap_servers, **given) as one, Registry(broker.bootstrap_servers, **given) as other:
        for number, registry in enumerate((one, other)):
            with shown.client(registry.url, sales) as http:
                schema = {"schema": json.dumps({"type": "fixed", "name": "F", "size": number + 1})}
                assert http.post(f"/subjects/orders-{number}/versions", json=schema).status_code == 200
                assert refused(http.post("/subjects/secret/versions", json=BODY)) == (403, 40301)
                # Whoever is no instance asks for nobody else.
                assert refused(
                    http.post("/subjects/secret/versions", json=BODY, headers={"x-forward-user": "root"})
                ) == (403, 40301)
            for file in (None, stranger):
                with shown.client(registry.url, file) as http:
                    assert refused(http.get("/subjects", headers={"x-forward-user": "root"})) == (401, 401)
            with shown.client(registry.url, None, auth=("root", "r00t")) as http:
                assert http.put(f"/config/orders-{number}", json={"compatibility": "NONE"}).status_code == 200
            with shown.client(registry.url, None, auth=("sales", "")) as http:
                assert refused(http.get("/subjects")) == (401, 401)
        there = SchemaRegistry(one.url, ca=shown.ca, certificate=sales).of("orders-0")
        assert there.schema().version == 1
        done = Cli(broker.bootstrap_servers)(
            "schema", "list", "--registry", one.url, "--registry-ca", shown.ca, "--registry-certificate", sales
        )
        assert done.status == 0 and "orders-0" in done.out, done.err


def test_without_users_whoever_has_a_certificate_is_let_in_and_nobody_else(broker: Broker, tmp_path: Path) -> None:
    shown = Shown(tmp_path)
    own, _ = shown.issue("registry", "127.0.0.1")
    given = {"certificate": own, "key": own, "ca": shown.ca, "client_ca": shown.ca, "topic": "_must", "group": "must"}
    with Registry(broker.bootstrap_servers, **given) as registry:
        with shown.client(registry.url, own) as http:
            assert http.post("/subjects/a/versions", json=BODY).status_code == 200
        with shown.client(registry.url, None) as http, pytest.raises(httpx.TransportError):
            http.get("/subjects")


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
        ('[users.a]\npassword = "scrypt:zz:00"\n', "no hash"),
    ],
)
def test_a_bad_file_of_users_is_refused_with_a_sentence(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "users.toml").write_text(text)
    with pytest.raises(OttlaError, match=told):
        load_logins(str(tmp_path / "users.toml"))
