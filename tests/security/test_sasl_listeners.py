"""Real clients that log in by every mechanism, with right and wrong credentials; and those that break the rules."""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError as AioKafkaError
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey
from kafka import KafkaProducer

from ottla.client.access.scram import Scram
from ottla.common.errors import ErrorCode, OttlaError
from ottla.protocol.messages import (
    ApiVersionsRequest,
    IncrementalAlterConfigsRequest,
    MetadataRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from ottla.testing import Broker
from tests.support.raw_client import ConnectionClosed, RawClient
from tests.support.refusals import refusals
from tests.support.scram_login import log_in as scram_log_in

USERS = "SCRAM-SHA-256=[name=ada,password=secret];SCRAM-SHA-512=[name=ada,password=secret]"
PLAIN_USERS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_ada="secret";'
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


def secured(**more: str) -> Broker:
    return Broker(
        {
            "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": PLAIN_USERS,
            "ottla.first.users": USERS,
            "connection.failed.authentication.delay.ms": "0",
            **more,
        }
    )


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with secured() as running:
        yield running


def librdkafka(broker: Broker, mechanism: str, password: str = "secret", user: str = "ada") -> dict[str, Any]:
    return {
        "bootstrap.servers": broker.bootstrap_servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password,
        "log_level": 0,
    }


def is_let_in(settings: dict[str, Any]) -> bool:
    told = refusals(settings)
    assert all(error.code() == KafkaError._AUTHENTICATION for error in told), told
    return not told


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_confluent_kafka_logs_in_with_the_right_password_only(broker: Broker, mechanism: str) -> None:
    producer = Producer(librdkafka(broker, mechanism))
    producer.produce("t", b"x")
    assert producer.flush(30) == 0
    assert not is_let_in(librdkafka(broker, mechanism, "wrong"))
    assert not is_let_in(librdkafka(broker, mechanism, user="nobody"))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_python_logs_in(broker: Broker, mechanism: str) -> None:
    producer = KafkaProducer(
        bootstrap_servers=broker.bootstrap_servers,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism=mechanism,
        sasl_plain_username="ada",
        sasl_plain_password="secret",
    )
    assert producer.send("t", b"x").get(30).topic == "t"
    producer.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_aiokafka_logs_in_with_the_right_password_only(broker: Broker, mechanism: str) -> None:
    for password, is_right in (("secret", True), ("wrong", False)):
        producer = AIOKafkaProducer(
            bootstrap_servers=broker.bootstrap_servers,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism=mechanism,
            sasl_plain_username="ada",
            sasl_plain_password=password,
        )
        try:
            await producer.start()
            assert is_right
        except AioKafkaError:
            assert not is_right
        finally:
            await producer.stop()


def test_an_admin_adds_changes_and_removes_users() -> None:
    with secured() as broker:
        admin = AdminClient(librdkafka(broker, "SCRAM-SHA-512"))
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 8192)
        added = admin.alter_user_scram_credentials(
            [UserScramCredentialUpsertion("bob", info, b"first", b"salt of bob")]
        )
        added["bob"].result(30)
        assert is_let_in(librdkafka(broker, "SCRAM-SHA-256", "first", "bob"))
        assert not is_let_in(librdkafka(broker, "SCRAM-SHA-512", "first", "bob"))
        known = admin.describe_user_scram_credentials(["bob"])["bob"].result(30)
        assert [(one.mechanism, one.iterations) for one in known.scram_credential_infos] == [
            (ScramMechanism.SCRAM_SHA_256, 8192)
        ]
        admin.alter_user_scram_credentials([UserScramCredentialUpsertion("bob", info, b"second")])["bob"].result(30)
        assert not is_let_in(librdkafka(broker, "SCRAM-SHA-256", "first", "bob"))
        broker.restart()
        assert is_let_in(librdkafka(broker, "SCRAM-SHA-256", "second", "bob"))
        admin = AdminClient(librdkafka(broker, "SCRAM-SHA-512"))
        gone = admin.alter_user_scram_credentials([UserScramCredentialDeletion("bob", ScramMechanism.SCRAM_SHA_256)])
        gone["bob"].result(30)
        assert not is_let_in(librdkafka(broker, "SCRAM-SHA-256", "second", "bob"))
        with pytest.raises(KafkaException):
            admin.describe_user_scram_credentials(["bob"])["bob"].result(30)


def test_a_first_user_who_changed_the_password_keeps_it() -> None:
    with secured() as broker:
        admin = AdminClient(librdkafka(broker, "SCRAM-SHA-256"))
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        admin.alter_user_scram_credentials([UserScramCredentialUpsertion("ada", info, b"another")])["ada"].result(30)
        broker.restart()
        assert is_let_in(librdkafka(broker, "SCRAM-SHA-512", "another"))
        assert not is_let_in(librdkafka(broker, "SCRAM-SHA-512"))


# --- by hand


def handshake(client: RawClient, mechanism: str) -> Any:
    return client.call(SaslHandshakeRequest(mechanism=mechanism), 1)


def say(client: RawClient, message: bytes, version: int = 2) -> Any:
    return client.call(SaslAuthenticateRequest(auth_bytes=message), version)


def log_in(client: RawClient, user: str = "ada", password: str = "secret") -> Any:
    handshake(client, "PLAIN")
    return say(client, f"\0{user}\0{password}".encode())


def test_before_the_login_nothing_is_answered_but_what_versions_there_are(broker: Broker) -> None:
    with RawClient.to(broker.bootstrap_servers) as client:
        assert client.call(ApiVersionsRequest(), 0).error_code == 0
        client.send(MetadataRequest(topics=None), 5)
        assert client.is_closed_by_peer()


def test_a_mechanism_that_is_not_offered_is_answered_with_those_that_are(broker: Broker) -> None:
    with RawClient.to(broker.bootstrap_servers) as client:
        answer = handshake(client, "GSSAPI")
        assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
        assert list(answer.mechanisms) == list(MECHANISMS)
        assert log_in(client).error_code == 0


def test_a_login_without_a_handshake_is_none(broker: Broker) -> None:
    with RawClient.to(broker.bootstrap_servers) as client:
        client.send(SaslAuthenticateRequest(auth_bytes=b"\0ada\0secret"), 2)
        assert client.is_closed_by_peer()


def exchange(client: RawClient, token: bytes) -> bytes:
    """Not in a request, after a SaslHandshake v0."""
    client.send_frame(token)
    return client.receive_frame()


def test_an_old_client_logs_in_without_requests(broker: Broker) -> None:
    """Older ones ask for SaslHandshake v0: librdkafka 2.0, which is kcat's on Debian, does not log in without it."""
    with RawClient.to(broker.bootstrap_servers) as client:
        versions = {one.api_key: one.min_version for one in client.call(ApiVersionsRequest(), 0).api_keys}
        assert versions[17] == 0
        assert client.call(SaslHandshakeRequest(mechanism="PLAIN"), 0).error_code == 0
        assert exchange(client, b"\0ada\0secret") == b""
        assert client.call(MetadataRequest(topics=None), 5).brokers
        assert client.call(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0, "requests again"
        client.sock.sendall(b"\0\0\0\x09123456789")
        assert client.is_closed_by_peer(), "as short as no request is"
    scram = Scram("SCRAM-SHA-256", "ada", "secret")
    with RawClient.to(broker.bootstrap_servers) as client:
        assert client.call(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 0).error_code == 0
        scram.check(exchange(client, scram.final(exchange(client, scram.first()))))
        assert client.call(MetadataRequest(topics=None), 5).brokers


@pytest.mark.parametrize(
    "token", [b"", b"\0", b"\0a\0b", b"\0ada\0wrong", b"x" * 100_000, b"\0\x03\0\x05\0\0\0\0\xff\xff\0"]
)
def test_an_old_client_with_another_password_hears_nothing_more(broker: Broker, token: bytes) -> None:
    with RawClient.to(broker.bootstrap_servers) as client:
        client.call(SaslHandshakeRequest(mechanism="PLAIN"), 0)
        client.send_frame(token)
        assert client.is_closed_by_peer()


def test_nobody_logs_in_again_without_requests(broker: Broker) -> None:
    with RawClient.to(broker.bootstrap_servers) as client:
        assert log_in(client).error_code == 0
        client.send(SaslHandshakeRequest(mechanism="PLAIN"), 0)
        assert client.is_closed_by_peer()


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("message", [b"", b"\0", b"\0\0\0\0", b"\xff\xfe\xfd", b"n,,n=,r=", b"n,,", b"x" * 100_000])
def test_bytes_that_are_no_message_end_the_connection(broker: Broker, mechanism: str, message: bytes) -> None:
    with RawClient.to(broker.bootstrap_servers) as client:
        handshake(client, mechanism)
        answer = say(client, message)
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert client.is_closed_by_peer()


def test_nobody_may_act_for_somebody_else(broker: Broker) -> None:
    with RawClient.to(broker.bootstrap_servers) as client:
        handshake(client, "PLAIN")
        assert say(client, b"admin\0ada\0secret").error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_a_replayed_scram_login_is_refused(broker: Broker) -> None:
    """Whoever has heard one login cannot repeat it: our part of the nonce is another one each time."""
    scram = Scram("SCRAM-SHA-256", "ada", "secret", nonce="always-the-same")
    with RawClient.to(broker.bootstrap_servers) as client:
        handshake(client, "SCRAM-SHA-256")
        heard = scram.final(bytes(say(client, scram.first()).auth_bytes))
        assert say(client, heard).error_code == 0
    with RawClient.to(broker.bootstrap_servers) as client:
        handshake(client, "SCRAM-SHA-256")
        say(client, scram.first())
        assert say(client, heard).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def challenge_and_refusal(broker: Broker, user: str) -> tuple[str, int, str]:
    """The salt, the iterations, and what is told in the end."""
    scram = Scram("SCRAM-SHA-256", user, "wrong")
    with RawClient.to(broker.bootstrap_servers) as client:
        handshake(client, "SCRAM-SHA-256")
        challenge = bytes(say(client, scram.first()).auth_bytes)
        refused = say(client, scram.final(challenge))
        _, salt, iterations = challenge.decode().split(",")
        return salt, int(iterations.removeprefix("i=")), f"{refused.error_code} {refused.error_message}"


def test_a_user_who_does_not_exist_is_not_told_from_one_with_another_password(broker: Broker) -> None:
    nobody, ada = challenge_and_refusal(broker, "nobody"), challenge_and_refusal(broker, "ada")
    assert nobody[1:] == ada[1:] and len(nobody[0]) == len(ada[0]) and nobody[0] != ada[0]
    assert challenge_and_refusal(broker, "nobody") == nobody, "the salt is always the same"


def test_who_does_not_exist_changes_as_little_as_who_does() -> None:
    """Users who all have more iterations, and settings that change, tell nobody from them."""
    users = "SCRAM-SHA-256=[name=ada,password=secret,iterations=8192]"
    with secured(**{"ottla.first.users": users}) as broker:
        before = challenge_and_refusal(broker, "nobody")
        assert before[1] == 8192
        more = PLAIN_USERS.replace(";", ' user_bob="secret";')
        with RawClient.to(broker.bootstrap_servers) as admin:
            log_in(admin)
            name = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
            change = IncrementalAlterConfigsRequest.AlterableConfig(name=name, config_operation=0, value=more)
            resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
                resource_type=4, resource_name="1", configs=[change]
            )
            request = IncrementalAlterConfigsRequest(resources=[resource])
            assert admin.call(request, 1).responses[0].error_code == 0
        with RawClient.to(broker.bootstrap_servers) as bob:
            assert log_in(bob, "bob").error_code == 0, "the change is there"
        assert challenge_and_refusal(broker, "nobody") == before


def test_a_client_of_ipv4_is_known_by_its_address_on_a_listener_of_both(caplog: pytest.LogCaptureFixture) -> None:
    """ACLs and quotas name 10.0.0.1, not ::ffff:10.0.0.1."""
    settings = {
        "listeners": "SASL_PLAINTEXT://[::]:0",
        "advertised.listeners": "SASL_PLAINTEXT://localhost:0",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
    }
    with secured(**settings) as broker:
        port = broker.bootstrap_servers.rpartition(":")[2]
        with caplog.at_level("INFO", "ottla.audit"), RawClient.to(f"127.0.0.1:{port}") as client:
            assert scram_log_in(client, "ada", "secret").error_code == 0
    assert [record.client for record in caplog.records if record.getMessage() == "login"] == ["127.0.0.1"]


def test_a_large_request_before_the_login_closes_the_connection(broker: Broker) -> None:
    with RawClient.to(broker.bootstrap_servers) as client:
        client.sock.sendall((600_000).to_bytes(4, "big") + bytes(100))
        assert client.is_closed_by_peer()


def test_a_session_that_is_limited_ends_unless_the_client_logs_in_again() -> None:
    with (
        secured(**{"connections.max.reauth.ms": "60000"}) as broker,
        RawClient.to(broker.bootstrap_servers) as kept,
        RawClient.to(broker.bootstrap_servers) as lost,
    ):
        assert log_in(kept).session_lifetime_ms == log_in(lost).session_lifetime_ms == 60_000
        broker.clock.advance(seconds=50)
        assert log_in(kept).error_code == 0
        broker.clock.advance(seconds=30)
        assert kept.call(MetadataRequest(topics=None), 5).brokers
        with pytest.raises(ConnectionClosed):
            lost.call(MetadataRequest(topics=None), 5)


def test_nobody_becomes_somebody_else_by_logging_in_again() -> None:
    users = PLAIN_USERS.replace(";", ' user_bob="secret";')
    with (
        secured(**{"listener.name.sasl_plaintext.plain.sasl.jaas.config": users}) as broker,
        RawClient.to(broker.bootstrap_servers) as client,
    ):
        assert log_in(client).error_code == 0
        assert log_in(client, "bob").error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert client.is_closed_by_peer()


def test_who_logs_in_again_does_so_by_the_same_mechanism() -> None:
    """KIP-368: a session that a token began is not prolonged by a password, nor the other way round."""
    with (
        secured(**{"sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256"}) as broker,
        RawClient.to(broker.bootstrap_servers) as client,
    ):
        assert log_in(client).error_code == 0
        assert handshake(client, "SCRAM-SHA-256").error_code == 0
        answer = client.call(SaslAuthenticateRequest(auth_bytes=b"n,,n=ada,r=nonce"), 2)
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert "not supported for re-authentication of mechanism 'PLAIN'" in answer.error_message
        assert client.is_closed_by_peer()


def test_a_client_of_a_listener_without_logins_is_told_so() -> None:
    with Broker() as broker, RawClient.to(broker.bootstrap_servers) as client:
        assert handshake(client, "PLAIN").error_code == ErrorCode.ILLEGAL_SASL_STATE


# --- tokens


@pytest.fixture(scope="module")
def key() -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": "one"}, private=True)


@pytest.fixture
def token_broker(tmp_path: Path, key: RSAKey) -> Iterator[Broker]:
    jwks = tmp_path / "jwks.json"
    jwks.write_text(json.dumps(KeySet([key]).as_dict(private=False)))
    with secured(
        **{
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": jwks.as_uri(),
            "sasl.oauthbearer.expected.issuer": "https://login.example",
            "sasl.oauthbearer.expected.audience": "kafka,other",
        }
    ) as running:
        yield running


def claims(**more: Any) -> dict[str, Any]:
    return {"iss": "https://login.example", "aud": "kafka", "sub": "ada", "exp": int(time.time()) + 600, **more}


def token(key: Any, algorithm: str = "RS256", **more: Any) -> str:
    return jwt.encode({"alg": algorithm, "kid": "one"}, claims(**more), key, algorithms=[algorithm])


def show(broker: Broker, text: str) -> Any:
    with RawClient.to(broker.bootstrap_servers) as client:
        handshake(client, "OAUTHBEARER")
        return say(client, b"n,,\x01auth=Bearer " + text.encode() + b"\x01\x01")


def test_confluent_kafka_logs_in_by_a_token(token_broker: Broker, key: RSAKey) -> None:
    admin = AdminClient(
        {
            "bootstrap.servers": token_broker.bootstrap_servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "oauth_cb": lambda _: (token(key), time.time() + 600, "ada", {}),
            "log_level": 0,
        }
    )
    admin.poll(1)
    assert admin.list_topics(timeout=30).brokers


def _signed_by_hand(secret: bytes) -> str:
    """As one would who takes the public key, which everybody has, for the secret of HS256."""
    parts = (json.dumps({"alg": "HS256", "kid": "one"}).encode(), json.dumps(claims()).encode())
    text = b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in parts)
    signature = base64.urlsafe_b64encode(hmac.digest(secret, text, "sha256")).rstrip(b"=")
    return (text + b"." + signature).decode()


def test_a_token_must_be_signed_for_us_and_good_now(token_broker: Broker, key: RSAKey) -> None:
    good = show(token_broker, token(key))
    assert good.error_code == 0
    assert 0 < good.session_lifetime_ms <= 600_000, "no longer than the token"
    now = int(time.time())
    header, _, rest = token(key).partition(".")
    bad = {
        "another key": token(RSAKey.generate_key(2048, {"kid": "one"})),
        "another issuer": token(key, iss="https://evil.example"),
        "another audience": token(key, aud="mail"),
        "no audience": token(key, aud=[]),
        "expired": token(key, exp=now - 600),
        "without an end": token(key, exp=None),
        "not yet": token(key, nbf=now + 600),
        "nobody's": token(key, sub=""),
        "a public key as a secret": _signed_by_hand(key.as_pem(private=False)),
        "unsigned": "eyJhbGciOiJub25lIn0." + rest.partition(".")[0] + ".",
        "cut": header,
        "not a token": "x" * 3000,
    }
    for why, text in bad.items():
        assert show(token_broker, text).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED, why


def test_a_refused_token_is_told_with_its_user_if_the_signature_holds(
    token_broker: Broker, key: RSAKey, caplog: pytest.LogCaptureFixture
) -> None:
    """What a token says that somebody else has signed is anybody's word."""
    with caplog.at_level("INFO", "ottla.audit"):
        show(token_broker, token(key, exp=int(time.time()) - 600))
        show(token_broker, token(RSAKey.generate_key(2048, {"kid": "one"}), sub="admin"))
    refused = [record for record in caplog.records if record.getMessage() == "login refused"]
    assert [getattr(record, "user", None) for record in refused] == ["ada", None]


# --- settings


@pytest.mark.parametrize(
    ("properties", "sentence"),
    [
        ({"sasl.enabled.mechanisms": "GSSAPI"}, "GSSAPI is not"),
        ({"sasl.enabled.mechanisms": "DIGEST-MD5"}, "each one of PLAIN"),
        ({"listeners": "SASL_PLAINTEXT://:0"}, "passwords of PLAIN without TLS"),
        ({"listener.name.sasl_plaintext.plain.sasl.jaas.config": ""}, "offers PLAIN and has no users"),
        ({"listener.name.sasl_plaintext.plain.sasl.jaas.config": "x"}, "does not end with a semicolon"),
        ({"ottla.first.users": "ada=secret"}, "ottla.first.users cannot be read"),
        ({"sasl.enabled.mechanisms": "OAUTHBEARER"}, "needs sasl.oauthbearer.jwks.endpoint.url"),
    ],
)
def test_a_mistake_in_the_settings_is_one_sentence(properties: dict[str, str], sentence: str) -> None:
    with pytest.raises(OttlaError) as caught:
        secured(**properties).start()
    assert sentence in str(caught.value)
    assert "secret" not in str(caught.value)
