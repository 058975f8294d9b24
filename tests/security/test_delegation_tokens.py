"""Delegation tokens (KIP-48): made, used, renewed, ended; by those who may, and by Kafka's own tool."""

from __future__ import annotations

import base64
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.common.errors import ErrorCode
from ottla.protocol import messages as m
from ottla.testing import Broker
from tests.security.test_acls import AUTHORIZER
from tests.support.kafka_jars import class_path, quick_java, require_kafka_libs
from tests.support.raw_client import ConnectionClosed, RawClient
from tests.support.scram_login import log_in

USERS = ";".join(f"SCRAM-SHA-256=[name={name},password=secret]" for name in ("admin", "ada", "bob"))
SECRET = "the-secret-of-all-brokers"
HOUR_MS = 3_600_000


def secured(**more: str) -> Broker:
    return Broker(
        {
            "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
            "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
            "ottla.first.users": USERS,
            "delegation.token.secret.key": SECRET,
            "connection.failed.authentication.delay.ms": "0",
            "connections.max.idle.ms": "-1",
            "authorizer.class.name": AUTHORIZER,
            "super.users": "User:admin",
            **more,
        }
    )


@pytest.fixture
def broker() -> Iterator[Broker]:
    with secured() as running:
        yield running


def logged_in(broker: Broker, user: str, password: str = "secret", **more: Any) -> RawClient:
    client = RawClient.to(broker.bootstrap_servers)
    answer = log_in(client, user, password, **more)
    assert answer.error_code == 0, answer.error_message
    client.session_ms = answer.session_lifetime_ms  # type: ignore[attr-defined]
    return client


def create(client: RawClient, *renewers: str, owner: str | None = None, lifetime_ms: int = -1) -> Any:
    renewer = m.CreateDelegationTokenRequest.CreatableRenewers
    request = m.CreateDelegationTokenRequest(
        owner_principal_type=None if owner is None else "User",
        owner_principal_name=owner,
        renewers=[renewer(principal_type="User", principal_name=name) for name in renewers],
        max_lifetime_ms=lifetime_ms,
    )
    return client.call(request, 3)


def described(client: RawClient, *owners: str) -> list[Any]:
    one = m.DescribeDelegationTokenRequest
    named = [one.DescribeDelegationTokenOwner(principal_type="User", principal_name=name) for name in owners]
    answer = client.call(one(owners=named or None), 3)
    assert answer.error_code == 0
    return list(answer.tokens)


def renew(client: RawClient, token: Any, period_ms: int = -1) -> Any:
    return client.call(m.RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=period_ms), 2)


def expire(client: RawClient, token: Any, period_ms: int = -1) -> Any:
    return client.call(m.ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=period_ms), 2)


def with_token(broker: Broker, token: Any, **more: Any) -> RawClient:
    password = base64.b64encode(token.hmac).decode()
    return logged_in(broker, token.token_id, password, extensions=",tokenauth=true", **more)


def principal(broker: Broker) -> set[str]:
    """Of those who are connected."""
    return {one.principal for one in broker.server._listeners[0]._connections.values()}


class TestLoggingIn:
    @pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
    def test_whoever_has_a_token_is_its_owner_until_it_expires(self, broker: Broker, mechanism: str) -> None:
        with logged_in(broker, "ada") as ada:
            token = create(ada)
            assert token.error_code == 0 and (token.principal_name, len(token.hmac)) == ("ada", 64)
        with with_token(broker, token, mechanism=mechanism) as client:
            assert "User:ada" in principal(broker)
            assert 0 < client.session_ms <= 24 * HOUR_MS  # type: ignore[attr-defined]
            assert client.call(m.MetadataRequest(topics=[]), 12).brokers
            broker.clock.advance(hours=25)
            client.send(m.MetadataRequest(topics=[]), 12)
            assert client.is_closed_by_peer()
        with pytest.raises(AssertionError, match="invalid credentials"):
            with_token(broker, token)

    def test_who_logs_in_again_by_a_token_has_no_more_than_the_token(self, broker: Broker) -> None:
        """And who does so by a password, having had a token, has all of it."""
        not_allowed = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        with logged_in(broker, "ada") as ada:
            token = create(ada)
            assert token.error_code == 0
            proof = base64.b64encode(token.hmac).decode()
            assert log_in(ada, token.token_id, proof, extensions=",tokenauth=true").error_code == 0
            assert create(ada).error_code == not_allowed
            assert log_in(ada, "ada", "secret").error_code == 0
            assert create(ada).error_code == 0

    def test_a_token_is_of_a_user(self, broker: Broker) -> None:
        """With a token for Any:admin one would be User:admin, and no ACL of User:admin asked for."""
        request = m.CreateDelegationTokenRequest(
            owner_principal_type="Any", owner_principal_name="admin", renewers=[], max_lifetime_ms=-1
        )
        with logged_in(broker, "admin") as admin:
            assert admin.call(request, 3).error_code == ErrorCode.INVALID_PRINCIPAL_TYPE

    def test_wrong_proofs_and_names_are_refused_in_the_same_words(self, broker: Broker) -> None:
        with logged_in(broker, "ada") as ada:
            token = create(ada)
        said = set()
        for name, password, extensions in (
            (token.token_id, "wrong", ",tokenauth=true"),
            ("no-such-token", "wrong", ",tokenauth=true"),
            (token.token_id, base64.b64encode(token.hmac).decode(), ""),
            ("ada", "secret", ",tokenauth=true"),
        ):
            with RawClient.to(broker.bootstrap_servers) as client:
                answer = log_in(client, name, password, extensions=extensions)
                assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
                said.add(answer.error_message)
        assert len(said) == 1

    def test_a_token_makes_no_other_token(self, broker: Broker) -> None:
        with logged_in(broker, "ada") as ada:
            token = create(ada)
        with with_token(broker, token) as client:
            for answer in (create(client), renew(client, token), expire(client, token)):
                assert answer.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
            describe = client.call(m.DescribeDelegationTokenRequest(owners=None), 3)
            assert describe.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED

    def test_it_is_good_after_a_restart_and_its_proof_is_on_no_disk(self, broker: Broker) -> None:
        with logged_in(broker, "ada") as ada:
            token = create(ada)
        broker.restart()
        with with_token(broker, token) as client:
            assert client.call(m.MetadataRequest(topics=[]), 12).brokers
        assert broker.data_dir is not None
        for proof in (bytes(token.hmac), base64.b64encode(token.hmac), SECRET.encode()):
            assert not [
                path for path in Path(broker.data_dir).rglob("*") if path.is_file() and proof in path.read_bytes()
            ]


class TestChangingThem:
    def test_owners_and_renewers_renew_and_end_them_and_nobody_else_does(self, broker: Broker) -> None:
        with logged_in(broker, "ada") as ada, logged_in(broker, "bob") as bob, logged_in(broker, "admin") as admin:
            own, shared = create(ada), create(ada, "bob")
            assert renew(bob, own).error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
            assert expire(bob, own).error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
            broker.clock.advance(hours=1)
            later = renew(bob, shared)
            assert later.error_code == 0
            assert later.expiry_timestamp_ms - shared.expiry_timestamp_ms == pytest.approx(HOUR_MS, abs=60_000)
            sooner = expire(ada, own, 1000)
            assert sooner.error_code == 0 and sooner.expiry_timestamp_ms < own.expiry_timestamp_ms
            assert expire(bob, shared).error_code == 0
            assert renew(ada, shared).error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
            broker.clock.advance(seconds=2)
            assert renew(ada, own).error_code == ErrorCode.DELEGATION_TOKEN_EXPIRED
            assert described(admin) == []
            broker.clock.advance(hours=1)
            assert create(ada).error_code == 0  # and by now the old one is removed, or will be

    def test_no_renewal_goes_beyond_the_end(self, broker: Broker) -> None:
        with logged_in(broker, "ada") as ada:
            token = create(ada, lifetime_ms=2 * HOUR_MS)
            assert token.max_timestamp_ms - token.issue_timestamp_ms == 2 * HOUR_MS
            assert token.expiry_timestamp_ms == token.max_timestamp_ms
            broker.clock.advance(hours=1)
            assert renew(ada, token, 24 * HOUR_MS).expiry_timestamp_ms == token.max_timestamp_ms

    def test_tokens_of_others_are_made_and_seen_by_those_who_may(self, broker: Broker) -> None:
        with logged_in(broker, "ada") as ada, logged_in(broker, "bob") as bob, logged_in(broker, "admin") as admin:
            assert create(bob, owner="ada").error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
            made = create(admin, owner="ada")
            assert (made.principal_name, made.token_requester_principal_name) == ("ada", "admin")
            with with_token(broker, made):
                assert "User:ada" in principal(broker)
            own = create(bob)
            assert {one.token_id for one in described(ada)} == {made.token_id}
            assert {one.token_id for one in described(bob)} == {own.token_id}
            assert {one.token_id for one in described(admin)} == {made.token_id, own.token_id}
            assert {one.token_id for one in described(admin, "bob")} == {own.token_id}
            assert described(bob, "ada") == []
            (seen,) = described(ada)
            assert seen.hmac == made.hmac

    def test_what_cannot_be_is_refused(self, broker: Broker) -> None:
        with logged_in(broker, "ada") as ada:
            renewer = m.CreateDelegationTokenRequest.CreatableRenewers(principal_type="Group", principal_name="g")
            answer = ada.call(m.CreateDelegationTokenRequest(renewers=[renewer], max_lifetime_ms=-1), 2)
            assert answer.error_code == ErrorCode.INVALID_PRINCIPAL_TYPE
            unknown = m.RenewDelegationTokenRequest(hmac=bytes(64), renew_period_ms=-1)
            assert ada.call(unknown, 1).error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND

    def test_nobody_gets_one_without_a_name(self) -> None:
        with Broker({"delegation.token.secret.key": SECRET}) as plain, RawClient.to(plain.bootstrap_servers) as client:
            assert create(client).error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED

    def test_without_a_secret_there_are_none(self) -> None:
        with secured(**{"delegation.token.secret.key": ""}) as broker, logged_in(broker, "ada") as ada:
            assert create(ada).error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
            answer = ada.call(m.DescribeDelegationTokenRequest(owners=None), 3)
            assert answer.error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
            with RawClient.to(broker.bootstrap_servers) as client:
                assert log_in(client, "x", "y", extensions=",tokenauth=true").error_code
                with pytest.raises((ConnectionClosed, OSError)):
                    client.call(m.MetadataRequest(topics=[]), 12)


MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule required"


@pytest.mark.jvm
def test_kafkas_own_tool_makes_tokens_and_its_clients_log_in_with_them(broker: Broker, tmp_path: Path) -> None:
    libs = require_kafka_libs()

    def run(main: str, login: str, *arguments: str) -> str:
        settings = tmp_path / "client.properties"
        settings.write_text(
            f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\nsasl.jaas.config={MODULE} {login};\n"
        )
        command = [*quick_java(), "-cp", class_path(libs), main, "--bootstrap-server", broker.bootstrap_servers]
        outcome = subprocess.run(
            [*command, "--command-config", str(settings), *arguments], capture_output=True, text=True, timeout=120
        )
        assert outcome.returncode == 0, outcome.stdout + outcome.stderr
        return outcome.stdout

    admin = 'username="admin" password="secret"'
    tool = "org.apache.kafka.tools.DelegationTokenCommand"
    made = run(tool, admin, "--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob")
    found = re.search(r"(\S{22})\s+(\S{80,})\s+User:admin", made)
    assert found, made
    token_id, proof = found[1], found[2]
    by_token = f'username="{token_id}" password="{proof}" tokenauth="true"'
    topics = "org.apache.kafka.tools.TopicCommand"
    run(topics, by_token, "--create", "--topic", "made-with-a-token")
    assert "made-with-a-token" in run(topics, by_token, "--list")
    assert token_id in run(tool, admin, "--describe", "--owner-principal", "User:admin")
    assert "Completed renew" in run(tool, admin, "--renew", "--renew-time-period", "-1", "--hmac", proof)
    assert "Completed expire" in run(tool, admin, "--expire", "--expiry-time-period", "-1", "--hmac", proof)
    assert token_id not in run(tool, admin, "--describe")
