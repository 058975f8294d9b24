"""How brokers come together: registrations, one controller, the same answers from all of them."""

from __future__ import annotations

import base64
import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ottla.common.errors import ErrorCode, OttlaError
from ottla.metadata import nodes
from ottla.metastore.port import Set
from ottla.metastore.zookeeper import open_zookeeper
from ottla.metastore.zookeeper.store import ZookeeperStore
from ottla.protocol import messages as m
from ottla.testing import Broker
from tests.broker.cluster.conftest import MakeBroker
from tests.support.quotas import quotas, set_quota
from tests.support.raw_client import RawClient, batch_of
from tests.support.scram_login import log_in
from tests.support.zookeeper import Zookeeper


def until(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def metadata(broker: Broker) -> m.MetadataResponse:
    with RawClient.to(broker.bootstrap_servers) as client:
        answer: m.MetadataResponse = client.call(m.MetadataRequest(topics=None), 12)
        return answer


def create(broker: Broker, name: str, partitions: int = 3, replicas: int = 1, timeout_ms: int = 30_000) -> int:
    topic = m.CreateTopicsRequest.CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=replicas, assignments=(), configs=()
    )
    with RawClient.to(broker.bootstrap_servers) as client:
        answer = client.call(m.CreateTopicsRequest(topics=[topic], timeout_ms=timeout_ms), 7)
        return int(answer.topics[0].error_code)


def delete(broker: Broker, name: str) -> int:
    with RawClient.to(broker.bootstrap_servers) as client:
        wanted = m.DeleteTopicsRequest.DeleteTopicState(name=name)
        answer = client.call(m.DeleteTopicsRequest(topics=[wanted], timeout_ms=30_000), 6)
        return int(answer.responses[0].error_code)


def leaders(broker: Broker, topic: str) -> list[int]:
    found = next(found for found in metadata(broker).topics if found.name == topic)
    return [partition.leader_id for partition in sorted(found.partitions, key=lambda one: one.partition_index)]


def in_sync(broker: Broker, topic: str) -> list[set[int]]:
    found = next(found for found in metadata(broker).topics if found.name == topic)
    return [set(one.isr_nodes) for one in sorted(found.partitions, key=lambda one: one.partition_index)]


def test_all_brokers_say_the_same(three: list[Broker]) -> None:
    for broker in three:
        until(lambda broker=broker: len(metadata(broker).brokers) == 3, "all know all")  # type: ignore[misc]
    answers = [metadata(broker) for broker in three]
    assert len({answer.cluster_id for answer in answers}) == 1
    assert [answer.controller_id for answer in answers] == [1, 1, 1]
    assert all(sorted(node.node_id for node in answer.brokers) == [1, 2, 3] for answer in answers)


def test_whoever_is_asked_forwards_to_the_controller_and_knows_the_outcome(three: list[Broker]) -> None:
    for number, broker in enumerate(three):
        assert create(broker, f"topic-{number}") == ErrorCode.NONE
        assert leaders(broker, f"topic-{number}") and -1 not in leaders(broker, f"topic-{number}")
        assert create(broker, f"topic-{number}") == ErrorCode.TOPIC_ALREADY_EXISTS
    assert sorted(leaders(three[2], "topic-2")) == [1, 2, 3]


def test_records_are_written_and_read_whoever_leads(three: list[Broker]) -> None:
    assert create(three[1], "orders", 6) == ErrorCode.NONE
    for number in range(30):
        three[0].produce("orders", {"number": number}, key=str(number))
    found = three[2].records("orders", count=30)
    assert sorted(record.json["number"] for record in found) == list(range(30))


def test_another_broker_becomes_controller_when_it_stops(three: list[Broker]) -> None:
    three[0].stop()
    for broker in three[1:]:
        until(lambda broker=broker: metadata(broker).controller_id in (2, 3), "a new controller")  # type: ignore[misc]
        until(lambda broker=broker: len(metadata(broker).brokers) == 2, "the old one is gone")  # type: ignore[misc]
    assert create(three[1], "later") == ErrorCode.NONE


def test_a_broker_comes_back_with_what_it_had(make_broker: MakeBroker, three: list[Broker]) -> None:
    assert create(three[0], "orders", 3) == ErrorCode.NONE
    three[0].produce("orders", b"kept", partition=leaders(three[0], "orders").index(3))
    three[2].stop()
    until(lambda: -1 in leaders(three[0], "orders"), "its partition has no leader")
    back = make_broker(3)
    until(lambda: -1 not in leaders(three[0], "orders"), "it leads again")
    assert [record.value for record in back.records("orders", count=1)] == [b"kept"]


def test_a_topic_that_was_deleted_meanwhile_leaves_nothing(
    make_broker: MakeBroker, three: list[Broker], tmp_path: Path
) -> None:
    assert create(three[0], "doomed", 3) == ErrorCode.NONE
    until(lambda: any((tmp_path / "broker-3").glob("doomed-*")), "it has a replica")
    three[2].stop()
    assert delete(three[1], "doomed") == ErrorCode.NONE
    assert create(three[1], "doomed", 1) == ErrorCode.NONE
    make_broker(3)
    left = [folder.name for folder in (tmp_path / "broker-3").glob("doomed-*") if not folder.name.endswith("-delete")]
    assert [name for name in left if name != "doomed-0"] == []
    assert not list((tmp_path / "broker-3").glob("*-stray"))


def test_an_id_that_is_in_use_is_refused(make_broker: MakeBroker) -> None:
    first = make_broker(1)
    with pytest.raises(OttlaError, match=f"node.id 1 is in use by the broker at {first.bootstrap_servers}"):
        make_broker(1, folder="another")
    assert len(metadata(first).brokers) == 1


def test_a_single_node_moves_into_a_cluster(make_broker: MakeBroker, tmp_path: Path) -> None:
    with Broker({"node.id": "1"}, data_dir=tmp_path / "broker-1") as alone:
        alone.create_topic("orders", 2, configs={"retention.ms": "123456789"})
        alone.produce("orders", b"kept", partition=1)
        cluster_id = metadata(alone).cluster_id
    first = make_broker(1)
    assert metadata(first).cluster_id == cluster_id
    assert [record.value for record in first.records("orders", count=1)] == [b"kept"]
    first.produce("orders", b"goes on", partition=1)
    second = make_broker(2)
    assert sorted(record.value for record in second.records("orders", count=2)) == [b"goes on", b"kept"]
    with RawClient.to(second.bootstrap_servers) as client:
        resource = m.DescribeConfigsRequest.DescribeConfigsResource(resource_type=2, resource_name="orders")
        answer = client.call(m.DescribeConfigsRequest(resources=[resource]), 4)
        settings = {config.name: config.value for config in answer.results[0].configs}
        assert settings["retention.ms"] == "123456789"
    first.stop()
    with pytest.raises(OttlaError, match=r"belongs to a broker of a cluster: start it with zookeeper\.connect"):
        Broker({"node.id": "1"}, data_dir=tmp_path / "broker-1").start()


def test_a_folder_of_another_cluster_is_refused(make_broker: MakeBroker, tmp_path: Path) -> None:
    make_broker(1)
    with Broker({"node.id": "2"}, data_dir=tmp_path / "broker-2"):
        pass
    with pytest.raises(OttlaError, match=r"belongs to cluster .* but the store is of cluster"):
        make_broker(2)


def test_partitions_are_not_taken_to_a_place_where_there_is_no_cluster(
    make_broker: MakeBroker, zookeeper: Zookeeper, chroot: str, tmp_path: Path
) -> None:
    """A new cluster knows none of them: it would set them aside, and a slip in the settings would have emptied it."""
    broker = make_broker(1)
    broker.create_topic("orders", 1)
    broker.produce("orders", b"kept")
    broker.stop()
    with pytest.raises(OttlaError, match="has partitions, such as orders-0, but nothing is where zookeeper"):
        make_broker(1, zookeeper_connect=f"{zookeeper.address}{chroot}-mistaken")
    assert not list((tmp_path / "broker-1").glob("*-stray"))
    assert [record.value for record in make_broker(1).records("orders", count=1)] == [b"kept"]


@pytest.fixture
def store(zookeeper: Zookeeper, chroot: str, make_broker: MakeBroker) -> Iterator[ZookeeperStore]:
    """What somebody with a ZooKeeper client sees and does."""
    opened = open_zookeeper(zookeeper.options(chroot))
    yield opened
    opened.close()


@contextlib.contextmanager
def hearing(caplog: pytest.LogCaptureFixture, *names: str) -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in names]
    for logger in loggers:
        logger.addHandler(caplog.handler)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(caplog.handler)


@pytest.mark.parametrize("harm", ["damage", "an older copy"])
def test_the_controller_puts_a_damaged_topic_back_and_nothing_is_lost(
    make_broker: MakeBroker, store: ZookeeperStore, caplog: pytest.LogCaptureFixture, harm: str
) -> None:
    first, second = make_broker(1), make_broker(2)
    assert create(first, "orders", 2, replicas=2) == ErrorCode.NONE
    path = nodes.topic_path("orders")
    older = store.get(path)
    assert older is not None
    first.produce("orders", b"kept", partition=0)
    second.stop()
    second = make_broker(2)
    until(lambda: in_sync(first, "orders") == [{1, 2}, {1, 2}], "both are in sync")
    good = store.get(path)
    assert good is not None
    assert good.data != older.data
    with hearing(caplog, "ottla.topics"):
        store.multi([Set(path, b"{oops" if harm == "damage" else older.data)])
        until(lambda: (now := store.get(path)) is not None and now.data == good.data, "it is not put back")
        until(lambda: "whole again" in caplog.text, "nobody says so")
    told = {record for record in caplog.records if "is damaged and is passed over" in record.getMessage()}
    assert 1 <= len(told) <= 2, "each of the brokers says it once"
    assert [record.value for record in first.records("orders", count=1)] == [b"kept"]
    second.stop()
    until(lambda: in_sync(first, "orders") == [{1}, {1}], "the other one leaves")
    make_broker(2)
    until(lambda: in_sync(first, "orders") == [{1, 2}, {1, 2}], "it comes back")


def test_a_damaged_registration_is_put_back(
    make_broker: MakeBroker, store: ZookeeperStore, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = make_broker(1), make_broker(2)
    path = nodes.broker_epoch_path(2)
    with hearing(caplog, "ottla.topics", "ottla.controller", "ottla.cluster"):
        store.multi([Set(path, b"{oops")])
        until(lambda: (now := store.get(path)) is not None and b"oops" not in now.data, "it is not put back")
    assert not any(record.exc_info for record in caplog.records), "a sentence, not a traceback"
    assert len(metadata(first).brokers) == 2
    second.stop()
    make_broker(2)
    until(lambda: len(metadata(first).brokers) == 2, "it comes back")


def test_a_damaged_topic_that_nobody_knows_is_told_at_the_start(make_broker: MakeBroker, store: ZookeeperStore) -> None:
    first = make_broker(1)
    assert create(first, "orders", 2) == ErrorCode.NONE
    first.produce("orders", b"kept", partition=0)
    good = store.get(nodes.topic_path("orders"))
    assert good is not None
    first.stop()
    store.multi([Set(nodes.topic_path("orders"), b"{oops")])
    with pytest.raises(OttlaError, match="The node /topics/orders of the metadata store is damaged"):
        make_broker(1)
    store.multi([Set(nodes.topic_path("orders"), good.data)])
    assert [record.value for record in make_broker(1).records("orders", count=1)] == [b"kept"]


def _come_back_behind(stays: Broker, goes: Broker, make_broker: MakeBroker, value: bytes) -> Broker:
    """A record that is written while a broker is away; then it is in sync again."""
    (number,) = (one.node_id for one in metadata(stays).brokers if f"{one.host}:{one.port}" == goes.bootstrap_servers)
    goes.stop()
    until(lambda: number not in in_sync(stays, "orders")[0], "it leaves")
    stays.produce("orders", value, partition=0)
    back = make_broker(number)
    until(lambda: in_sync(stays, "orders") == [{1, 2}], "it comes back")
    return back


def test_metadata_that_was_restored_from_an_older_backup(make_broker: MakeBroker, store: ZookeeperStore) -> None:
    """The logs know later leader epochs: whoever leads begins behind them, and all replicas come into sync."""
    first, second = make_broker(1), make_broker(2)
    assert create(first, "orders", 1, replicas=2) == ErrorCode.NONE
    first.produce("orders", b"one", partition=0)
    backup = store.get(nodes.topic_path("orders"))
    assert backup is not None
    for number in (2, 3):  # each time another one leads
        second = _come_back_behind(first, second, make_broker, b"%d" % number)
        first = _come_back_behind(second, first, make_broker, b"%d more" % number)
    before = nodes.decode_topic("orders", (store.get(nodes.topic_path("orders")) or backup).data).partitions[0]
    first.stop()
    second.stop()
    store.multi([Set(nodes.topic_path("orders"), backup.data)])
    second, first = make_broker(2), make_broker(1)
    for broker in (first, second):
        until(lambda broker=broker: in_sync(broker, "orders") == [{1, 2}], "both are in sync")  # type: ignore[misc]
    now = nodes.decode_topic("orders", (store.get(nodes.topic_path("orders")) or backup).data).partitions[0]
    assert now.leader_epoch > before.leader_epoch > 2
    first.produce("orders", b"after", partition=0)
    wanted = [b"one", b"2", b"2 more", b"3", b"3 more", b"after"]
    assert [record.value for record in second.records("orders", count=6)] == wanted


def _new_producer_id(broker: Broker) -> int:
    with RawClient.to(broker.bootstrap_servers) as client:
        return int(
            client.call(m.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=-1), 4).producer_id
        )


@pytest.mark.parametrize("is_running", [True, False])
def test_producer_ids_are_not_given_away_twice_after_a_restore(
    make_broker: MakeBroker, store: ZookeeperStore, is_running: bool
) -> None:
    """Else the records of the second one would be taken for those of the first, acknowledged and dropped."""
    first = make_broker(1)
    assert create(first, "orders", 1) == ErrorCode.NONE
    backup = store.get(nodes.PRODUCER_IDS)
    assert backup is not None
    used = _new_producer_id(first)
    with RawClient.to(first.bootstrap_servers) as client:
        batch = batch_of(b"one", producer_id=used, producer_epoch=0, base_sequence=0)
        assert client.produce("orders", batch).error_code == ErrorCode.NONE
    if not is_running:
        first.stop()
    store.multi([Set(nodes.PRODUCER_IDS, backup.data)])
    if is_running:
        until(lambda: (now := store.get(nodes.PRODUCER_IDS)) is not None and now.data != backup.data, "it is put back")
        first.stop()
    first = make_broker(1)
    new = _new_producer_id(first)
    assert new > used
    with RawClient.to(first.bootstrap_servers) as client:
        batch = batch_of(b"two", producer_id=new, producer_epoch=0, base_sequence=0)
        assert client.produce("orders", batch).error_code == ErrorCode.NONE
    assert [record.value for record in first.records("orders", count=2)] == [b"one", b"two"]


@pytest.mark.parametrize("data", [b"{oops", b"[]", b"{}"])
def test_a_damaged_cluster_node_is_told(
    make_broker: MakeBroker, zookeeper: Zookeeper, chroot: str, data: bytes
) -> None:
    make_broker(1)
    store = open_zookeeper(zookeeper.options(chroot))
    try:
        store.multi([Set(nodes.CLUSTER, data)])
        with pytest.raises(OttlaError, match="The node /cluster of the metadata store is damaged"):
            make_broker(2)
    finally:
        store.close()


def test_who_cannot_become_controller_by_a_damaged_node_says_so_and_does_when_it_is_mended(
    make_broker: MakeBroker, store: ZookeeperStore, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = make_broker(1), make_broker(2)
    good = store.get(nodes.CONTROLLER_EPOCH)
    assert good is not None
    with hearing(caplog, "ottla.controller"):
        store.multi([Set(nodes.CONTROLLER_EPOCH, b"{oops")])
        first.stop()
        until(lambda: any("put off" in record.getMessage() for record in caplog.records), "nobody complains")
        time.sleep(1)  # it is tried again several times
        told = [str(getattr(record, "why", "")) for record in set(caplog.records) if "put off" in record.getMessage()]
        assert any("The node /controller_epoch of the metadata store is damaged" in why for why in told), told
        assert len(told) <= 3, "said once, and not with every try"
        assert not any(record.exc_info for record in caplog.records), "a sentence, not a traceback"
        store.multi([Set(nodes.CONTROLLER_EPOCH, good.data)])
        until(lambda: metadata(second).controller_id == 2, "nobody is the controller")


def test_a_store_that_cannot_be_reached_is_one_sentence(tmp_path: Path) -> None:
    settings = {"node.id": "1", "zookeeper.connect": "127.0.0.1:1", "zookeeper.connection.timeout.ms": "300"}
    with (
        pytest.raises(OttlaError, match=r"cannot reach ZooKeeper at 127\.0\.0\.1:1"),
        Broker(settings, data_dir=tmp_path),
    ):
        pass


def test_all_commit_by_the_same_number_of_replicas_in_sync_however_it_was_set(
    three: list[Broker], zookeeper: Zookeeper, chroot: str
) -> None:
    """Who is eligible to lead depends on it: it is in the node of the topic, not in each broker's settings."""
    create(three[0], "orders")
    store = open_zookeeper(zookeeper.options(chroot))
    try:

        def in_force() -> int:
            node = store.get(nodes.topic_path("orders"))
            assert node is not None
            return int(nodes.decode(node.data)["min_insync"])

        assert in_force() == 1
        wanted = m.IncrementalAlterConfigsRequest.AlterableConfig(
            name="min.insync.replicas", config_operation=0, value="2"
        )
        everybody = m.IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=4, resource_name="", configs=[wanted]
        )
        with RawClient.to(three[1].bootstrap_servers) as client:
            answer = client.call(m.IncrementalAlterConfigsRequest(resources=[everybody]), 1)
        assert answer.responses[0].error_code == ErrorCode.NONE
        until(lambda: in_force() == 2, "the new default is in force")
    finally:
        store.close()


def test_quotas_hold_on_all_brokers_and_the_controller_counts_partitions(three: list[Broker]) -> None:
    """Set through a broker that is not the controller; the third throttles by it, and so does the controller."""
    with RawClient.to(three[1].bootstrap_servers) as client, RawClient.to(three[2].bootstrap_servers) as other:
        set_quota(client, {"client-id": "raw"}, producer_byte_rate=1000, controller_mutation_rate=1)
        expected = {(("client-id", "raw"),): {"producer_byte_rate": 1000.0, "controller_mutation_rate": 1.0}}
        assert quotas(client) == expected
        until(lambda: quotas(other) == expected, "all brokers know")
        topic = m.CreateTopicsRequest.CreatableTopic(name="many", num_partitions=30, replication_factor=1)
        first = client.call(m.CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7)
        assert (first.throttle_time_ms, first.topics[0].error_code) == (0, 0)
        topic = m.CreateTopicsRequest.CreatableTopic(name="more", num_partitions=1, replication_factor=1)
        second = other.call(m.CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7)
        assert second.topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED and second.throttle_time_ms > 0
        other.send(m.MetadataRequest(topics=[]), 12)
        assert not other.is_closed_by_peer(0.1), "the broker that was asked hears nothing more for a while"


def test_delegation_tokens_are_made_through_any_broker_and_good_at_all(make_broker: MakeBroker) -> None:
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "ottla.first.users": "SCRAM-SHA-256=[name=ada,password=secret]",
        "delegation.token.secret.key": "of-all-brokers",
    }
    brokers = [make_broker(node_id, **settings) for node_id in (1, 2)]

    def secured(broker: Broker) -> RawClient:
        return RawClient(*broker.server.addresses[1])

    with RawClient.to(brokers[1].bootstrap_servers) as stranger:
        refused = stranger.call(m.CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=-1), 3)
        assert refused.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    with secured(brokers[1]) as ada:
        assert log_in(ada, "ada", "secret").error_code == 0
        token = ada.call(m.CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=-1), 3)
        assert (token.error_code, token.principal_name) == (0, "ada")
    for broker in brokers:
        until(lambda broker=broker: token.token_id in broker.server.broker.image.tokens, "known")  # type: ignore[misc]
        with secured(broker) as client:
            proof = base64.b64encode(token.hmac).decode()
            assert log_in(client, token.token_id, proof, extensions=",tokenauth=true").error_code == 0
            again = client.call(m.CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=-1), 3)
            assert again.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
