"""A cluster in which brokers prove to each other, to ZooKeeper and to clients who they are, and talk over TLS only."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError

from ottla.client.access.security_settings import parse_security
from ottla.client.connection import BrokerConnection
from ottla.common.errors import ErrorCode
from ottla.protocol.messages import AlterPartitionRequest, EnvelopeRequest, FetchRequest
from tests.support.secured_trio import ZOOKEEPER_LOGIN, SecuredTrio
from tests.support.trio import require


@pytest.fixture(
    scope="module",
    params=[
        "SCRAM-SHA-512",
        pytest.param("PLAIN", marks=pytest.mark.slow),
        pytest.param("SSL", marks=pytest.mark.slow),
    ],
)
def trio(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredTrio]:
    require(SecuredTrio)
    # Shorter than the tests: brokers have to log in again meanwhile.
    with SecuredTrio(tmp_path_factory.mktemp("secured"), request.param, {"connections.max.reauth.ms": "3000"}) as made:
        yield made


@pytest.fixture(scope="module")
def ada(trio: SecuredTrio) -> dict[str, str]:
    """Somebody who may log in, and nothing else."""
    user = UserScramCredentialUpsertion("ada", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), b"secret")
    admin = trio.admin()
    admin.alter_user_scram_credentials([user])["ada"].result(30)
    return trio.settings_of("ada", "secret")


def values(trio: SecuredTrio, topic: str, count: int) -> list[bytes]:
    reading = {"group.id": f"readers-of-{topic}", "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": trio.bootstrap, **trio.client_settings, **reading})
    consumer.subscribe([topic])
    found: list[bytes] = []
    deadline = time.monotonic() + 60
    while len(found) < count:
        assert time.monotonic() < deadline, (found, trio.logs())
        message = consumer.poll(0.5)
        if message is not None and message.error() is None:
            found.append(message.value() or b"")
    consumer.commit(asynchronous=False)
    consumer.close()
    return found


def test_records_and_transactions_outlive_a_leader(trio: SecuredTrio) -> None:
    """Three replicas, markers to other brokers, offsets of a group, a coordinator or leader that is killed."""
    topic = trio.create("orders", 3)
    producer = Producer({"bootstrap.servers": trio.bootstrap, **trio.client_settings, "transactional.id": "till"})
    group = Consumer({"bootstrap.servers": trio.bootstrap, **trio.client_settings, "group.id": "till"})
    producer.init_transactions(60)
    sent: list[bytes] = []

    def transact(values: list[bytes], *, commits: bool = True) -> None:
        producer.begin_transaction()
        for number, value in enumerate(values):
            producer.produce(topic, value, partition=number % 3)
        offsets = [TopicPartition(topic, 0, len(sent))]
        producer.send_offsets_to_transaction(offsets, group.consumer_group_metadata(), 60)
        if commits:
            producer.commit_transaction(60)
            sent.extend(values)
        else:
            producer.abort_transaction(60)

    transact([b"%d" % number for number in range(30)])
    transact([b"aborted"] * 3, commits=False)
    trio.nodes[trio.leader(topic)].kill()
    transact([b"%d" % number for number in range(30, 60)])
    assert sorted(values(trio, topic, 60)) == sorted(sent)
    (committed,) = group.committed([TopicPartition(topic, 0)], 30)
    assert committed.offset == 30
    group.close()
    trio.make_whole()


@pytest.mark.slow
def test_sessions_of_brokers_are_prolonged(trio: SecuredTrio) -> None:
    """Replication goes on over the same connections: nobody was thrown out when a session ended."""
    topic = trio.create("long", 1)
    producer = Producer({"bootstrap.servers": trio.bootstrap, **trio.client_settings, "acks": "all"})
    until = time.monotonic() + 8
    while time.monotonic() < until:
        producer.produce(topic, b"on")
        assert producer.flush(30) == 0
    for node in trio.nodes.values():
        assert not [line for line in node.log_tail(10_000).splitlines() if "session expired" in line]


def test_who_asks_is_told_to_the_controller(trio: SecuredTrio, ada: dict[str, str]) -> None:
    """Each broker forwards as whom it is asked, so that the same is allowed and refused everywhere."""
    for number, node in trio.nodes.items():
        name = f"made-through-{number}"
        admin = AdminClient({"bootstrap.servers": node.bootstrap, **trio.client_settings})
        admin.create_topics([NewTopic(name, 1, 3)])[name].result(30)
        refused = AdminClient({"bootstrap.servers": node.bootstrap, **ada})
        with pytest.raises(KafkaException) as error:
            refused.create_topics([NewTopic(f"refused-{number}", 1, 3)])[f"refused-{number}"].result(30)
        assert error.value.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_who_poses_as_a_broker_needs_the_right_to(trio: SecuredTrio, ada: dict[str, str]) -> None:
    trio.create("wanted", 1)
    node = trio.nodes[trio.leader("wanted")]
    fetch = FetchRequest(replica_id=2, max_wait_ms=0, min_bytes=0, topics=[])
    envelope = EnvelopeRequest(request_data=b"", request_principal=b"User:admin", client_host_address=b"127.0.0.1")
    change = AlterPartitionRequest(broker_id=1, broker_epoch=1, topics=[])
    for request, version in ((fetch, 12), (envelope, 0), (change, 3)):
        with BrokerConnection(node.host, node.port, timeout_s=10, security=parse_security(ada)) as connection:
            # Past the versions that clients are told of: some of these are between brokers only.
            answer = connection._exchange(request, version)
            assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED, request


def test_nodes_of_zookeeper_are_for_brokers_alone(trio: SecuredTrio) -> None:
    """The plain port of this ZooKeeper is open, and of no use to whoever comes without the digest."""
    stranger = KazooClient(trio.zookeeper.address)
    stranger.start(timeout=20)
    try:
        for path in ("/trio", *(f"/trio/{child}" for child in _children(trio))):
            with pytest.raises(NoAuthError):
                stranger.get_children(path)
            with pytest.raises(NoAuthError):
                stranger.set(path, b"mine")
    finally:
        stranger.stop()
        stranger.close()


def _children(trio: SecuredTrio) -> list[str]:
    broker = KazooClient(trio.zookeeper.address, auth_data=[("digest", ZOOKEEPER_LOGIN)])
    broker.start(timeout=20)
    try:
        return list(broker.get_children("/trio"))
    finally:
        broker.stop()
        broker.close()
