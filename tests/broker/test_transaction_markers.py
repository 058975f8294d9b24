"""Markers that cannot be written: how often they are tried, when they are given up, what is never taken for done."""

from __future__ import annotations

import logging
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.coordinators.transactions.transaction_markers import MarkerWriter
from ottla.common.errors import ErrorCode
from ottla.common.ids import TopicPartition
from ottla.protocol import messages as m
from tests.support.loop_broker import LoopBroker
from tests.support.manual_clock import ManualClock
from tests.support.transaction_desk import Desk, FussyDisk
from tests.support.transactional_client import Identity, end_request, init_request

SECONDS = 12


def clock() -> ManualClock:
    return ManualClock(time.time_ns() // 1_000_000)


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often a marker was tried, by destination."""
    counted: Counter[str] = Counter()
    write = MarkerWriter.write

    def counting(self: MarkerWriter, where: TopicPartition, *rest: Any) -> Any:
        counted[str(where)] += 1
        return write(self, where, *rest)

    monkeypatch.setattr(MarkerWriter, "write", counting)
    return counted


async def decided(desk: Desk, count: int, partition: int) -> dict[str, Identity]:
    """That many transactions of one coordinator partition, decided; their markers are due in `partition`."""
    names = [f"t{number}" for number in range(count)]
    holders = {name: await desk.init(name) for name in names}
    for name, who in holders.items():
        await desk.produce(who, name.encode(), name=name, partition=partition)
    return holders


@pytest.mark.parametrize("count", [1, 2, 20])
@pytest.mark.parametrize("fault", ["full", "offline"])
async def test_a_destination_is_tried_once_a_second_however_many_wait_for_it(
    tmp_path: Path, attempts: Counter[str], count: int, fault: str
) -> None:
    disk, dirs = FussyDisk(), f"{tmp_path / 'one'},{tmp_path / 'two'}"
    async with LoopBroker(tmp_path, {"log.dirs": dirs}, clock=clock(), disk=disk, jumps=True) as broker:
        await broker.create_topic("data", 4)
        desk = Desk(broker)
        await desk.init("t0")  # the coordinator's topic is there, and we know where
        coordinator = desk.log("__transaction_state").dir.parent
        partition = next(one for one in range(4) if desk.log("data", one).dir.parent != coordinator)
        holders = await decided(desk, count, partition)
        (disk.full if fault == "full" else disk.broken).add(f"data-{partition}")
        for name, who in holders.items():
            await desk.end(who, True, name)
        attempts.clear()
        for _ in range(SECONDS):
            await broker.pass_time(1_000)
            await desk.transactions.abort_overdue()  # as the broker does now and then
        assert attempts == {f"data-{partition}": SECONDS}
        assert {await desk.state(name) for name in holders} == {"PrepareCommit"}
        if fault == "full":
            disk.full.clear()
            await broker.pass_time(1_000)
            await broker.pass_time(0)
            assert {await desk.state(name) for name in holders} == {"CompleteCommit"}
            assert sorted(await desk.read(partition=partition)) == sorted(name.encode() for name in holders)


async def test_a_full_disk_under_the_coordinator_holds_back_completions_and_no_markers(
    tmp_path: Path, attempts: Counter[str]
) -> None:
    disk = FussyDisk()
    async with LoopBroker(tmp_path, clock=clock(), disk=disk, jumps=True) as broker:
        await broker.create_topic("data", 2)
        desk = Desk(broker)
        holders = await decided(desk, 5, 1)
        disk.full.add("data-1")
        for name, who in holders.items():
            await desk.end(who, True, name)
        disk.full.clear()
        disk.full.add("__transaction_state-0")
        attempts.clear()
        for _ in range(SECONDS):
            await broker.pass_time(1_000)
        assert attempts == {"data-1": 5}, "each marker is written once"
        assert len(await desk.read(partition=1)) == 5
        assert disk.refused["__transaction_state-0"] <= SECONDS + 5
        assert {await desk.state(name) for name in holders} == {"PrepareCommit"}
        disk.full.clear()
        await broker.pass_time(1_000)
        await broker.pass_time(0)
        assert {await desk.state(name) for name in holders} == {"CompleteCommit"}


async def test_a_marker_that_is_refused_for_good_is_dropped(tmp_path: Path, attempts: Counter[str]) -> None:
    """Somebody ended the transaction in one partition by hand, with a later epoch."""
    async with LoopBroker(tmp_path, clock=clock(), jumps=True) as broker:
        await broker.create_topic("data", 2)
        desk = Desk(broker)
        who = await desk.init()
        await desk.produce(who, b"kept")
        await desk.produce(who, b"ended by hand", partition=1)
        await _abort_by_hand(desk, who.producer_id, who.epoch + 5, 1)
        attempts.clear()
        after = await desk.end(who, True)
        for _ in range(SECONDS):
            await broker.pass_time(1_000)
            await desk.transactions.abort_overdue()
        assert attempts == {"data-0": 1, "data-1": 1}
        assert (await desk.read(), await desk.read(partition=1)) == ([b"kept"], [])
        assert await desk.state() == "CompleteCommit"
        assert await desk.code(end_request("t", after, False), 5) is ErrorCode.NONE


async def _abort_by_hand(desk: Desk, producer_id: int, epoch: int, partition: int) -> None:
    asked = m.WriteTxnMarkersRequest
    request = asked(
        markers=[
            asked.WritableTxnMarker(
                producer_id=producer_id,
                producer_epoch=epoch,
                transaction_result=False,
                coordinator_epoch=0,
                topics=[asked.WritableTxnMarkerTopic(name="data", partition_indexes=[partition])],
            )
        ]
    )
    await desk.ask(request, 1)


async def test_a_partition_that_is_not_here_is_not_taken_for_deleted(tmp_path: Path) -> None:
    async with LoopBroker(tmp_path, clock=clock(), jumps=True) as broker:
        await broker.create_topic("data", 2)
        desk = Desk(broker)
        who = await desk.init()
        await desk.produce(who, b"x", partition=1)
        topic, partitions = broker.broker.image.topics["data"], broker.broker.partitions
        held = {one.index: one for one in partitions.of_topic("data")}
        partitions.remove_topic(topic)
        await desk.end(who, True)
        await broker.pass_time(1_000)
        assert await desk.state() == "PrepareCommit"
        partitions.add_topic(topic, held)
        await broker.pass_time(1_000)
        assert await desk.state() == "CompleteCommit"
        assert await desk.read(partition=1) == [b"x"]


async def test_a_topic_that_is_deleted_while_its_markers_wait_holds_nothing_back(tmp_path: Path) -> None:
    disk = FussyDisk()
    async with LoopBroker(tmp_path, clock=clock(), disk=disk, jumps=True) as broker:
        await broker.create_topic("data", 2)
        desk = Desk(broker)
        who = await desk.init()
        await desk.produce(who, b"x", partition=1)
        disk.full.add("data-1")
        await desk.end(who, True)
        assert await desk.state() == "PrepareCommit"
        await broker.delete_topic("data")
        await broker.pass_time(1_000)
        assert await desk.state() == "CompleteCommit"
        assert await desk.code(init_request("t"), 5) is ErrorCode.NONE


async def test_a_failure_that_nobody_foresaw_is_logged_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    disk = FussyDisk()
    async with LoopBroker(tmp_path, clock=clock(), disk=disk, jumps=True) as broker:
        await broker.create_topic("data", 2)
        desk = Desk(broker)
        who = await desk.init()
        await desk.produce(who, b"x", partition=1)
        disk.full.add("data-1")
        await desk.end(who, True)
        with monkeypatch.context() as patch, caplog.at_level(logging.ERROR, "ottla.transactions"):

            def broken(*_: Any) -> None:
                raise RuntimeError("a bug")

            patch.setattr(MarkerWriter, "write", broken)
            await broker.pass_time(1_000)
            assert any(one.exc_info and "a bug" in str(one.exc_info[1]) for one in caplog.records)
        disk.full.clear()
        await broker.pass_time(1_000)
        assert await desk.state() == "CompleteCommit"
