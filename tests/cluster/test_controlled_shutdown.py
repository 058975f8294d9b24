"""A broker that is asked to stop hands over what it leads. Whoever waits there for something that only the next leader
can give is told at once, and not when its own time is over: a client that has to wait for that stands still."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.common.errors import ErrorCode
from ottla.protocol.messages import FindCoordinatorRequest, JoinGroupRequest, MetadataRequest
from tests.support.brokers import OttlaProcess
from tests.support.raw_client import RawClient, batch_of, fetch_request, produce_request
from tests.support.zookeeper import Zookeeper

HOUR_MS = 3_600_000
# Nobody is taken for dead, leaves for being slow, or is moved back, and no group begins before its members are there.
PATIENT = {
    "zookeeper.session.timeout.ms": "60000",
    "replica.lag.time.max.ms": str(HOUR_MS),
    "group.initial.rebalance.delay.ms": str(HOUR_MS),
    "auto.leader.rebalance.enable": "false",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "3",
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("is_controller", [True, False], ids=["the controller", "another broker"])
def test_who_waits_at_a_broker_that_stops_is_told_that_another_one_leads(
    tmp_path: Path, own_zookeeper: Zookeeper, is_controller: bool
) -> None:
    common = PATIENT | {"zookeeper.connect": f"{own_zookeeper.address}/stop"}
    brokers = {node: OttlaProcess(tmp_path / str(node), {"node.id": str(node), **common}) for node in (1, 2, 3)}
    with ExitStack() as stack:
        for broker in brokers.values():
            stack.enter_context(broker)
        with RawClient.to(brokers[1].bootstrap) as client:
            controller = client.call(MetadataRequest(topics=[]), 9).controller_id
        others = [node for node in brokers if node != controller]
        stopping, paused = (controller, others[0]) if is_controller else (others[0], others[1])
        (heir,) = brokers.keys() - {stopping, paused}
        _create(brokers[heir], stopping, paused, heir)

        waiting = [RawClient.to(brokers[stopping].bootstrap, timeout_s=120) for _ in range(3)]
        for client in waiting:
            stack.enter_context(client)
        with RawClient.to(brokers[stopping].bootstrap) as client:
            assert client.produce("data", batch_of(b"first")).error_code == ErrorCode.NONE
        brokers[paused].pause()
        stack.callback(brokers[paused].resume)
        producing, fetching, joining = waiting
        produce = produce_request("data", batch_of(b"waits for all"))
        produce.timeout_ms = HOUR_MS
        producing.send(produce, 9)
        fetching.send(fetch_request([("data", 0, 1)], max_wait_ms=HOUR_MS, leader_epoch=0), 12)
        joining.send(_join(), 3)

        stop = threading.Thread(target=brokers[stopping].stop)
        stop.start()
        ((produced,),) = [topic.partition_responses for topic in producing.receive("ProduceRequest", 9).responses]
        assert ErrorCode(produced.error_code) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        ((fetched,),) = [topic.partitions for topic in fetching.receive("FetchRequest", 12).responses]
        # It knows of a later epoch, by which it follows (KIP-320).
        assert ErrorCode(fetched.error_code) is ErrorCode.FENCED_LEADER_EPOCH
        joined: Any = joining.receive("JoinGroupRequest", 3)
        assert ErrorCode(joined.error_code) is ErrorCode.NOT_COORDINATOR
        stop.join(60)
        assert not stop.is_alive()


def _create(broker: OttlaProcess, stopping: int, paused: int, heir: int) -> None:
    """Both topics, led by the one that stops."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    replicas = [[stopping, heir, paused]]
    offsets = {"cleanup.policy": "compact"}
    for topic, config in (("data", {}), ("__consumer_offsets", offsets)):
        new = NewTopic(topic, 1, replica_assignment=replicas, config=config)
        admin.create_topics([new])[topic].result(60)
    with RawClient.to(broker.bootstrap) as client:
        while True:
            request = FindCoordinatorRequest(key_type=0, coordinator_keys=["group"])
            (found,) = client.call(request, 4).coordinators
            if found.error_code == ErrorCode.NONE:
                break
    assert found.node_id == stopping


def _join() -> JoinGroupRequest:
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")
    return JoinGroupRequest(
        group_id="group",
        session_timeout_ms=60_000,
        rebalance_timeout_ms=HOUR_MS // 2,
        member_id="",
        protocol_type="consumer",
        protocols=[protocol],
    )
