"""The audit trail: a line for each thing that matters, in a file of its own, and no secret there or anywhere else."""

from __future__ import annotations

import json
import logging
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.common.errors import OttlaError
from ottla.protocol import messages as m
from ottla.testing import Broker
from tests.security.test_acls import AUTHORIZER
from tests.support.quotas import set_quota
from tests.support.raw_client import RawClient
from tests.support.scram_login import log_in

# Planted wherever a secret can be; none of them may come out anywhere.
PLANTED = "planted-"
PLAIN = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'user_admin="{PLANTED}plain" user_ada="{PLANTED}ada";'
)


@pytest.fixture
def trail(tmp_path: Path) -> Path:
    return tmp_path / "audit" / "audit.log"


@pytest.fixture
def broker(trail: Path, caplog: pytest.LogCaptureFixture) -> Iterator[Broker]:
    caplog.set_level(logging.DEBUG)
    properties = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": PLAIN,
        "sasl.jaas.config": PLAIN,
        "ottla.first.users": f"SCRAM-SHA-256=[name=bob,password={PLANTED}scram]",
        "delegation.token.secret.key": f"{PLANTED}token",
        "ssl.key.password": f"{PLANTED}key",
        "connection.failed.authentication.delay.ms": "0",
        "authorizer.class.name": AUTHORIZER,
        "super.users": "User:admin",
        "ottla.audit.log.file": str(trail),
    }
    with Broker(properties) as running:
        yield running


def lines(trail: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in trail.read_text().splitlines()]


def plain(broker: Broker, user: str, password: str) -> RawClient:
    client = RawClient.to(broker.bootstrap_servers)
    client.call(m.SaslHandshakeRequest(mechanism="PLAIN"), 1)
    client.call(m.SaslAuthenticateRequest(auth_bytes=f"\0{user}\0{password}".encode()), 2)
    return client


def alter_config(client: RawClient, name: str, value: str) -> Any:
    one = m.IncrementalAlterConfigsRequest
    resource = one.AlterConfigsResource(
        resource_type=4, resource_name="1", configs=[one.AlterableConfig(name=name, config_operation=0, value=value)]
    )
    return client.call(one(resources=[resource]), 1)


def exercise(broker: Broker) -> list[bytes]:
    """All that leaves a line; what was answered that is a secret of its client."""
    with plain(broker, "admin", f"{PLANTED}plain") as admin:
        topic = m.CreateTopicsRequest.CreatableTopic(name="orders", num_partitions=1, replication_factor=1)
        admin.call(m.CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7)
        acl = m.CreateAclsRequest.AclCreation(
            resource_type=2, resource_name="orders", principal="User:eve", host="*", operation=3, permission_type=3
        )
        admin.call(m.CreateAclsRequest(creations=[acl]), 3)
        set_quota(admin, {"user": "eve"}, producer_byte_rate=1000)
        user = m.AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
            name="eve", mechanism=1, iterations=4096, salt=b"salty", salted_password=f"{PLANTED}salted".encode()
        )
        admin.call(m.AlterUserScramCredentialsRequest(upsertions=[user]), 0)
        token = admin.call(m.CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=-1), 3)
        assert token.error_code == 0
        for name in ("ssl.key.password", "sasl.jaas.config", "listener.name.sasl_plaintext.ssl.key.password"):
            alter_config(admin, name, f"{PLANTED}altered")
        alter_config(admin, "log.cleaner.threads", "1")
    with plain(broker, "ada", f"{PLANTED}ada") as ada:
        ada.call(m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name="orders")]), 12)
    plain(broker, "ada", f"{PLANTED}wrong").close()
    with RawClient.to(broker.bootstrap_servers) as bob:
        assert log_in(bob, "bob", f"{PLANTED}scram").error_code == 0
    with RawClient.to(broker.bootstrap_servers) as nobody:
        assert log_in(nobody, "bob", f"{PLANTED}guess").error_code
    with RawClient.to(broker.bootstrap_servers) as early:
        early.send(m.MetadataRequest(topics=[]), 12)
        assert early.is_closed_by_peer()
    return [bytes(token.hmac)]


def test_each_thing_that_matters_leaves_one_line(broker: Broker, trail: Path) -> None:
    exercise(broker)
    found = lines(trail)
    facts = {(line["event"], line["principal"], line["result"]) for line in found}
    assert facts >= {
        ("login", "User:admin", "success"),
        ("login", "User:ada", "success"),
        ("login", "User:bob", "success"),
        ("login refused", "(unknown)", "failure"),
        ("denied", "User:ada", "denied"),
        ("topic created", "User:admin", "success"),
        ("settings changed", "User:admin", "success"),
        ("ACL created", "User:admin", "success"),
        ("quota changed", "User:admin", "success"),
        ("user changed", "User:admin", "success"),
        ("token created", "User:admin", "success"),
    }
    assert {line["client"] for line in found} == {"127.0.0.1"} and all("time" in line for line in found)
    refused = [line for line in found if line["event"] == "login refused"]
    said = [(line.get("mechanism"), line.get("user")) for line in refused]
    assert said == [("PLAIN", "ada"), ("SCRAM-SHA-256", "bob"), (None, None)]
    (changed,) = [line for line in found if line["event"] == "quota changed"]
    assert (changed["for_user"], changed["limits"]) == ("eve", "producer_byte_rate=1000")
    assert stat.S_IMODE(trail.stat().st_mode) == 0o600


def test_who_logs_in_again_as_somebody_else_is_told_by_both_names(broker: Broker, trail: Path) -> None:
    with plain(broker, "admin", f"{PLANTED}plain") as client:
        for user in ("admin", "ada"):
            client.call(m.SaslHandshakeRequest(mechanism="PLAIN"), 1)
            password = f"{PLANTED}{'plain' if user == 'admin' else user}"
            client.call(m.SaslAuthenticateRequest(auth_bytes=f"\0{user}\0{password}".encode()), 2)
    told = [(line["event"], line["principal"], line.get("user")) for line in lines(trail)]
    assert told == [
        ("login", "User:admin", None),
        ("login again", "User:admin", None),
        ("login refused", "User:admin", "ada"),
    ]


def test_names_of_a_clients_choice_do_not_fill_the_file(broker: Broker, trail: Path) -> None:
    with plain(broker, "ada", f"{PLANTED}ada") as ada:
        for number in range(3):
            ada.call(m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g" * 30_000 + str(number)]), 4)
    plain(broker, "u" * 30_000, "guess").close()
    denied = [line for line in lines(trail) if line["event"] == "denied"]
    (refused,) = [line for line in lines(trail) if line["event"] == "login refused"]
    assert len(denied) == 1 and len(denied[0]["resource"]) < 300
    assert refused["user"] == "u" * 256


def test_no_secret_comes_out_anywhere(
    broker: Broker, trail: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    secrets = exercise(broker)
    with plain(broker, "admin", f"{PLANTED}plain") as admin:
        one = m.DescribeConfigsRequest
        resources = [
            one.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
            for kind, name in ((4, "1"), (4, ""), (2, "orders"), (8, "1"))
        ]
        described = admin.call(one(resources=resources, include_synonyms=True, include_documentation=True), 4)
        (users,) = [admin.call(m.DescribeUserScramCredentialsRequest(users=None), 0)]
    formatted = "\n".join(f"{record.__dict__}" for record in caplog.records)
    out, err = capfd.readouterr()
    outputs = {
        "audit file": trail.read_text(),
        "log": formatted,
        "stdout": out,
        "stderr": err,
        "DescribeConfigs": repr(described),
        "DescribeUserScramCredentials": repr(users),
    }
    names = {entry.name for result in described.results for entry in result.configs}
    assert {"sasl.jaas.config", "delegation.token.secret.key", "ottla.first.users"} <= names, "told, without a value"
    assert "settings changed" in outputs["audit file"] and "settings changed" in formatted
    for where, text in outputs.items():
        assert PLANTED not in text, where
        for secret in secrets:
            assert repr(secret)[2:-1] not in text and secret.hex() not in text, where


def test_the_file_is_rotated(tmp_path: Path) -> None:
    trail = tmp_path / "audit.log"
    properties = {
        "ottla.audit.log.file": str(trail),
        "ottla.audit.log.max.bytes": "2048",
        "ottla.audit.log.backups": "2",
    }
    with Broker(properties) as broker, RawClient.to(broker.bootstrap_servers) as client:
        for number in range(60):
            set_quota(client, {"user": f"user-{number}"}, producer_byte_rate=1000)
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["audit.log", "audit.log.1", "audit.log.2"]
    kept = [line["for_user"] for name in reversed(files) for line in lines(tmp_path / name)]
    assert kept == [f"user-{number}" for number in range(60 - len(kept), 60)]
    assert all(path.stat().st_size <= 2048 for path in tmp_path.iterdir())


def test_a_file_that_cannot_be_opened_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OttlaError, match=r"The audit file .* cannot be opened"):
        Broker({"ottla.audit.log.file": str(tmp_path / "file" / "audit.log")}).start()
