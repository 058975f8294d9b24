"""What coordinators make of a log that is damaged, and of work that fails: nobody is answered from half of it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from ottla.broker.coordinators.groups.group_shard import GroupShard
from ottla.common.errors import ErrorCode
from ottla.protocol import messages as m
from ottla.records.record import iterate_batches
from tests.broker.test_offsets_of_deleted_topics import commit, committed
from tests.groups.desk import Desk as GroupDesk
from tests.support.loop_broker import LoopBroker
from tests.support.manual_clock import ManualClock
from tests.support.transaction_desk import Desk
from tests.support.transactional_client import init_request

PATIENCE_S = 60


def clock() -> ManualClock:
    return ManualClock(time.time_ns() // 1_000_000)


def damage_second_batch(folder: Path) -> None:
    """Its length makes no sense. A clean stop: nothing is checked at the next start."""
    (path,) = folder.glob("*.log")
    data = bytearray(path.read_bytes())
    positions = [position for position, _ in iterate_batches(data)]
    assert len(positions) > 2
    data[positions[1] + 8 : positions[1] + 12] = b"\x7f\xff\xff\xff"
    path.write_bytes(data)


async def until_logged(caplog: pytest.LogCaptureFixture, text: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not any(text in one.getMessage() for one in caplog.records):
            await asyncio.sleep(0.001)


async def test_half_a_log_of_offsets_answers_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with LoopBroker(tmp_path, clock=clock()) as broker:
        await broker.create_topic("data")
        for offset in range(1, 5):
            await commit(broker, offset)
        assert await committed(broker) == 4
    damage_second_batch(tmp_path / "__consumer_offsets-0")
    async with LoopBroker(tmp_path, clock=clock()) as broker:
        await until_logged(caplog, "cannot be loaded")
        asked = m.OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=None)
        (group,) = (await broker.call(m.OffsetFetchRequest(groups=[asked]), 9)).groups
        assert ErrorCode(group.error_code) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


async def test_a_log_that_could_not_be_read_is_tried_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with LoopBroker(tmp_path, clock=clock()) as broker:
        await broker.create_topic("data")
        for offset in range(1, 5):
            await commit(broker, offset)
    (path,) = (tmp_path / "__consumer_offsets-0").glob("*.log")
    whole = path.read_bytes()
    damage_second_batch(path.parent)
    async with LoopBroker(tmp_path, clock=clock(), jumps=True) as broker:
        await until_logged(caplog, "cannot be loaded")
        with path.open("r+b") as file:
            file.write(whole)
        while broker.broker.groups.runtime.is_loading:
            await broker.pass_time(1_000)
        assert await committed(broker) == 4


async def test_who_resigns_while_it_loads_never_answers(tmp_path: Path) -> None:
    async with LoopBroker(tmp_path, clock=clock()) as broker:
        await broker.create_topic("data")
        for offset in range(1, 5):
            await commit(broker, offset)
        runtime = broker.broker.groups.runtime
        partition = broker.broker.partitions.get("__consumer_offsets", 0)
        assert partition is not None
        shard = runtime._shards[0] = runtime._make_shard(partition)
        loading = runtime._load_one(partition, shard)
        next(loading)
        runtime.resign(0)
        for _ in loading:
            pass
        assert shard.is_loading


async def test_half_a_log_of_transactions_answers_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with LoopBroker(tmp_path, clock=clock()) as broker:
        await broker.create_topic("data")
        desk = Desk(broker)
        who = await desk.init()
        await desk.produce(who)
        await desk.end(who, True)
    damage_second_batch(tmp_path / "__transaction_state-0")
    async with LoopBroker(tmp_path, clock=clock()) as broker:
        await until_logged(caplog, "cannot be loaded")
        code = await Desk(broker).code(init_request("t"), 5)
        assert code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_a_timer_that_fails_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = GroupDesk()
    alarms: list[int] = []
    monkeypatch.setattr(desk.shard, "_set_alarm", alarms.append)
    ids, generation = desk.stable_group("one", "two")
    fire, failures = GroupShard.fire, [RuntimeError("a bug")]

    def fail_once(self: GroupShard, *rest: object) -> None:
        if failures:
            raise failures.pop()
        fire(self, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(GroupShard, "fire", fail_once)
    desk.clock.advance(10_000)
    alarms.clear()
    with pytest.raises(RuntimeError):
        desk.shard.fire_timers()
    assert alarms, "whoever sets the alarm is told of those that are still due"
    desk.wait(1)
    assert desk.heartbeat(ids[1], generation) is not ErrorCode.NONE
