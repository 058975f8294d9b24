"""Mistakes and accidents of operators: each is told, and nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.common.errors import ErrorCode
from ottla.protocol import messages as m
from ottla.testing import Broker
from tests.broker.cluster.conftest import MakeBroker
from tests.broker.cluster.test_joining import create, in_sync, metadata, until
from tests.support.raw_client import RawClient
from tests.support.zookeeper import Zookeeper


def test_more_replicas_than_brokers(make_broker: MakeBroker) -> None:
    first, second = make_broker(1), make_broker(2)
    for broker in (first, second):
        assert create(broker, "orders", 1, replicas=3) == ErrorCode.INVALID_REPLICATION_FACTOR
    assert metadata(first).topics == []
    assert create(first, "orders", 1, replicas=2) == ErrorCode.NONE


@pytest.mark.parametrize("wanted", [[1, 9], [9], [1, 1], []])
def test_a_reassignment_to_brokers_that_are_not_there(make_broker: MakeBroker, wanted: list[int]) -> None:
    first, second = make_broker(1), make_broker(2)
    assert create(first, "orders", 1, replicas=2) == ErrorCode.NONE
    first.produce("orders", b"kept", partition=0)
    alter = m.AlterPartitionReassignmentsRequest
    asked = alter.ReassignablePartition(partition_index=0, replicas=wanted)
    topic = alter.ReassignableTopic(name="orders", partitions=[asked])
    for broker in (first, second):
        with RawClient.to(broker.bootstrap_servers) as client:
            answer = client.call(alter(topics=[topic], timeout_ms=30_000), 1)
        (line,) = answer.responses[0].partitions
        assert line.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert line.error_message.startswith("The manual partition assignment includes ")
    assert in_sync(first, "orders") == [{1, 2}]
    assert [record.value for record in second.records("orders", count=1)] == [b"kept"]


def test_zookeeper_is_lost_and_comes_back(tmp_path: Path, own_zookeeper: Zookeeper) -> None:
    """For longer than sessions last: records are written and read, nothing else changes, and nothing is lost."""
    settings = {"zookeeper.connect": f"{own_zookeeper.address}/lost", "zookeeper.session.timeout.ms": "3000"}
    brokers = [Broker({"node.id": str(one), **settings}, data_dir=tmp_path / str(one)) for one in (1, 2)]
    with brokers[0] as first, brokers[1] as second:
        assert create(first, "orders", 1, replicas=2) == ErrorCode.NONE
        first.produce("orders", b"before", partition=0)
        own_zookeeper.kill()
        until(lambda: not any(_leader_of_metadata(broker) >= 0 for broker in brokers), "somebody still reaches it")
        first.produce("orders", b"meanwhile", partition=0)
        refused = (ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT)
        assert create(first, "later", timeout_ms=1_000) in refused
        assert create(second, "later", timeout_ms=1_000) in refused
        assert [record.value for record in second.records("orders", count=2)] == [b"before", b"meanwhile"]
        assert metadata(first).controller_id == metadata(second).controller_id >= 0, "clients that hear of none wait"
        own_zookeeper.start()
        until(lambda: create(first, "later") in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS), "nothing changes")
        until(lambda: in_sync(first, "orders") == in_sync(second, "orders") == [{1, 2}], "both are in sync again")
        second.produce("orders", b"after", partition=0)
        found = [record.value for record in first.records("orders", count=3)]
        assert found == [b"before", b"meanwhile", b"after"]


def _leader_of_metadata(broker: Broker) -> int:
    asked = m.DescribeQuorumRequest.TopicData(
        topic_name="__cluster_metadata", partitions=[m.DescribeQuorumRequest.PartitionData(partition_index=0)]
    )
    with RawClient.to(broker.bootstrap_servers) as client:
        answer = client.call(m.DescribeQuorumRequest(topics=[asked]), 2)
    return int(answer.topics[0].partitions[0].leader_id)
