"""Bearer tokens as logins of the registry, shown by confluent-kafka's client and by ours."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs

import httpx
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from ottla.client.access.bearer import BearerLogin
from ottla.client.schema_registry import Refused, RegistryClient
from ottla.common.errors import OttlaError
from ottla.registry.api.access import load_logins
from ottla.registry.api.bearer import BearerTokens
from ottla.registry.api.token_settings import TokenSettings
from ottla.schemas.registry import SchemaRegistry
from ottla.streams.registry import RegistrySerde
from ottla.testing import Broker, Registry
from ottla.testing.movable_clock import MovableClock
from tests.cli.command import Cli
from tests.registry.test_api import refused

pytest.importorskip("joserfc", reason="joserfc is not installed: pip install 'ottla[security]'")
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet

ISSUER, AUDIENCE = "https://login.example", "registry"
BODY = {"schema": '"int"'}


class Issuer:
    """Signs tokens, and hands them out to who asks with the right secret."""

    def __init__(self, folder: Path) -> None:
        self._key = ECKey.generate_key("P-256", {"kid": "one"})
        self.jwks = folder / "jwks.json"
        self.trust(self._key)
        self.asked: list[dict[str, list[str]]] = []
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                form = parse_qs(self.rfile.read(int(self.headers["content-length"])).decode())
                issuer.asked.append(form)
                login = self.headers.get("authorization")  # confluent-kafka's client sends it so, ours in the form
                is_right = login is not None or form.get("client_secret") == ["s3cret"]
                body = json.dumps({"access_token": issuer.token(), "expires_in": 600}) if is_right else "{}"
                self.send_response(200 if is_right else 401)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/token"
        self._thread = Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def trust(self, *keys: ECKey) -> None:
        self.jwks.write_text(json.dumps(KeySet(list(keys)).as_dict(private=False)))

    def token(self, key: ECKey | None = None, **claims: Any) -> str:
        told = {"iss": ISSUER, "aud": AUDIENCE, "sub": "sales@clients", "exp": int(time.time()) + 600, **claims}
        return jwt.encode({"alg": "ES256", "kid": "one"}, told, key or self._key, algorithms=["ES256"])

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Issuer]:
    running = Issuer(tmp_path_factory.mktemp("issuer"))
    yield running
    running.stop()


def users_file(folder: Path, issuer: Issuer, more: str = "") -> str:
    file = folder / "users.toml"
    file.write_text(
        f"""
[users.root]
password = "r00t"
admin = true
[users.sales]
token = "sales@clients"
write = ["orders-*"]
{more}
[oauthbearer]
jwks.endpoint.url = "{issuer.jwks.as_uri()}"
expected.issuer = "{ISSUER}"
expected.audience = ["{AUDIENCE}"]
"""
    )
    return str(file)


@pytest.fixture(scope="module")
def guarded(broker: Broker, issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Registry]]:
    """Two instances: one of them forwards."""
    given = {"topic": "_bearer", "group": "bearer", "users_file": users_file(tmp_path_factory.mktemp("users"), issuer)}
    with Registry(broker.bootstrap_servers, **given) as one, Registry(broker.bootstrap_servers, **given) as other:
        yield [one, other]


@pytest.mark.parametrize("source", ["STATIC_TOKEN", "OAUTHBEARER"])
def test_confluents_client_logs_in_by_a_token_on_every_instance(
    source: str, guarded: list[Registry], issuer: Issuer
) -> None:
    settings = {
        "bearer.auth.credentials.source": source,
        "bearer.auth.logical.cluster": "lsrc-any",
        "bearer.auth.identity.pool.id": "pool-any",
    }
    if source == "STATIC_TOKEN":
        settings |= {"bearer.auth.token": issuer.token()}
    else:
        settings |= {"bearer.auth.issuer.endpoint.url": issuer.url, "bearer.auth.scope": "schemas"}
        settings |= {"bearer.auth.client.id": "sales", "bearer.auth.client.secret": "s3cret"}
    for number, registry in enumerate(guarded):
        client = SchemaRegistryClient({"url": registry.url, **settings})
        schema = Schema(json.dumps({"type": "fixed", "name": f"F{source}", "size": number + 1}), "AVRO")
        assert client.register_schema(f"orders-{source}-{number}", schema) > 0
        with pytest.raises(SchemaRegistryError) as denied:
            client.register_schema("secret", schema)
        assert denied.value.error_code == 40301
    wrong = {"bearer.auth.credentials.source": "STATIC_TOKEN", "bearer.auth.token": "x.y.z"}
    wrong |= {"bearer.auth.logical.cluster": "lsrc-any"}
    with pytest.raises(SchemaRegistryError) as unknown:
        SchemaRegistryClient({"url": guarded[0].url, **wrong}).get_subjects()
    assert unknown.value.http_status_code == 401


def test_only_tokens_that_are_signed_for_us_and_good_now_are_logins(guarded: list[Registry], issuer: Issuer) -> None:
    now = int(time.time())
    bad = {
        "another key": issuer.token(ECKey.generate_key("P-256", {"kid": "one"})),
        "another issuer": issuer.token(iss="https://evil.example"),
        "another audience": issuer.token(aud="kafka"),
        "an audience that is no text": issuer.token(aud=[["registry"]]),
        "expired": issuer.token(exp=now - 600),
        "not yet": issuer.token(nbf=now + 600),
        "a user who is none": issuer.token(sub="root"),
        "nobody": issuer.token(sub=7),
        "unsigned": "eyJhbGciOiJub25lIn0." + issuer.token().split(".")[1] + ".",
        "empty": ".",
        "no token": "\u00e4",
    }
    with httpx.Client(base_url=guarded[0].url, trust_env=False, timeout=60) as http:
        for why, token in bad.items():
            reply = http.get("/subjects", headers={"Authorization": f"Bearer {token}".encode()})
            assert refused(reply) == (401, 401), why
            assert reply.headers["www-authenticate"] == 'Basic realm="schema registry", Bearer'
        for scheme in ("Bearer", "bearer"):
            assert http.get("/subjects", headers={"Authorization": f"{scheme} {issuer.token()}"}).status_code == 200
        assert http.get("/subjects", auth=("root", "r00t")).status_code == 200
        assert refused(http.get("/subjects", auth=("sales", ""))) == (401, 401)


def test_our_clients_show_tokens(guarded: list[Registry], issuer: Issuer, broker: Broker, tmp_path: Path) -> None:
    asked = len(issuer.asked)
    fetched = BearerLogin.of(
        {
            "bearer.auth.credentials.source": "OAUTHBEARER",
            "bearer.auth.issuer.endpoint.url": issuer.url,
            "bearer.auth.client.id": "sales",
            "bearer.auth.client.secret": "s3cret",
            "bearer.auth.scope": "schemas",
        }
    )
    there = SchemaRegistry(guarded[0].url, bearer=fetched).of("orders-ours")
    there.client().post(BODY, "subjects", "orders-ours", "versions")
    assert there.schema().version == 1
    assert len(issuer.asked) == asked + 1, "a token is fetched once"
    assert issuer.asked[-1]["grant_type"] == ["client_credentials"] and issuer.asked[-1]["scope"] == ["schemas"]
    static = BearerLogin.of({"bearer.auth.token": issuer.token()})
    assert "s3cret" not in repr(fetched) and static.token not in repr(static) + repr(there)
    serde = RegistrySerde(guarded[0].url, schema='"int"', bearer=static)
    assert serde.deserialize("orders", serde.serialize("orders", 7)) == 7
    file = tmp_path / "bearer.properties"
    file.write_text(f"# of sales\nbearer.auth.token = {issuer.token()}\n")
    done = Cli(broker.bootstrap_servers)("schema", "list", "--registry", guarded[0].url, "--registry-bearer", str(file))
    assert done.status == 0 and "orders-ours" in done.out, done.err
    with pytest.raises(Refused, match="401"):
        RegistryClient(guarded[0].url, bearer=BearerLogin.of({"bearer.auth.token": "x"})).get("subjects")
    wrong = BearerLogin("OAUTHBEARER", endpoint=issuer.url, client_id="sales", client_secret="wrong")
    with pytest.raises(OttlaError, match=r"gives no token \(401"):
        RegistryClient(guarded[0].url, bearer=wrong).get("subjects")


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, "is STATIC_TOKEN or OAUTHBEARER"),
        ({"bearer.auth.credentials.source": "CUSTOM"}, "not 'CUSTOM'"),
        ({"bearer.auth.credentials.source": "STATIC_TOKEN"}, r"needs bearer\.auth\.token"),
        ({"bearer.auth.credentials.source": "OAUTHBEARER"}, r"needs bearer\.auth\.issuer\.endpoint\.url"),
        ({"bearer.auth.tokens": "x"}, "'bearer.auth.tokens' is no setting"),
        ({"bearer.auth.token": "a\nb"}, "no header can carry"),
    ],
)
def test_a_mistake_in_the_settings_of_a_client_is_one_sentence(settings: dict[str, str], told: str) -> None:
    with pytest.raises(OttlaError, match=told):
        BearerLogin.of(settings)


def test_a_token_and_a_name_are_not_given_at_once() -> None:
    with pytest.raises(OttlaError, match="one of them logs in"):
        RegistryClient("http://a:b@127.0.0.1:9", bearer=BearerLogin.of({"bearer.auth.token": "x"}))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[users.a]\ntoken = "x"\n', r"section \[oauthbearer\]"),
        ('[users.a]\npassword = "x"\n[oauthbearer]\nexpected.audience = "a"\n', "needs jwks.endpoint.url"),
        ('[users.a]\ntoken = ""\n[oauthbearer]\n', "token of"),
        ('[users.a]\ntoken = "x"\n[oauthbearer]\n', "needs expected.audience"),
        (
            '[users.a]\ntoken = "x"\n[oauthbearer]\nexpected.audience = "a"\njwks.endpoint.url = "x"\n',
            "expected.issuer",
        ),
    ],
)
def test_a_bad_section_of_tokens_is_refused_with_a_sentence(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "users.toml").write_text(text)
    with pytest.raises(OttlaError, match=told):
        load_logins(str(tmp_path / "users.toml"))


def test_one_user_may_stand_for_all_who_have_a_token(issuer: Issuer, tmp_path: Path) -> None:
    logins = load_logins(users_file(tmp_path, issuer, '[users.others]\ntoken = "*"\nread = ["*"]\n'))
    assert {user.token for user in logins.users.values()} == {None, "sales@clients", "*"}


async def test_a_token_is_known_until_it_ends_or_its_key_is_not_trusted_any_more(tmp_path: Path) -> None:
    clock = MovableClock()
    issuer = Issuer(tmp_path)
    issuer.stop()
    tokens = BearerTokens(TokenSettings(issuer.jwks.as_uri(), ISSUER, (AUDIENCE,)), clock)
    short = issuer.token(exp=clock.now_ms() // 1000 + 60).encode()
    assert tokens.user(short) == tokens.user(short) == "sales@clients"
    clock.advance(seconds=91)  # the clocks may be 30 s apart
    assert tokens.user(short) is None
    long = issuer.token(exp=clock.now_ms() // 1000 + 6_000_000).encode()
    assert tokens.user(long) == "sales@clients"
    issuer.trust(ECKey.generate_key("P-256", {"kid": "two"}))
    clock.advance(hours=1)
    deadline = time.monotonic() + 30
    while tokens.user(long) is not None:  # the keys are read in the background
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)
