"""ACLs on the wire: what real clients may do, and how soon it changes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from ottla.broker.access.rules import RULES
from ottla.broker.apis import APIS
from ottla.common.errors import ErrorCode
from ottla.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    DescribeAclsRequest,
    FindCoordinatorRequest,
    MetadataRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from ottla.testing import Broker
from tests.support.group_members import eventually
from tests.support.raw_client import RawClient, batch_of, fetch_request

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
USERS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'user_admin="secret" user_ada="secret" user_bob="secret";'
)


def secured(**more: str) -> Broker:
    return Broker(
        {
            "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": USERS,
            "authorizer.class.name": AUTHORIZER,
            "super.users": "User:admin",
            **more,
        }
    )


@pytest.fixture
def broker() -> Iterator[Broker]:
    with secured() as running:
        yield running


def settings(broker: Broker, user: str, **more: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": broker.bootstrap_servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": "secret",
        "log_level": 0,
        **more,
    }


@pytest.fixture
def admin(broker: Broker) -> AdminClient:
    client = AdminClient(settings(broker, "admin"))
    client.create_topics([NewTopic("orders", 1), NewTopic("other", 1)])["orders"].result(30)
    return client


def logged_in(broker: Broker, user: str) -> RawClient:
    client = RawClient.to(broker.bootstrap_servers)
    client.call(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    assert client.call(SaslAuthenticateRequest(auth_bytes=f"\0{user}\0secret".encode()), 2).error_code == 0
    return client


def acl(
    operation: AclOperation,
    name: str = "orders",
    kind: ResourceType = ResourceType.TOPIC,
    *,
    user: str = "ada",
    permission: AclPermissionType = AclPermissionType.ALLOW,
    pattern: ResourcePatternType = ResourcePatternType.LITERAL,
) -> AclBinding:
    return AclBinding(kind, name, pattern, f"User:{user}", "*", operation, permission)


def create(admin: AdminClient, *acls: AclBinding) -> None:
    for future in admin.create_acls(list(acls)).values():
        future.result(30)


ANY = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
)


def produced(producer: Producer, topic: str = "orders") -> KafkaError | None:
    outcome: list[KafkaError | None] = []
    producer.produce(topic, b"x", on_delivery=lambda error, _: outcome.append(error))
    producer.flush(30)
    return outcome[0] if outcome else KafkaError(KafkaError._TIMED_OUT)


def test_every_api_has_its_rules() -> None:
    assert set(RULES) == {api.name for api in APIS.values()}


def test_a_producer_may_write_where_an_acl_says_so(broker: Broker, admin: AdminClient) -> None:
    refused = produced(Producer(settings(broker, "ada", **{"enable.idempotence": False})))
    assert refused is not None and refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    create(admin, acl(AclOperation.WRITE))
    producer = Producer(settings(broker, "ada", **{"enable.idempotence": True}))
    assert produced(producer) is None
    other = produced(producer, "other")
    assert other is not None and other.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_a_consumer_needs_its_group_and_its_topic(broker: Broker, admin: AdminClient) -> None:
    assert produced(Producer(settings(broker, "admin"))) is None
    more = {"group.id": "readers", "auto.offset.reset": "earliest"}

    def read() -> bytes | KafkaError:
        consumer = Consumer(settings(broker, "ada", **more))
        consumer.subscribe(["orders"])
        try:
            while True:
                message = consumer.poll(30)
                assert message is not None
                error = message.error()
                if error is None:
                    consumer.commit(message, asynchronous=False)
                    return message.value() or b""
                return error
        finally:
            with contextlib.suppress(KafkaException):
                consumer.close()

    refused = read()
    assert isinstance(refused, KafkaError)
    create(admin, acl(AclOperation.READ))
    refused = read()
    assert isinstance(refused, KafkaError) and refused.code() == KafkaError.GROUP_AUTHORIZATION_FAILED
    create(admin, acl(AclOperation.READ, "read", ResourceType.GROUP, pattern=ResourcePatternType.PREFIXED))
    assert read() == b"x"


def test_what_was_allowed_a_moment_ago_is_denied_when_an_acl_says_so(broker: Broker, admin: AdminClient) -> None:
    """Nor does the shortcut for requests like the last one remember it (test_remembered_decisions.py)."""
    create(admin, acl(AclOperation.WRITE), acl(AclOperation.READ))
    with logged_in(broker, "ada") as client, logged_in(broker, "bob") as other:
        for _ in range(3):
            assert client.produce("orders", batch_of(b"x")).error_code == 0
            assert other.produce("orders", batch_of(b"x")).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        denial = acl(AclOperation.WRITE, permission=AclPermissionType.DENY)
        create(admin, denial)
        assert client.produce("orders", batch_of(b"x")).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert client.fetch("orders", 0).error_code == 0, "to read is still allowed"
        for future in admin.delete_acls([ANY]).values():
            assert set(future.result(30)) == {denial, acl(AclOperation.WRITE), acl(AclOperation.READ)}
        assert client.fetch("orders", 0).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_a_session_does_not_outlive_its_permission(broker: Broker, admin: AdminClient) -> None:
    create(admin, acl(AclOperation.READ))
    with logged_in(broker, "ada") as client:
        first = client.call(fetch_request([("orders", 0, 0)], session_epoch=0, max_wait_ms=0), 12)
        assert first.error_code == 0 and first.session_id
        for future in admin.delete_acls([ANY]).values():
            future.result(30)
        again = client.call(fetch_request([], session_id=first.session_id, session_epoch=1, max_wait_ms=0), 12)
        ((line,),) = [topic.partitions for topic in again.responses]
        assert line.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_a_fetch_that_waits_does_not_bring_what_was_written_after_its_permission_ended(
    broker: Broker, admin: AdminClient
) -> None:
    """Kafka asks when the request comes and not again; here the authorizer is asked at each look at the log."""
    create(admin, acl(AclOperation.READ))
    with logged_in(broker, "ada") as client, logged_in(broker, "admin") as writer:
        client.send(fetch_request([("orders", 0, 0)], max_wait_ms=60_000, min_bytes=1), 12)
        parked = broker.server.broker.parked_fetches
        eventually(lambda: parked, lambda: "the fetch does not wait")
        for future in admin.delete_acls([ANY]).values():
            assert future.result(30)
        assert writer.produce("orders", batch_of(b"x")).error_code == 0
        ((line,),) = [topic.partitions for topic in client.receive("FetchRequest", 12).responses]
        assert line.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED and not line.records


def test_nobody_poses_as_a_replica(broker: Broker, admin: AdminClient) -> None:
    create(admin, acl(AclOperation.READ))
    with logged_in(broker, "ada") as client:
        answer = client.call(fetch_request([("orders", 0, 0)], replica_id=2), 12)
        codes = {answer.error_code} | {line.error_code for topic in answer.responses for line in topic.partitions}
        assert codes & {ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED}


def test_a_subscription_by_regular_expression_finds_what_may_be_described(broker: Broker, admin: AdminClient) -> None:
    create(admin, acl(AclOperation.READ, "g", ResourceType.GROUP), acl(AclOperation.DESCRIBE))
    name = MetadataRequest.MetadataRequestTopic(name="orders")

    def found(user: str, group: str) -> set[bytes]:
        join = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_regex="o.*",
            topic_partitions=[],
        )
        with logged_in(broker, user) as client:
            client.call(FindCoordinatorRequest(key_type=0, coordinator_keys=[group]), 4)  # makes the topic of offsets
            answers: list[Any] = []

            def joined() -> bool:
                answers.append(client.call(join, 1))
                return answers[-1].error_code == 0

            eventually(joined, lambda: answers[-1])
            answer = answers[-1]
        return {bytes(one.topic_id) for one in answer.assignment.topic_partitions}

    with logged_in(broker, "ada") as ada:
        (orders,) = ada.call(MetadataRequest(topics=[name]), 12).topics
    assert found("ada", "g") == {bytes(orders.topic_id)}
    assert len(found("admin", "another")) == 2


def test_topics_that_may_not_be_described_are_not_there(broker: Broker, admin: AdminClient) -> None:
    create(admin, acl(AclOperation.DESCRIBE), acl(AclOperation.ALTER_CONFIGS))
    with logged_in(broker, "ada") as client:
        everything = client.call(MetadataRequest(topics=None, include_topic_authorized_operations=True), 12)
        assert [topic.name for topic in everything.topics] == ["orders"]
        assert everything.topics[0].topic_authorized_operations == 1 << 8 | 1 << 10 | 1 << 11
        one = MetadataRequest.MetadataRequestTopic
        asked = [one(name=name) for name in ("orders", "other", "nothing-there")]
        named = client.call(MetadataRequest(topics=asked, allow_auto_topic_creation=True), 12)
        codes = {topic.name: topic.error_code for topic in named.topics}
        denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert codes == {"orders": 0, "other": denied, "nothing-there": denied}
    assert "nothing-there" not in admin.list_topics(timeout=30).topics


def test_acls_survive_a_restart_and_are_told_by_resource(broker: Broker, admin: AdminClient) -> None:
    mine = [
        acl(AclOperation.WRITE),
        acl(AclOperation.READ, "*"),
        acl(AclOperation.ALL, "app", ResourceType.GROUP, pattern=ResourcePatternType.PREFIXED),
        acl(AclOperation.ALTER, "kafka-cluster", ResourceType.BROKER, user="bob", permission=AclPermissionType.DENY),
    ]
    create(admin, *mine)
    create(admin, mine[0])  # once more changes nothing
    broker.restart()
    again = AdminClient(settings(broker, "admin"))  # held: what a client that is gone was asked is never answered
    assert sorted(map(str, again.describe_acls(ANY).result(30))) == sorted(map(str, mine))


def test_only_those_who_may_change_the_cluster_change_acls(broker: Broker, admin: AdminClient) -> None:
    create(admin, acl(AclOperation.WRITE))
    ada = AdminClient(settings(broker, "ada"))
    with pytest.raises(KafkaException) as caught:
        create(ada, acl(AclOperation.ALL))
    assert caught.value.args[0].code() == KafkaError.CLUSTER_AUTHORIZATION_FAILED
    assert _described_by(broker, "ada") == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, 0)
    assert _described_by(broker, "admin") == (ErrorCode.NONE, 1)


def _described_by(broker: Broker, user: str) -> tuple[int, int]:
    """The error, and of how many resources. confluent-kafka does not tell a refused answer from an empty one."""
    host, _, port = broker.bootstrap_servers.rpartition(":")
    with contextlib.closing(RawClient(host, int(port))) as client:
        assert not client.call(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code
        assert not client.call(SaslAuthenticateRequest(auth_bytes=f"\0{user}\0secret".encode()), 1).error_code
        everything = DescribeAclsRequest(
            resource_type_filter=ResourceType.ANY.value,
            resource_name_filter=None,
            pattern_type_filter=ResourcePatternType.ANY.value,
            principal_filter=None,
            host_filter=None,
            operation=AclOperation.ANY.value,
            permission_type=AclPermissionType.ANY.value,
        )
        answer = client.call(everything, 2)
        return answer.error_code, len(answer.resources)


def test_an_acl_that_makes_no_sense_is_refused_with_a_sentence(admin: AdminClient) -> None:
    with pytest.raises(KafkaException) as caught:
        create(admin, acl(AclOperation.CLUSTER_ACTION))
    assert "Invalid operation CLUSTER_ACTION for a resource of type TOPIC" in str(caught.value)


def test_without_acls_everybody_may_where_so_configured() -> None:
    with secured(**{"allow.everyone.if.no.acl.found": "true"}) as broker:
        assert produced(Producer(settings(broker, "ada")), "anything") is None
