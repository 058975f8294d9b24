"""A producer's requests that are like those before them are not asked about again: until an ACL changes, and only for
who was asked about, from where, and what exactly. Whatever changes has its effect on the very next request."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AclBindingFilter, AclOperation, AclPermissionType, AdminClient, NewTopic, ResourceType

from ottla.broker.access import access as access_module
from ottla.broker.access.access import Access
from ottla.common.config import BrokerConfig
from ottla.common.errors import ErrorCode
from ottla.protocol.messages import (
    InitProducerIdRequest,
    MetadataRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from ottla.security.authorizer import Authorizer
from ottla.testing import Broker
from tests.security.test_acls import ANY, acl, create, logged_in, secured, settings
from tests.support.raw_client import RawClient, batch_of, produce_request

ALLOWED, DENIED = ErrorCode.NONE, ErrorCode.TOPIC_AUTHORIZATION_FAILED
DENY = AclPermissionType.DENY
# The first of them is read field by field, the others are known by their first bytes.
ENOUGH = 3


@pytest.fixture
def broker() -> Iterator[Broker]:
    with secured() as running:
        yield running


@pytest.fixture
def admin(broker: Broker) -> AdminClient:
    client = AdminClient(settings(broker, "admin"))
    _make(client)
    return client


def _make(admin: AdminClient) -> None:
    admin.create_topics([NewTopic("orders", 1)])["orders"].result(30)


def _forget(admin: AdminClient, which: AclBindingFilter = ANY) -> None:
    for future in admin.delete_acls([which]).values():
        assert future.result(30)


def _access(broker: Broker) -> Access:
    found = broker.server.broker.access
    assert found is not None
    return found


def _codes(client: RawClient, topic: str | bytes = "orders", *, transaction: str | None = None) -> set[int]:
    """Of several requests that differ in nothing."""
    version = 13 if isinstance(topic, bytes) else 12
    codes = set()
    for _ in range(ENOUGH):
        request = produce_request(topic, batch_of(b"x"))
        request.transactional_id = transaction
        ((line,),) = [one.partition_responses for one in client.call(request, version).responses]
        codes.add(line.error_code)
    return codes


def _id_of(client: RawClient) -> bytes:
    (topic,) = client.call(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="orders")]), 12).topics
    return bytes(topic.topic_id)


def test_a_known_request_is_asked_about_once(
    broker: Broker, admin: AdminClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(admin, acl(AclOperation.WRITE))
    asked: list[str] = []
    allows = Authorizer.allows

    def counting(self: Authorizer, principal: str, *question: object) -> bool:
        asked.append(principal)
        return allows(self, principal, *question)  # type: ignore[arg-type]

    with logged_in(broker, "ada") as client:
        assert _codes(client) == {ALLOWED}
        monkeypatch.setattr(Authorizer, "allows", counting)
        for _ in range(10):
            assert _codes(client) == {ALLOWED}
        assert "User:ada" not in asked
        create(admin, acl(AclOperation.READ, "another"))
        assert _codes(client) == {ALLOWED}
        assert asked.count("User:ada") == 1


def test_an_acl_that_goes_and_a_denial_that_comes_count_for_the_next_request(
    broker: Broker, admin: AdminClient
) -> None:
    with logged_in(broker, "ada") as client:
        for _ in range(2):
            assert _codes(client) == {DENIED}
            create(admin, acl(AclOperation.WRITE))
            assert _codes(client) == {ALLOWED}
            assert _access(broker).writers
            create(admin, acl(AclOperation.WRITE, permission=DENY))
            assert _codes(client) == {DENIED}
            refusal = AclBindingFilter(
                ResourceType.TOPIC, "orders", ANY.resource_pattern_type, None, None, AclOperation.ANY, DENY
            )
            _forget(admin, refusal)
            assert _codes(client) == {ALLOWED}
            _forget(admin)


def test_a_denial_of_everybody_everywhere_counts_as_well(broker: Broker, admin: AdminClient) -> None:
    create(admin, acl(AclOperation.WRITE))
    with logged_in(broker, "ada") as client:
        assert _codes(client) == {ALLOWED}
        create(admin, acl(AclOperation.ALL, "*", user="*", permission=DENY))
        assert _codes(client) == {DENIED}


def test_what_is_remembered_of_one_user_does_not_let_another_in(broker: Broker, admin: AdminClient) -> None:
    """Their requests do not differ in a byte."""
    create(admin, acl(AclOperation.WRITE))
    with logged_in(broker, "ada") as ada, logged_in(broker, "bob") as bob, logged_in(broker, "admin") as boss:
        for _ in range(2):
            assert [_codes(one) for one in (ada, bob, boss)] == [{ALLOWED}, {DENIED}, {ALLOWED}]


def test_what_is_remembered_of_one_address_does_not_let_another_in(broker: Broker, admin: AdminClient) -> None:
    binding = acl(AclOperation.WRITE)
    binding.host = "127.0.0.1"
    create(admin, binding)
    host, _, port = broker.bootstrap_servers.rpartition(":")
    with logged_in(broker, "ada") as near, RawClient.to(broker.bootstrap_servers) as far:
        assert _codes(near) == {ALLOWED}
        far.close()
        far.sock = socket.create_connection((host, int(port)), 30, source_address=("127.0.0.2", 0))
        _log_in(far, "ada")
        assert (_codes(far), _codes(near)) == ({DENIED}, {ALLOWED})


def _log_in(client: RawClient, user: str) -> int:
    client.call(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    answer = client.call(SaslAuthenticateRequest(auth_bytes=f"\0{user}\0secret".encode()), 2)
    return int(answer.error_code)


def test_nobody_goes_on_as_somebody_else_on_the_same_connection(broker: Broker, admin: AdminClient) -> None:
    create(admin, acl(AclOperation.WRITE))
    with logged_in(broker, "ada") as client, logged_in(broker, "bob") as bob:
        assert _codes(client) == {ALLOWED}
        assert _log_in(client, "ada") == ErrorCode.NONE
        assert _codes(client) == {ALLOWED}
        create(admin, acl(AclOperation.WRITE, permission=DENY), acl(AclOperation.WRITE, user="bob"))
        assert _log_in(client, "ada") == ErrorCode.NONE
        assert (_codes(client), _codes(bob)) == ({DENIED}, {ALLOWED})
        assert _log_in(client, "bob") == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert client.is_closed_by_peer()


def test_a_topic_that_is_made_anew_is_asked_about_anew(broker: Broker, admin: AdminClient) -> None:
    create(admin, acl(AclOperation.WRITE))
    with logged_in(broker, "ada") as client, logged_in(broker, "admin") as boss:
        first = _id_of(boss)
        assert _codes(client, first) == _codes(client) == {ALLOWED}
        admin.delete_topics(["orders"])["orders"].result(30)
        assert _codes(client, first) == {ErrorCode.UNKNOWN_TOPIC_ID}
        assert _codes(client) == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        _make(admin)
        second = _id_of(boss)
        assert _codes(client, first) == {ErrorCode.UNKNOWN_TOPIC_ID}
        assert _codes(client, second) == _codes(client) == {ALLOWED}
        admin.delete_topics(["orders"])["orders"].result(30)
        _forget(admin)
        _make(admin)
        assert _codes(client, second) == {ErrorCode.UNKNOWN_TOPIC_ID}
        assert _codes(client, _id_of(boss)) == _codes(client) == {DENIED}
        assert boss.read_all("orders") == []


def test_the_right_to_a_transactional_id_is_remembered_with_it(broker: Broker, admin: AdminClient) -> None:
    denied = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    create(admin, acl(AclOperation.WRITE), acl(AclOperation.WRITE, "mine", ResourceType.TRANSACTIONAL_ID))
    with logged_in(broker, "ada") as client:
        assert _codes(client) == _codes(client, transaction="mine") == {ALLOWED}
        assert _codes(client, transaction="not1") == {denied}
        create(admin, acl(AclOperation.WRITE, "mine", ResourceType.TRANSACTIONAL_ID, permission=DENY))
        assert (_codes(client, transaction="mine"), _codes(client)) == ({denied}, {ALLOWED})
        _forget(admin)
        create(admin, acl(AclOperation.WRITE, "mine", ResourceType.TRANSACTIONAL_ID))
        assert _codes(client, transaction="mine") == _codes(client) == {DENIED}


def test_a_producer_with_an_id_of_its_own_needs_its_topic_all_the_same(broker: Broker, admin: AdminClient) -> None:
    """To be given a producer id is one thing: the cluster's IdempotentWrite, or any topic to write to (KIP-679)."""
    ask = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    create(
        admin,
        acl(AclOperation.IDEMPOTENT_WRITE, "kafka-cluster", ResourceType.BROKER),
        acl(AclOperation.WRITE),
    )
    with logged_in(broker, "ada") as client:
        given = client.call(ask, 4)
        assert given.error_code == 0
        sequence = iter(range(100))

        def written() -> int:
            batch = batch_of(
                b"x", producer_id=given.producer_id, producer_epoch=given.producer_epoch, base_sequence=next(sequence)
            )
            return int(client.produce("orders", batch).error_code)

        assert [written() for _ in range(ENOUGH)] == [ALLOWED] * ENOUGH
        _forget(
            admin,
            AclBindingFilter(
                ResourceType.TOPIC,
                "orders",
                ANY.resource_pattern_type,
                None,
                None,
                AclOperation.ANY,
                ANY.permission_type,
            ),
        )
        assert client.call(ask, 4).error_code == 0, "IdempotentWrite is left"
        assert [written() for _ in range(ENOUGH)] == [DENIED] * ENOUGH
        _forget(admin)
        assert client.call(ask, 4).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_what_is_remembered_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_module, "_WRITERS_MAX", 10)
    access = Access(BrokerConfig({}))
    for number in range(1_000):
        access.remember_writer(number, "User:ada", "127.0.0.1")
        assert (number, "User:ada", "127.0.0.1") in access.writers
        assert len(access.writers) <= 10
