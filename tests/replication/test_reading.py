"""Who may read what from whom: followers, consumers near a follower, those who came to the wrong broker."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.observing.service_families import waiting_families
from ottla.common.config.replication import RACK_AWARE_SELECTOR
from ottla.common.errors import ErrorCode
from ottla.protocol import messages as m
from tests.replication.cluster import Cluster, Node, until
from tests.replication.test_replication import produce
from tests.support.raw_client import batch_of, fetch_request, produce_request


async def fetch(node: Node, offset: int = 0, version: int = 12, **fields: Any) -> Any:
    request = fetch_request([("topic", 0, offset)], max_wait_ms=fields.pop("max_wait_ms", 0))
    for name, value in fields.items():
        setattr(request, name, value)
    if version >= 13:
        for topic in request.topics:
            topic.topic_id = node.image.topics["topic"].id
    return await asyncio.wait_for(node.call(request, version), 60)


def line_of(response: Any) -> Any:
    return response.responses[0].partitions[0]


async def test_a_consumer_reads_from_a_follower_what_that_knows_to_be_committed(tmp_path: Path) -> None:
    async with Cluster(tmp_path) as cluster:
        cluster.create_topic()
        leader, follower = cluster.nodes[1], cluster.nodes[2]
        await produce(leader, b"x")
        await until(lambda: follower.log().high_watermark == 1)
        cluster.cut(3)
        await produce(leader, b"y", acks=1)
        await until(lambda: follower.log().log_end_offset == 2)
        line = line_of(await fetch(follower))
        assert (line.error_code, line.high_watermark) == (0, 1)
        assert bytes(line.records) == leader.content(upper=1)
        assert line_of(await fetch(follower, offset=2)).error_code == 0, "it is there, and not committed yet"
        assert line_of(await fetch(follower, offset=3)).error_code == ErrorCode.OFFSET_NOT_AVAILABLE
        assert line_of(await fetch(follower, version=10)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_a_consumer_waits_at_a_follower_for_what_is_committed_next(tmp_path: Path) -> None:
    async with Cluster(tmp_path, properties={"replica.fetch.wait.max.ms": "50"}) as cluster:
        cluster.create_topic()
        leader, follower = cluster.nodes[1], cluster.nodes[2]
        waiting = asyncio.ensure_future(fetch(follower, max_wait_ms=3_600_000))
        await produce(leader, b"x")
        line = line_of(await asyncio.wait_for(waiting, 60))
        assert bytes(line.records) == leader.content()


async def test_who_came_to_the_wrong_broker_hears_which_is_the_right_one(tmp_path: Path) -> None:
    async with Cluster(tmp_path, 4) as cluster:
        cluster.create_topic()
        cluster.change(leader=2)
        stranger = cluster.nodes[4]
        fetched = await fetch(stranger, version=16)
        assert line_of(fetched).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (line_of(fetched).current_leader.leader_id, line_of(fetched).current_leader.leader_epoch) == (2, 1)
        assert [(node.node_id, node.host, node.port) for node in fetched.node_endpoints] == [(2, "localhost", 9094)]
        produced = await stranger.call(produce_request("topic", batch_of(b"x")), 10)
        line = produced.responses[0].partition_responses[0]
        assert line.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (line.current_leader.leader_id, line.current_leader.leader_epoch) == (2, 1)
        assert [(node.node_id, node.host, node.port) for node in produced.node_endpoints] == [(2, "localhost", 9094)]
        old = await stranger.call(produce_request("topic", batch_of(b"x")), 9)
        assert old.responses[0].partition_responses[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(("rack", "preferred"), [("here", -1), ("there", 3), ("nowhere", -1), ("", -1)])
async def test_a_leader_sends_a_consumer_to_a_replica_in_its_rack(tmp_path: Path, rack: str, preferred: int) -> None:
    racks = {1: "here", 2: "here", 3: "there"}
    settings = {"replica.selector.class": RACK_AWARE_SELECTOR}
    async with Cluster(tmp_path, properties=settings, racks=racks) as cluster:
        cluster.create_topic()
        leader = cluster.nodes[1]
        await produce(leader, b"x")
        line = line_of(await fetch(leader, rack_id=rack))
        assert line.preferred_read_replica == preferred
        assert bool(line.records) is (preferred < 0)
        if preferred > 0:
            near = cluster.nodes[preferred]
            await until(lambda: near.log().high_watermark == 1)
            assert bytes(line_of(await fetch(near, rack_id=rack)).records) == leader.content()


async def test_nobody_is_sent_to_a_replica_that_is_not_in_sync(tmp_path: Path) -> None:
    """It may never catch up, and the consumer would stay with it."""
    settings = {"replica.selector.class": RACK_AWARE_SELECTOR, "replica.lag.time.max.ms": "100"}
    async with Cluster(tmp_path, properties=settings, racks={1: "here", 2: "here", 3: "there"}) as cluster:
        cluster.create_topic()
        leader = cluster.nodes[1]
        await produce(leader, b"x")
        assert line_of(await fetch(leader, rack_id="there")).preferred_read_replica == 3
        cluster.cut(3)
        await produce(leader, b"y")
        assert 3 not in cluster.partition().isr
        line = line_of(await fetch(leader, rack_id="there"))
        assert (line.preferred_read_replica, bool(line.records)) == (-1, True)


async def test_without_a_selector_consumers_read_from_leaders(tmp_path: Path) -> None:
    async with Cluster(tmp_path, racks={1: "here", 2: "there", 3: "there"}) as cluster:
        cluster.create_topic()
        await produce(cluster.nodes[1], b"x")
        line = line_of(await fetch(cluster.nodes[1], rack_id="there"))
        assert (line.preferred_read_replica, bool(line.records)) == (-1, True)


@pytest.mark.parametrize(
    ("replica", "epoch", "code"),
    [(4, 1, ErrorCode.NOT_LEADER_OR_FOLLOWER), (9, 1, ErrorCode.NOT_LEADER_OR_FOLLOWER), (2, 7, ErrorCode.NONE)],
)
async def test_who_poses_as_a_replica_moves_no_watermark(
    tmp_path: Path, replica: int, epoch: int, code: ErrorCode
) -> None:
    """One that is no replica, one that is no broker, and a registration that is over: that one may read."""
    async with Cluster(tmp_path, 4) as cluster:
        cluster.create_topic()
        leader = cluster.nodes[1]
        await produce(leader, b"x")
        cluster.cut(2, 3)
        await produce(leader, b"y", acks=1)
        posing = m.FetchRequest.ReplicaState(replica_id=replica, replica_epoch=epoch)
        for session_epoch in (-1, 0):
            answer = await fetch(leader, 2, version=17, replica_state=posing, session_epoch=session_epoch)
            assert line_of(answer).error_code == code
            assert (answer.session_id > 0) is (replica == 4 and session_epoch == 0), "broker 4 is none of its replicas"
        assert leader.log().high_watermark == 1
        cluster.heal()
        await until(lambda: leader.log().high_watermark == 2)


async def test_deleting_records_waits_for_the_replicas(tmp_path: Path) -> None:
    async with Cluster(tmp_path) as cluster:
        cluster.create_topic()
        leader = cluster.nodes[1]
        for _ in range(3):
            await produce(leader, b"x")

        def delete(offset: int, timeout_ms: int) -> Any:
            asked = m.DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=offset)
            topic = m.DeleteRecordsRequest.DeleteRecordsTopic(name="topic", partitions=[asked])
            return leader.call(m.DeleteRecordsRequest(topics=[topic], timeout_ms=timeout_ms), 2)

        answer = (await asyncio.wait_for(delete(2, 60_000), 60)).topics[0].partitions[0]
        assert (answer.error_code, answer.low_watermark) == (0, 2)
        assert all(node.log().log_start_offset == 2 for node in cluster.nodes.values())
        cluster.cut(3)
        answer = (await asyncio.wait_for(delete(3, 20), 60)).topics[0].partitions[0]
        assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT
        assert leader.log().log_start_offset == 3


async def test_a_new_leader_does_not_tell_the_end_before_it_knows_what_is_committed(tmp_path: Path) -> None:
    async with Cluster(tmp_path) as cluster:
        cluster.create_topic()
        await produce(cluster.nodes[1], b"x")
        cluster.cut(1)
        cluster.cut(3)
        cluster.change(leader=2)
        node = cluster.nodes[2]
        node.log().high_watermark = 0

        async def end() -> tuple[int, int]:
            asked = m.ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=-1)
            topic = m.ListOffsetsRequest.ListOffsetsTopic(name="topic", partitions=[asked])
            found = (await node.call(m.ListOffsetsRequest(topics=[topic]), 7)).topics[0].partitions[0]
            return found.error_code, found.offset

        assert await end() == (ErrorCode.OFFSET_NOT_AVAILABLE, -1)
        cluster.heal()
        await until(lambda: node.log().high_watermark == 1)
        assert await end() == (0, 1)


async def test_a_follower_that_waits_at_a_new_leader_is_let_go_at_once(tmp_path: Path) -> None:
    """It could not name the partition before its fetch is answered, which takes an hour here."""
    async with Cluster(tmp_path, properties={"replica.fetch.wait.max.ms": "3600000"}) as cluster:
        cluster.create_topic("other", [(2, 3)])
        cluster.create_topic()
        await until(lambda: 3 in cluster.nodes[2].broker.replica_sessions._sessions)
        assert (await asyncio.wait_for(produce(cluster.nodes[1], b"x"), 60)).error_code == 0
        cluster.deaf = {3}
        cluster.change(leader=2, isr=(2, 3))
        cluster.deaf = set()
        cluster.publish(cluster.image)
        assert (await asyncio.wait_for(produce(cluster.nodes[2], b"y"), 60)).error_code == 0


def _parked(node: Node) -> float:
    """What the metric says of fetches that wait."""
    families = [family for family in waiting_families(node.broker) if family is not None]
    (found,) = [sample.value for sample in families[0].samples if sample.labels == {"delayedOperation": "Fetch"}]
    return found


async def test_a_follower_is_counted_as_waiting_while_its_fetch_waits(tmp_path: Path) -> None:
    async with Cluster(tmp_path, count=2, properties={"replica.fetch.wait.max.ms": "3600000"}) as cluster:
        cluster.create_topic(replicas=[(1, 2)])
        await until(lambda: _parked(cluster.nodes[1]) == 1)
        cluster.cut(2)
        await until(lambda: _parked(cluster.nodes[1]) == 0)
        assert 2 in cluster.nodes[1].broker.replica_sessions._sessions
