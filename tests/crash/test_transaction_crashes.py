"""The broker dies at each write of a row of transactions, before it or after it; the next start makes them whole.

What was answered holds; what was not is there in all partitions and in the group's offsets, or in none; a decision that
is in the log is never taken back; readers of committed records get to the end of every partition.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.coordinators.coordinator_log import CoordinatorLog
from ottla.broker.coordinators.transactions.transaction_markers import MarkerWriter
from ottla.common.errors import ErrorCode
from ottla.protocol import messages as m
from ottla.records.record import iterate_batches, read_records
from ottla.transactions.states import TxnState
from ottla.transactions.transaction import Transaction, decode_value
from tests.support.loop_broker import Crash, CrashDisk, LoopBroker
from tests.support.manual_clock import ManualClock
from tests.support.raw_client import fetch_request
from tests.support.transactional_client import (
    Identity,
    add_offsets_request,
    add_request,
    all_codes,
    committed_records,
    end_request,
    init_request,
    offsets_request,
    produce_request,
    transactional_batch,
)

PARTITIONS = 3
TIMEOUT_MS = 10_000
# Markers are written in milliseconds; a broker that never writes them is found out after this.
SETTLED_S_MAX = 10.0
# Each transaction: the partitions it writes to, and the offset it commits for the group.
WRITES_TO = {"one": {0, 1}, "two": {0, 2}, "three": {0, 1, 2}, "four": {1, 2}, "five": {0, 1, 2}, "six": {0, 1, 2}}
OFFSETS = {name: number for number, name in enumerate(WRITES_TO, 1)}


def clock_now() -> ManualClock:
    return ManualClock(time.time_ns() // 1_000_000)


@dataclass
class Story:
    """What the clients of one run were told."""

    begun: list[str] = field(default_factory=list)
    answered: dict[str, bool] = field(default_factory=dict)  # transaction -> committed


class Client:
    def __init__(self, broker: LoopBroker, version: int, story: Story) -> None:
        self.broker = broker
        self.version = version
        self.story = story
        self.who = Identity(-1, -1)
        self.sequences: dict[int, int] = {}

    async def call(self, request: Any, version: int) -> Any:
        """As clients do: asked again while the markers of the transaction before are being written, in turns."""
        deadline = time.monotonic() + SETTLED_S_MAX
        while True:
            answer = await self.broker.call(request, version)
            if ErrorCode.CONCURRENT_TRANSACTIONS not in all_codes(answer) or time.monotonic() > deadline:
                break
            await asyncio.sleep(0.001)
        assert not any(all_codes(answer)), answer
        return answer

    async def init(self) -> None:
        answer = await self.call(init_request("t", TIMEOUT_MS), 5)
        self.who = Identity(answer.producer_id, answer.producer_epoch)

    async def transaction(self, name: str, commit: bool | None) -> None:
        """`commit` None leaves it open."""
        self.story.begun.append(name)
        for partition in sorted(WRITES_TO[name]):
            if self.version < 2:
                await self.call(add_request("t", self.who, {"data": [partition]}), 3)
            sequence = self.sequences.get(partition, 0)
            batch = transactional_batch(self.who, name.encode(), sequence=sequence)
            await self.call(produce_request("t", batch, "data", partition), 12 if self.version >= 2 else 11)
            self.sequences[partition] = sequence + 1
        if self.version < 2:
            await self.call(add_offsets_request("t", self.who, "g"), 3)
        request = offsets_request("t", self.who, "g", {("data", 0): OFFSETS[name]})
        await self.call(request, 5 if self.version >= 2 else 3)
        if commit is None:
            return
        answer = await self.call(end_request("t", self.who, commit), 5 if self.version >= 2 else 3)
        self.story.answered[name] = commit
        if self.version >= 2:
            self.who = Identity(answer.producer_id, answer.producer_epoch)
            self.sequences.clear()


async def tell(broker: LoopBroker, version: int, story: Story) -> None:
    client = Client(broker, version, story)
    await client.init()
    await client.transaction("one", True)
    await client.transaction("two", False)
    await client.transaction("three", True)
    await client.transaction("four", None)
    second = Client(broker, version, story)
    await second.init()
    story.answered["four"] = False
    await second.transaction("five", True)


async def prepare(folder: Path, clock: ManualClock, disk: CrashDisk) -> LoopBroker:
    broker = LoopBroker(folder, disk=disk, clock=clock)
    await broker.__aenter__()
    await broker.create_topic("data", PARTITIONS)
    await broker.broker.transactions.runtime.make_topic()
    await broker.broker.groups.runtime.make_topic()
    return broker


async def visible(broker: LoopBroker) -> tuple[list[set[str]], int]:
    """The transactions that a reader of committed records finds in each partition, and the group's offset."""
    found = []
    deadline = time.monotonic() + SETTLED_S_MAX
    for index in range(PARTITIONS):
        partition = broker.broker.partitions.get("data", index)
        assert partition is not None
        while partition.log.last_stable_offset < partition.log.log_end_offset and time.monotonic() < deadline:
            await asyncio.sleep(0.001)
        assert partition.log.last_stable_offset == partition.log.high_watermark == partition.log.log_end_offset
        request = fetch_request([("data", index, 0)], isolation_level=1, max_wait_ms=0)
        line = (await broker.call(request, 12)).responses[0].partitions[0]
        assert not line.error_code
        records = committed_records(bytes(line.records or b""), line.aborted_transactions, line.last_stable_offset)
        values = [(record.value or b"").decode() for record in records]
        assert values == sorted(set(values), key=list(OFFSETS).index), "out of order, or there twice"
        found.append(set(values))
    asked = m.OffsetFetchRequest
    topics = [asked.OffsetFetchRequestTopics(name="data", partition_indexes=[0])]
    group = asked.OffsetFetchRequestGroup(group_id="g", topics=topics)
    answer = await broker.call(asked(groups=[group], require_stable=True), 8)
    row = answer.groups[0].topics[0].partitions[0]
    assert not row.error_code
    return found, row.committed_offset


def decided_in_log(folder: Path) -> list[bool]:
    """The outcomes that were written down, in order."""
    data = b"".join(path.read_bytes() for path in sorted((folder / "__transaction_state-0").glob("*.log")))
    outcomes = []
    for position, _ in iterate_batches(data):
        for record in read_records(data, position):
            state = decode_value("t", record.value or b"").state
            if state.is_decided:
                outcomes.append(state is TxnState.PREPARE_COMMIT)
    return outcomes


async def check(broker: LoopBroker, clock: ManualClock, story: Story, decided: list[bool]) -> None:
    await broker.loaded()
    clock.advance(TIMEOUT_MS + 1)
    await broker.broker.transactions.abort_overdue()
    partitions, offset = await visible(broker)
    outcomes = {}
    for name in story.begun:
        seen = {index for index in range(PARTITIONS) if name in partitions[index]}
        assert seen in (set(), WRITES_TO[name]), f"{name} is torn: {seen}"
        outcomes[name] = bool(seen)
        assert outcomes[name] == story.answered.get(name, outcomes[name]), f"{name} was answered otherwise"
    assert [outcomes[name] for name in story.begun][: len(decided)] == decided, "a decision was taken back"
    assert offset == max((OFFSETS[name] for name, committed in outcomes.items() if committed), default=-1)
    client = Client(broker, 2, Story())
    await client.init()
    await client.transaction("six", True)
    partitions, offset = await visible(broker)
    assert all("six" in one for one in partitions)
    assert offset == OFFSETS["six"]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_a_crash_at_each_write_leaves_whole_transactions(tmp_path: Path, version: int, after: bool) -> None:
    for at in itertools.count(1):
        folder, clock, disk, story = tmp_path / str(at), clock_now(), CrashDisk(), Story()
        broker = await prepare(folder, clock, disk)
        disk.at, disk.after = len(disk.steps) + at, after
        try:
            await tell(broker, version, story)
        except Crash:
            pass
        await broker.crash()
        decided = decided_in_log(folder)
        async with LoopBroker(folder, clock=clock) as again:
            await check(again, clock, story, decided)
        if not disk.dead:
            assert at > 50, "every kind of step was hit"
            return


async def crash_after_decision(folder: Path, clock: ManualClock, version: int, number: int) -> Story | None:
    """Die just after the n-th decision was written down; None if there are not so many."""
    disk, story = CrashDisk(), Story()
    broker = await prepare(folder, clock, disk)

    class Stop(CoordinatorLog):
        left = number

        def append(self, records: Sequence[Transaction], producer: tuple[int, int] | None) -> int:
            offset = super().append(records, producer)
            if records[0].state.is_decided:
                Stop.left -= 1
                if not Stop.left:
                    disk.dead = True
                    raise Crash("after a decision")
            return offset

    for shard in broker.broker.transactions.runtime.all():
        shard.log.__class__ = Stop
    try:
        await tell(broker, version, story)
    except Crash:
        await broker.crash()
        return story
    await broker.crash()
    return None


@pytest.mark.parametrize("version", [1, 2])
async def test_a_second_crash_while_the_first_is_mended(tmp_path: Path, version: int) -> None:
    """Just after a decision, then at each write of the start after it."""
    for number in itertools.count(1):
        for again_at in (1, 2, 3, 4):
            folder, clock = tmp_path / f"{number}-{again_at}", clock_now()
            story = await crash_after_decision(folder, clock, version, number)
            if story is None:
                assert number == 6
                return
            decided = decided_in_log(folder)
            dying = CrashDisk(again_at)
            second = LoopBroker(folder, clock=clock, disk=dying)
            await second.__aenter__()
            while second.broker.transactions.runtime.is_loading and not dying.dead:
                await asyncio.sleep(0.001)
            await second.crash()
            async with LoopBroker(folder, clock=clock) as third:
                await check(third, clock, story, decided)


async def test_a_broker_that_forgets_decisions_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks above are worth something."""
    clock = clock_now()
    story = await crash_after_decision(tmp_path, clock, 2, 1)
    assert story is not None
    decided = decided_in_log(tmp_path)

    async def forget(writer: MarkerWriter, shard: object) -> None:
        pass

    monkeypatch.setattr(MarkerWriter, "finish", forget)
    async with LoopBroker(tmp_path, clock=clock) as again:
        with pytest.raises(AssertionError):
            await check(again, clock, story, decided)
