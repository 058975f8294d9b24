"""A topic that is made again starts without offsets, whatever those of its predecessor were waiting for."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.coordinators.runtime import CoordinatorRuntime
from ottla.common.errors import ErrorCode
from ottla.protocol import messages as m
from tests.broker.test_answers_are_durable import FLUSHED, HeldDisk
from tests.support.loop_broker import LoopBroker
from tests.support.manual_clock import ManualClock
from tests.support.transaction_desk import Desk
from tests.support.transactional_client import all_codes, offsets_request


def clock() -> ManualClock:
    return ManualClock(time.time_ns() // 1_000_000)


async def committed(broker: LoopBroker) -> int:
    topic = m.OffsetFetchRequest.OffsetFetchRequestTopics(name="data", partition_indexes=[0])
    asked = m.OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=[topic])
    (group,) = (await broker.call(m.OffsetFetchRequest(groups=[asked]), 9)).groups
    assert not group.error_code
    return int(group.topics[0].partitions[0].committed_offset)


async def delete(broker: LoopBroker) -> None:
    await broker.delete_topic("data")


async def commit(broker: LoopBroker, offset: int) -> None:
    one = m.OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = m.OffsetCommitRequest.OffsetCommitRequestTopic(name="data", partitions=[one])
    await broker.call(m.FindCoordinatorRequest(key="g"), 3)
    answer = await broker.call(m.OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, topics=[topic]), 9)
    assert not any(all_codes(answer))


async def test_offsets_that_wait_for_the_end_of_a_transaction_go_too(tmp_path: Path) -> None:
    async with LoopBroker(tmp_path, clock=clock()) as broker:
        await broker.create_topic("data")
        desk = Desk(broker)
        who = await desk.init()
        await desk.ask(offsets_request("t", who, "g", {("data", 0): 42}), 5)
        await delete(broker)
        await broker.create_topic("data")
        await desk.end(who, True)
        assert await committed(broker) == -1
    async with LoopBroker(tmp_path, clock=clock()) as broker:
        await broker.loaded()
        assert await committed(broker) == -1


async def test_a_deletion_while_the_coordinator_loads_is_not_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with LoopBroker(tmp_path, clock=clock()) as broker:
        await broker.create_topic("data")
        await commit(broker, 42)
    may_load, load = asyncio.Event(), CoordinatorRuntime._load

    async def slowly(self: CoordinatorRuntime[Any]) -> None:
        await may_load.wait()
        await load(self)

    monkeypatch.setattr(CoordinatorRuntime, "_load", slowly)
    async with LoopBroker(tmp_path, clock=clock()) as broker:
        await delete(broker)
        await broker.create_topic("data")
        may_load.set()
        await broker.loaded()
        assert await committed(broker) == -1


async def test_a_crash_between_a_deletion_and_its_tombstones_brings_nothing_back(tmp_path: Path) -> None:
    async with LoopBroker(tmp_path, clock=clock()) as broker:
        await broker.create_topic("data")
        await commit(broker, 42)
        broker.broker.topics._subscribers.clear()  # the process ends before anybody hears of it
        await delete(broker)
    async with LoopBroker(tmp_path, clock=clock()) as broker:
        await broker.loaded()
        await broker.create_topic("data")
        assert await committed(broker) == -1


async def test_offsets_that_were_on_their_way_when_the_topic_was_deleted_are_refused(tmp_path: Path) -> None:
    disk = HeldDisk()
    async with LoopBroker(tmp_path, FLUSHED, disk=disk, clock=clock()) as broker:
        await broker.create_topic("data")
        desk = Desk(broker)
        who = await desk.init()
        await broker.call(m.FindCoordinatorRequest(key="g"), 3)
        disk.hold("__transaction_state")
        request = offsets_request("t", who, "g", {("data", 0): 42})
        late: asyncio.Future[Any] = asyncio.ensure_future(broker.call(request, 5))
        while not disk.waiting.is_set():
            await asyncio.sleep(0.001)
        await delete(broker)
        disk.let_go()
        assert all_codes(await asyncio.wait_for(late, 60)) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        await broker.create_topic("data")
        await desk.end(who, True)
        assert await committed(broker) == -1
