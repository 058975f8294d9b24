"""Coordinators that come and go: a load that fails half way, a write under way when its shard resigns, a stop."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from ottla.common.errors import ErrorCode
from ottla.controller.topic_plan import NewTopic
from ottla.groups.timers import FORGET_TOPIC
from ottla.protocol import messages as m
from ottla.records.record import iterate_batches
from tests.broker.test_answers_are_durable import FLUSHED, HeldDisk
from tests.broker.test_coordinator_load import until_logged
from tests.broker.test_offsets_of_deleted_topics import commit
from tests.support.loop_broker import LoopBroker
from tests.support.manual_clock import ManualClock
from tests.support.subscriptions import write_subscription
from tests.support.transaction_desk import Desk
from tests.support.transactional_client import init_request, offsets_request

TURNS = 200


def clock() -> ManualClock:
    return ManualClock(time.time_ns() // 1_000_000)


async def turns() -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)


def damage(folder: Path, number: int) -> bytes:
    """The length of this batch makes no sense any more. Gives the file as it was; a clean stop checks nothing."""
    (path,) = folder.glob("*.log")
    whole = path.read_bytes()
    positions = [position for position, _ in iterate_batches(whole)]
    assert len(positions) > number + 1
    data = bytearray(whole)
    data[positions[number] + 8 : positions[number] + 12] = b"\x7f\xff\xff\xff"
    path.write_bytes(data)
    return whole


def mend(folder: Path, whole: bytes) -> None:
    (path,) = folder.glob("*.log")
    with path.open("r+b") as file:
        file.write(whole)


async def offsets_of(broker: LoopBroker, topic: str, partitions: int) -> list[int]:
    asked = m.OffsetFetchRequest.OffsetFetchRequestGroup(
        group_id="g",
        topics=[m.OffsetFetchRequest.OffsetFetchRequestTopics(name=topic, partition_indexes=list(range(partitions)))],
    )
    (group,) = (await broker.call(m.OffsetFetchRequest(groups=[asked]), 9)).groups
    assert not group.error_code
    return [int(one.committed_offset) for one in group.topics[0].partitions]


async def test_a_load_that_is_tried_again_begins_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Or the marker of an earlier transaction would commit what the try before has read of a later one."""
    async with LoopBroker(tmp_path, clock=clock()) as broker:
        await broker.create_topic("data", 2)
        desk = Desk(broker)
        who = await desk.init()
        await desk.ask(offsets_request("t", who, "g", {("data", 0): 1}), 5)
        who = await desk.end(who, True)
        await desk.ask(offsets_request("t", who, "g", {("data", 1): 2}), 5)
        await desk.end(who, False)
        await commit(broker, 7)
        assert await offsets_of(broker, "data", 2) == [7, -1]
    folder = tmp_path / "__consumer_offsets-0"
    whole = damage(folder, 3)
    async with LoopBroker(tmp_path, clock=clock(), jumps=True) as broker:
        await until_logged(caplog, "cannot be loaded")
        mend(folder, whole)
        while broker.broker.groups.runtime.is_loading:
            await broker.pass_time(1_000)
        assert await offsets_of(broker, "data", 2) == [7, -1]


async def test_who_is_elected_does_not_wait_for_one_that_cannot_be_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    properties = {"offsets.topic.num.partitions": "2"}
    async with LoopBroker(tmp_path, properties, clock=clock()) as broker:
        await broker.create_topic("data")
        for group in ("a", "b"):  # one in each partition
            for offset in range(4):
                await _commit_of(broker, group, offset)
    damage(tmp_path / "__consumer_offsets-0", 1)
    async with LoopBroker(tmp_path, properties, clock=clock(), jumps=True) as broker:
        await until_logged(caplog, "cannot be loaded")
        runtime, partition = broker.broker.groups.runtime, broker.broker.partitions.get("__consumer_offsets", 1)
        assert partition is not None
        await turns()
        runtime.resign(1)
        runtime.elect(partition)
        await turns()
        shards = [runtime.get(index) for index in range(2)]
        assert [one is None or one.is_loading for one in shards] == [True, False]


async def _commit_of(broker: LoopBroker, group: str, offset: int) -> None:
    one = m.OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = m.OffsetCommitRequest.OffsetCommitRequestTopic(name="data", partitions=[one])
    await broker.call(m.FindCoordinatorRequest(key=group), 3)
    request = m.OffsetCommitRequest(group_id=group, generation_id_or_member_epoch=-1, topics=[topic])
    (answer,) = (await broker.call(request, 9)).topics
    assert not answer.partitions[0].error_code


# --- a write that is under way


@pytest.fixture
def disk() -> HeldDisk:
    return HeldDisk()


async def held(disk: HeldDisk, asking: Any) -> asyncio.Future[Any]:
    """The request, once the disk is held under it."""
    task: asyncio.Future[Any] = asyncio.ensure_future(asking)
    while not disk.waiting.is_set():
        await asyncio.sleep(0.001)
    return task


def join_request() -> m.JoinGroupRequest:
    protocol = m.JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=write_subscription(["data"]))
    return m.JoinGroupRequest(
        group_id="new",
        session_timeout_ms=45_000,
        rebalance_timeout_ms=60_000,
        group_instance_id="static",
        protocol_type="consumer",
        protocols=[protocol],
    )


async def test_who_resigns_while_it_writes_neither_goes_on_nor_leaves_anybody_waiting(
    tmp_path: Path, disk: HeldDisk
) -> None:
    async with LoopBroker(tmp_path, FLUSHED, clock=clock(), disk=disk, jumps=True) as broker:
        await broker.create_topic("data")
        await commit(broker, 1)
        runtime, partition = broker.broker.groups.runtime, broker.broker.partitions.get("__consumer_offsets", 0)
        assert partition is not None
        disk.hold("__consumer_offsets")
        joining = await held(disk, broker.call(join_request(), 9))
        shard: Any = runtime.get(0)
        runtime.resign(0)
        runtime.elect(partition)
        end = partition.log.log_end_offset
        disk.let_go()
        answer = await asyncio.wait_for(joining, 60)
        assert answer.error_code in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        await turns()
        assert (len(shard.timers), partition.log.log_end_offset) == (0, end)


async def test_who_has_resigned_does_not_move_the_alarm_of_its_successor(tmp_path: Path, disk: HeldDisk) -> None:
    """The tombstones of a deleted topic fail, and are to be tried again: not by the one who has resigned."""
    async with LoopBroker(tmp_path, FLUSHED, clock=clock(), disk=disk, jumps=True) as broker:
        await broker.create_topic("data")
        await commit(broker, 1)
        groups, partition = broker.broker.groups, broker.broker.partitions.get("__consumer_offsets", 0)
        assert partition is not None
        disk.hold("__consumer_offsets")
        deleting = await held(disk, broker.delete_topic("data"))
        shard: Any = groups.runtime.get(0)
        groups.runtime.resign(0)
        disk.let_go(broken=True)
        await deleting
        await turns()
        assert (FORGET_TOPIC, "data", "") not in shard.timers
        assert shard._alarm is None


async def test_a_request_that_waited_writes_nothing_for_one_who_has_resigned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first producer id of a block is waited for; meanwhile the partition has another coordinator, or the same one
    again, which has read the log already."""
    async with LoopBroker(tmp_path, clock=clock()) as broker:
        await Desk(broker).init()
        runtime, partition = broker.broker.transactions.runtime, broker.broker.partitions.get("__transaction_state", 0)
        assert partition is not None
        ids: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        monkeypatch.setattr(broker.broker.producer_ids, "take", lambda: ids)
        asking = asyncio.ensure_future(broker.call(init_request("late"), 5))
        await turns()
        runtime.resign(0)
        runtime.elect(partition)
        await broker.loaded()
        end = partition.log.log_end_offset
        ids.set_result(77)
        assert (await asking).error_code == ErrorCode.NOT_COORDINATOR
        assert partition.log.log_end_offset == end


# --- a stop


async def test_a_change_that_ends_after_the_stop_has_begun_elects_nobody(tmp_path: Path) -> None:
    async with LoopBroker(tmp_path, clock=clock()) as broker:
        await broker.create_topic("data")
        desk = Desk(broker)
        await desk.init()
        await commit(broker, 1)
        broker.broker.release_waiting()
        await broker.broker.topics.create([NewTopic("late", 1)])
        assert broker.broker.transactions.runtime.all() == []
        assert broker.broker.groups.runtime.all() == []
        assert await desk.code(init_request("t"), 5) in (
            ErrorCode.NOT_COORDINATOR,
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
        )


@pytest.mark.parametrize("version", [3, 4, 6])
async def test_who_looks_for_a_coordinator_during_a_stop_is_told_to_ask_again(tmp_path: Path, version: int) -> None:
    async with LoopBroker(tmp_path, clock=clock()) as broker:
        await broker.create_topic("data")
        await commit(broker, 1)
        broker.broker.release_waiting()
        request = m.FindCoordinatorRequest(key="g", coordinator_keys=["g", "h"])
        answer = await broker.call(request, version)
        codes = [one.error_code for one in answer.coordinators] if version >= 4 else [answer.error_code]
        assert codes == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * (2 if version >= 4 else 1)


async def test_a_coordinator_whose_topic_is_gone_before_it_knows_is_not_found(tmp_path: Path) -> None:
    async with LoopBroker(tmp_path, clock=clock()) as broker:
        await broker.create_topic("data")
        await commit(broker, 1)
        broker.broker.topics._subscribers.clear()  # who is to tell it has failed
        await broker.delete_topic("__consumer_offsets")
        (answer,) = (await broker.call(m.FindCoordinatorRequest(coordinator_keys=["g"]), 4)).coordinators
        assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
