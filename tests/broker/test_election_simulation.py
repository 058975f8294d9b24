"""Coordinators that resign and are elected at any time, under clients that try again and a disk that is held at times.

- What a client was told holds: committed offsets, committed transactions; nobody sees what was aborted.
- What a coordinator knows in memory is what the log of its partition says.
"""

from __future__ import annotations

import asyncio
import os
import random
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from ottla.common.errors import ErrorCode
from ottla.protocol import messages as m
from ottla.protocol.codec import Message
from ottla.storage.disk import Disk
from tests.support import transactional_client as t
from tests.support.loop_broker import LoopBroker
from tests.support.manual_clock import ManualClock
from tests.support.raw_client import fetch_request

PATIENCE_S = 60
ROUNDS = 5
PRODUCERS = 2
FLUSHED = {"log.flush.interval.messages": "1"}
_TRY_AGAIN = {
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_ENOUGH_REPLICAS,
}


class GatedDisk(Disk):
    """Logs are synced while the gate is open."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()

    def fsync(self, fd: int) -> None:
        if os.readlink(f"/proc/self/fd/{fd}").endswith(".log"):
            assert self.gate.wait(PATIENCE_S)
        super().fsync(fd)


class World:
    def __init__(self, broker: LoopBroker, disk: GatedDisk, rng: random.Random) -> None:
        self.broker, self.disk, self.rng = broker, disk, rng
        self.runtimes = (broker.broker.groups.runtime, broker.broker.transactions.runtime)
        # What clients were told: the highest offset, values of transactions by partition.
        self.offset = -1
        self.committed: list[list[bytes]] = [[] for _ in range(PRODUCERS)]
        self.aborted: set[bytes] = set()

    async def ask(self, request: Message, version: int) -> Any:
        while True:
            answer = await self.broker.call(request, version)
            codes = {ErrorCode(code) for code in t.all_codes(answer) if code}
            if not codes:
                return answer
            assert codes <= _TRY_AGAIN, codes
            await asyncio.sleep(0.001)

    async def produce(self, partition: int) -> None:
        """Transactions one after the other; some are left open, and the next InitProducerId aborts them."""
        name = f"t{partition}"
        for number in range(ROUNDS):
            answer = await self.ask(t.init_request(name), 5)
            who = t.Identity(answer.producer_id, answer.producer_epoch)
            values = [b"%d-%d-%d" % (partition, number, place) for place in range(self.rng.randint(1, 3))]
            for place, value in enumerate(values):
                batch = t.transactional_batch(who, value, sequence=place)
                await self.ask(t.produce_request(name, batch, "data", partition), 12)
            choice = self.rng.choice(("commit", "abort", "leave"))
            if choice == "commit":
                self.committed[partition] += values
            else:
                self.aborted.update(values)
            if choice != "leave":
                await self.ask(t.end_request(name, who, choice == "commit"), 5)
        await self.ask(t.init_request(name), 5)

    async def commit(self) -> None:
        for offset in range(10 * ROUNDS):
            one = m.OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
            topic = m.OffsetCommitRequest.OffsetCommitRequestTopic(name="data", partitions=[one])
            await self.ask(m.OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, topics=[topic]), 9)
            self.offset = offset

    async def disturb(self) -> None:
        while True:
            act = self.rng.random()
            if act < 0.5:
                runtime = self.rng.choice(self.runtimes)
                runtime.resign(0)
                await self.turns(self.rng.choice((0, 0, 1, 5)))
                self.elect(runtime)
            elif act < 0.7:
                self.disk.gate.clear()
            elif act < 0.95:
                self.disk.gate.set()
            else:
                await self.broker.pass_time(1_100)
            await self.turns(self.rng.choice((0, 1, 5, 20)))
            await asyncio.sleep(0.0005)

    async def turns(self, count: int) -> None:
        for _ in range(count):
            await asyncio.sleep(0)

    def elect(self, runtime: Any) -> None:
        partition = self.broker.broker.partitions.get(runtime._topic, 0)
        assert partition is not None
        runtime.elect(partition)

    # --- at the end

    def memory(self) -> tuple[Any, Any]:
        groups, transactions = (runtime.get(0) for runtime in self.runtimes)
        return (
            (groups.state.offsets.by_group, groups.state.offsets.pending, sorted(groups.state.groups)),
            {one.transactional_id: one for one in transactions.coordinator},
        )

    async def check(self) -> None:
        while any(one.coordinator.unfinished() for one in self.broker.broker.transactions.runtime.all()):
            await self.broker.pass_time(1_100)
            await asyncio.sleep(0.001)
        before = self.memory()
        for runtime in self.runtimes:
            runtime.resign(0)
            self.elect(runtime)
        await self.broker.loaded()
        assert self.memory() == before
        assert before[0][0]["g"]["data"][0].offset == self.offset
        for partition in range(PRODUCERS):
            asked = fetch_request([("data", partition, 0)], isolation_level=1, max_wait_ms=0)
            line = (await self.broker.call(asked, 12)).responses[0].partitions[0]
            assert line.last_stable_offset == line.high_watermark
            found = t.committed_records(bytes(line.records or b""), line.aborted_transactions, line.last_stable_offset)
            values = [one.value for one in found]
            assert values == self.committed[partition] and not self.aborted.intersection(values)


@pytest.mark.parametrize("properties", [{}, FLUSHED], ids=["not flushed", "each write is flushed"])
@pytest.mark.parametrize("seed", range(4))
async def test_what_was_told_holds_whoever_coordinates(tmp_path: Path, seed: int, properties: dict[str, str]) -> None:
    disk, rng = GatedDisk(), random.Random(seed)
    clock = ManualClock(time.time_ns() // 1_000_000)
    async with LoopBroker(tmp_path, properties, clock=clock, disk=disk, jumps=True) as broker:
        await broker.create_topic("data", PRODUCERS)
        await broker.call(m.FindCoordinatorRequest(key="g"), 3)
        world = World(broker, disk, rng)
        await world.ask(t.init_request("t0"), 5)
        disturbing = asyncio.ensure_future(world.disturb())
        try:
            work = [world.commit(), *map(world.produce, range(PRODUCERS))]
            await asyncio.wait_for(asyncio.gather(*work), PATIENCE_S)
        finally:
            disturbing.cancel()
            disk.gate.set()
            await asyncio.wait([disturbing])
        for runtime in world.runtimes:
            if runtime.get(0) is None:
                world.elect(runtime)
        await broker.loaded()
        await world.check()
