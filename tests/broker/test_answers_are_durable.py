"""With flush.messages=1 no answer of a coordinator shows what is not on disk yet: a power cut would make it untrue.

Each case is a write whose fsync is held back, and a question about it. While the disk is held the question has no
answer; when the disk lets go the answer shows the write; when the disk fails the answer is an error.
"""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.coordinators.coordinator_shard import answered
from ottla.broker.turns import Turns
from ottla.common.errors import ApiError, ErrorCode
from ottla.protocol import messages as m
from ottla.storage.disk import Disk
from tests.support.loop_broker import LoopBroker
from tests.support.subscriptions import write_subscription
from tests.support.transactional_client import (
    Identity,
    add_codes,
    add_request,
    all_codes,
    end_request,
    init_request,
    offsets_request,
)

FLUSHED = {"log.flush.interval.messages": "1", "group.initial.rebalance.delay.ms": "0"}
TURNS = 200


class HeldDisk(Disk):
    """While it is held, an fsync of a log in `folder` waits; then it is done, or fails if the disk is `broken`."""

    def __init__(self) -> None:
        self.folder = ""
        self.go = threading.Event()
        self.go.set()
        self.waiting = threading.Event()
        self.broken = False

    def hold(self, folder: str) -> None:
        self.folder = folder
        self.waiting.clear()
        self.go.clear()

    def let_go(self, *, broken: bool = False) -> None:
        self.broken = broken
        self.go.set()

    def fsync(self, fd: int) -> None:
        if self.folder and self.folder in os.readlink(f"/proc/self/fd/{fd}"):
            self.waiting.set()
            assert self.go.wait(60)
            if self.broken:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().fsync(fd)


class Scene:
    """A classic member, a consumer member, and a transaction with offsets that is open."""

    def __init__(self, broker: LoopBroker) -> None:
        self.call = broker.call
        self.groups = broker.broker.groups

    async def prepare(self) -> None:
        await self.call(m.FindCoordinatorRequest(key="g"), 3)
        join = self._join("")
        answer = await self.call(join, 9)
        join.member_id = self.member_id = answer.member_id
        self.generation = (await self.call(join, 9)).generation_id
        sync = m.SyncGroupRequest(group_id="classic", member_id=self.member_id, generation_id=self.generation)
        assert not (await self.call(sync, 4)).error_code
        self.epoch = (await self.beat("first", 0)).member_epoch
        answer = await self.call(init_request("t"), 5)
        self.who = Identity(answer.producer_id, answer.producer_epoch)
        answer = await self.call(offsets_request("t", self.who, "g", {("orders", 0): 42}), 5)
        assert not any(all_codes(answer))

    def _join(self, member_id: str) -> m.JoinGroupRequest:
        protocol = m.JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=write_subscription(["orders"]))
        return m.JoinGroupRequest(
            group_id="classic",
            member_id=member_id,
            session_timeout_ms=45_000,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=[protocol],
        )

    # --- writes

    async def commit(self) -> None:
        one = m.OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=7)
        topic = m.OffsetCommitRequest.OffsetCommitRequestTopic(name="orders", partitions=[one])
        await self.call(m.OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, topics=[topic]), 9)

    async def beat(self, member_id: str, epoch: int) -> Any:
        request = m.ConsumerGroupHeartbeatRequest(
            group_id="modern",
            member_id=member_id,
            member_epoch=epoch,
            rebalance_timeout_ms=60_000 if epoch == 0 else -1,
            subscribed_topic_names=["orders"] if epoch == 0 else None,
            topic_partitions=[] if epoch == 0 else None,
        )
        return await self.call(request, 1)

    async def join_modern(self) -> None:
        await self.beat("second", 0)

    async def end(self) -> None:
        await self.call(end_request("t", self.who, True), 5)

    async def init_other(self) -> None:
        await self.call(init_request("other"), 5)

    async def add_partition(self) -> None:
        await self.call(add_request("t", self.who, {"orders": [1]}), 3)

    # --- questions, each with whether the answer shows the write, or the error it is

    async def offset_of(self, version: int, offset: int) -> bool | ErrorCode:
        if version >= 8:
            asked = m.OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=None)
            (group,) = (await self.call(m.OffsetFetchRequest(groups=[asked]), version)).groups
        else:
            group = await self.call(m.OffsetFetchRequest(group_id="g", topics=None), version)
        if group.error_code:
            return ErrorCode(group.error_code)
        return [one.committed_offset for topic in group.topics for one in topic.partitions] == [offset]

    async def heartbeat(self) -> bool | ErrorCode:
        answer = await self.call(
            m.HeartbeatRequest(group_id="classic", member_id=self.member_id, generation_id=self.generation), 4
        )
        return ErrorCode(answer.error_code) if answer.error_code else True

    async def modern_heartbeat(self) -> bool | ErrorCode:
        answer = await self.beat("first", self.epoch)
        return ErrorCode(answer.error_code) if answer.error_code else True

    async def listed(self) -> bool | ErrorCode:
        answer = await self.call(m.ListGroupsRequest(), 5)
        return ErrorCode(answer.error_code) if answer.error_code else "g" in [one.group_id for one in answer.groups]

    async def described(self) -> bool | ErrorCode:
        (group,) = (await self.call(m.DescribeGroupsRequest(groups=["g"]), 5)).groups
        return ErrorCode(group.error_code) if group.error_code else bool(group.group_state == "Empty")

    async def modern_described(self) -> bool | ErrorCode:
        (group,) = (await self.call(m.ConsumerGroupDescribeRequest(group_ids=["modern"]), 1)).groups
        return ErrorCode(group.error_code) if group.error_code else len(group.members) == 2

    async def transaction_described(self) -> bool | ErrorCode:
        (state,) = (await self.call(m.DescribeTransactionsRequest(transactional_ids=["other"]), 0)).transaction_states
        return ErrorCode(state.error_code) if state.error_code else bool(state.transaction_state == "Empty")

    async def transactions_listed(self) -> bool | ErrorCode:
        answer = await self.call(m.ListTransactionsRequest(), 1)
        if answer.error_code:
            return ErrorCode(answer.error_code)
        return "other" in [one.transactional_id for one in answer.transaction_states]

    async def verified(self) -> bool | ErrorCode:
        (code,) = add_codes(await self.call(add_request("t", self.who, {"orders": [1]}, verify=True), 4))
        return code or True


Write = Callable[[Scene], Awaitable[None]]
Question = Callable[[Scene], Awaitable[bool | ErrorCode]]
GROUPS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
_SENT_AWAY = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)

CASES: dict[str, tuple[str, Write, Question]] = {
    "OffsetFetch, several groups": (GROUPS, Scene.commit, lambda scene: scene.offset_of(9, 7)),
    "OffsetFetch, one group": (GROUPS, Scene.commit, lambda scene: scene.offset_of(5, 7)),
    "OffsetFetch after the marker of a transaction": (GROUPS, Scene.end, lambda scene: scene.offset_of(9, 42)),
    "Heartbeat": (GROUPS, Scene.commit, Scene.heartbeat),
    "ConsumerGroupHeartbeat": (GROUPS, Scene.commit, Scene.modern_heartbeat),
    "ListGroups": (GROUPS, Scene.commit, Scene.listed),
    "DescribeGroups": (GROUPS, Scene.commit, Scene.described),
    "ConsumerGroupDescribe": (GROUPS, Scene.join_modern, Scene.modern_described),
    "DescribeTransactions": (TRANSACTIONS, Scene.init_other, Scene.transaction_described),
    "ListTransactions": (TRANSACTIONS, Scene.init_other, Scene.transactions_listed),
    "AddPartitionsToTxn that verifies": (TRANSACTIONS, Scene.add_partition, Scene.verified),
}


@pytest.fixture
async def held(tmp_path: Path) -> AsyncIterator[tuple[Scene, HeldDisk]]:
    disk = HeldDisk()
    async with LoopBroker(tmp_path, FLUSHED, disk=disk) as broker:
        await broker.create_topic("orders", 2)
        scene = Scene(broker)
        await scene.prepare()
        yield scene, disk
        disk.let_go(broken=disk.broken)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("fails", [False, True], ids=["the disk is slow", "the disk fails"])
async def test_no_answer_shows_what_is_not_on_disk(held: tuple[Scene, HeldDisk], case: str, fails: bool) -> None:
    scene, disk = held
    folder, write, question = CASES[case]
    disk.hold(folder)
    writing = asyncio.ensure_future(write(scene))
    while not disk.waiting.is_set():
        await asyncio.sleep(0.001)
    asking = asyncio.ensure_future(question(scene))
    await _turns()
    assert not writing.done()
    assert not asking.done(), f"answered before it was on disk: {asking.result()}"
    disk.let_go(broken=fails)
    answer = await asyncio.wait_for(asking, 60)
    await asyncio.wait_for(writing, 60)
    if fails:
        assert answer in _SENT_AWAY
        assert await question(scene) in _SENT_AWAY, "nor later: what is in memory may not be there tomorrow"
    else:
        assert answer is True


async def _turns() -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)


async def test_what_follows_a_flush_and_fails_keeps_nobody_else_waiting(
    held: tuple[Scene, HeldDisk], caplog: pytest.LogCaptureFixture
) -> None:
    scene, disk = held
    shard = scene.groups.shard("g")
    disk.hold(GROUPS)
    writing = asyncio.ensure_future(scene.commit())
    while not disk.waiting.is_set():
        await asyncio.sleep(0.001)

    def fail(*_: Any) -> None:
        raise RuntimeError("a bug")

    out = shard.begin()
    out.after_commit(fail)
    shard.settle(out)
    disk.let_go()
    with pytest.raises(ApiError) as failed:
        await asyncio.wait_for(Turns().queue(answered(out)), 60)
    assert failed.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert any(one.exc_info and "a bug" in str(one.exc_info[1]) for one in caplog.records)
    await asyncio.wait_for(writing, 60)
    await asyncio.wait_for(scene.commit(), 60)
    assert await asyncio.wait_for(scene.offset_of(9, 7), 60) is True
