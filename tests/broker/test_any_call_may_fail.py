"""Whichever system call fails, everybody is answered, what was answered holds, and what passes leaves no trace.

Each run is the same story with one more call that works before one that fails: all of them, one after the other.
"""

from __future__ import annotations

import asyncio
import errno
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.common.errors import ErrorCode, OttlaError
from ottla.common.ids import TopicPartition
from ottla.protocol import messages as m
from ottla.protocol.codec import Message
from ottla.storage.disk import Disk
from tests.support import transactional_client as t
from tests.support.faulty_calls import READS, SYNCS, WRITES, FaultyCalls
from tests.support.loop_broker import LoopBroker
from tests.support.manual_clock import ManualClock
from tests.support.raw_client import batch_of, fetch_request, produce_request

PATIENCE_S = 60
TRIES = 8
OPENS = frozenset(("open",))
FLUSHED = {"log.flush.interval.messages": "1"}
# What a client takes for a reason to try again.
_PASSING = {
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.CONCURRENT_TRANSACTIONS,
}


class GivenUp(Exception):
    """It was refused again and again, each time with an error that may pass."""


class Client:
    """Tries again, as the libraries do."""

    def __init__(self, broker: LoopBroker) -> None:
        self._broker = broker

    async def ask(self, request: Message, version: int) -> Any:
        for _ in range(TRIES):
            answer = await asyncio.wait_for(self._broker.call(request, version), PATIENCE_S)
            codes = {ErrorCode(code) for code in t.all_codes(answer) if code}
            if not codes:
                return answer
            assert codes <= _PASSING, f"{type(answer).__name__}: {codes}"
            await self._broker.pass_time(1_100)
            await asyncio.sleep(0.002)
        raise GivenUp

    async def transaction(self, who: t.Identity, *values: bytes, offset: int, commit: bool) -> t.Identity:
        for number, value in enumerate(values):
            await self.ask(t.produce_request("t", t.transactional_batch(who, value, sequence=number), "data"), 12)
        await self.ask(t.offsets_request("t", who, "g", {("data", 1): offset}), 5)
        return await self.identity(t.end_request("t", who, commit))

    async def identity(self, request: Message) -> t.Identity:
        answer = await self.ask(request, 5)
        return t.Identity(answer.producer_id, answer.producer_epoch)

    async def produce(self, value: bytes, producer_id: int, sequence: int) -> None:
        batch = batch_of(value, producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
        await self.ask(produce_request("data", batch, partition=1), 9)

    async def commit(self, offset: int) -> None:
        one = m.OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        topic = m.OffsetCommitRequest.OffsetCommitRequestTopic(name="data", partitions=[one])
        await self.ask(m.OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, topics=[topic]), 9)

    async def read(self, partition: int) -> list[bytes]:
        request = fetch_request([("data", partition, 0)], isolation_level=1, max_wait_ms=0)
        line = (await self.ask(request, 12)).responses[0].partitions[0]
        found = t.committed_records(bytes(line.records or b""), line.aborted_transactions, line.last_stable_offset)
        return [one.value or b"" for one in found]

    async def offsets(self) -> list[int]:
        topic = m.OffsetFetchRequest.OffsetFetchRequestTopics(name="data", partition_indexes=[0, 1])
        asked = m.OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=[topic])
        (group,) = (await self.ask(m.OffsetFetchRequest(groups=[asked]), 9)).groups
        return [int(one.committed_offset) for one in group.topics[0].partitions]


class Story:
    """A committed transaction, an aborted one, and a plain producer and group beside them; what was answered so far."""

    def __init__(self) -> None:
        self.sure: list[list[bytes]] = [[], []]
        # Of the transaction that is being committed: all of it, or nothing.
        self.in_doubt: list[bytes] = []
        self.offsets = [-1, -1]

    async def go_on(self, client: Client, name: bytes) -> None:
        who = await client.identity(t.init_request("t"))
        idempotent = m.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        producer_id = (await client.ask(idempotent, 4)).producer_id
        values = [name + b" committed, %d" % number for number in range(2)]
        self.in_doubt = values
        who = await client.transaction(who, *values, offset=len(self.sure[0]), commit=True)
        self.offsets[1] = len(self.sure[0])
        self.sure[0] += values
        self.in_doubt = []
        await client.transaction(who, name + b" aborted", offset=1000, commit=False)
        for number in range(4):
            await client.produce(name + b" plain, %d" % number, producer_id, number)
            self.sure[1].append(name + b" plain, %d" % number)
        self.offsets[0] = -2  # one or the other, until it is answered
        await client.commit(len(self.sure[1]))
        self.offsets[0] = len(self.sure[1])

    async def check(self, client: Client) -> None:
        found = await client.read(0)
        assert found in (self.sure[0], self.sure[0] + self.in_doubt)
        plain = await client.read(1)
        assert plain[: len(self.sure[1])] == self.sure[1] and len(plain) <= len(self.sure[1]) + 1
        offsets = await client.offsets()
        assert self.offsets[0] == -2 or offsets[0] == self.offsets[0]
        assert offsets[1] == self.offsets[1] or self.in_doubt
        assert offsets[1] < 1000


def a_broker(folder: Path, properties: dict[str, str]) -> LoopBroker:
    clock = ManualClock(time.time_ns() // 1_000_000)
    return LoopBroker(folder, properties, clock=clock, disk=Disk(), jumps=True)


async def _tell(folder: Path, properties: dict[str, str], faults: FaultyCalls, *, passes: bool) -> None:
    story = Story()
    async with a_broker(folder, properties) as broker:
        await broker.create_topic("data", 2, {"index.interval.bytes": "100"})
        await broker.call(m.FindCoordinatorRequest(key="g"), 3)
        await story.go_on(Client(broker), b"before")
    async with a_broker(folder, properties) as broker:
        await broker.loaded()
        client = Client(broker)
        with faults:
            try:
                await story.go_on(client, b"after")
            except GivenUp:
                assert not passes, "it should have passed"
        if passes:
            await story.check(client)
    async with a_broker(folder, properties) as broker:
        await _at_rest(broker)
        await story.check(Client(broker))


async def _at_rest(broker: LoopBroker) -> None:
    """The coordinators have read their logs, and completed what was decided."""
    groups, transactions = broker.broker.groups.runtime, broker.broker.transactions.runtime
    while (
        groups.is_loading or transactions.is_loading or any(one.coordinator.unfinished() for one in transactions.all())
    ):
        await broker.pass_time(1_000)
        await asyncio.sleep(0.001)


Tell = Callable[[Path, FaultyCalls], Awaitable[None]]


async def _at_every_step(folder: Path, code: int, calls: frozenset[str], tell: Tell) -> None:
    for at in range(1, 1000):
        faults = FaultyCalls(folder, code, calls, at)
        try:
            await tell(folder / str(at), faults)
        except (AssertionError, TimeoutError) as error:
            raise AssertionError(f"when call {at} failed, which was {faults.failed}: {error}") from error
        if faults.failed is None:
            assert at > 1, "nothing was called"
            return
    raise AssertionError("it never ends")


slow = pytest.mark.slow


@pytest.mark.parametrize(
    ("code", "calls", "properties"),
    [
        pytest.param(errno.EMFILE, OPENS, FLUSHED, id="descriptors, each write is flushed"),
        pytest.param(errno.EMFILE, OPENS, {}, id="descriptors"),
        pytest.param(errno.ENOSPC, WRITES, {}, id="room", marks=slow),
        pytest.param(errno.ENOSPC, WRITES, FLUSHED, id="room, each write is flushed", marks=slow),
    ],
)
async def test_what_is_lacking_for_a_moment_leaves_no_trace(
    tmp_path: Path, code: int, calls: frozenset[str], properties: dict[str, str]
) -> None:
    async def tell(folder: Path, faults: FaultyCalls) -> None:
        await _tell(folder, properties, faults, passes=True)

    await _at_every_step(tmp_path, code, calls, tell)


@slow
@pytest.mark.parametrize("calls", [READS, WRITES | SYNCS], ids=["reads", "writes"])
@pytest.mark.parametrize("properties", [{}, FLUSHED], ids=["not flushed", "each write is flushed"])
async def test_a_disk_that_fails_takes_nothing_back(
    tmp_path: Path, calls: frozenset[str], properties: dict[str, str]
) -> None:
    async def tell(folder: Path, faults: FaultyCalls) -> None:
        await _tell(folder, properties, faults, passes=False)

    await _at_every_step(tmp_path, errno.EIO, calls, tell)


@slow
@pytest.mark.parametrize("clean", [True, False], ids=["after a clean stop", "after a crash"])
@pytest.mark.parametrize(
    ("code", "calls"),
    [
        pytest.param(errno.EMFILE, OPENS, id="descriptors"),
        pytest.param(errno.ENOSPC, WRITES, id="room"),
        pytest.param(errno.EIO, READS, id="a disk that fails"),
    ],
)
async def test_a_start_that_meets_a_failure_says_so_and_harms_nothing(
    tmp_path: Path, code: int, calls: frozenset[str], clean: bool
) -> None:
    async def tell(folder: Path, faults: FaultyCalls) -> None:
        story = Story()
        first = await a_broker(folder, {}).__aenter__()
        await first.create_topic("data", 2)
        await first.call(m.FindCoordinatorRequest(key="g"), 3)
        await story.go_on(Client(first), b"before")
        await first.broker.close(clean=clean)
        second = a_broker(folder, {})
        with faults:
            try:
                await second.__aenter__()
                for _ in range(3 * TRIES):  # a disk that is offline is not read again
                    await second.pass_time(1_000)
                    await asyncio.sleep(0.001)
                clean_stop = clean
            except OttlaError:
                clean_stop = False
        await second.broker.close(clean=clean_stop)
        async with a_broker(folder, {}) as third:
            await _at_rest(third)
            await story.check(Client(third))
            await story.go_on(Client(third), b"after")
            await story.check(Client(third))

    await _at_every_step(tmp_path, code, calls, tell)


@pytest.mark.parametrize(
    ("code", "calls"),
    [
        pytest.param(errno.EMFILE, OPENS, id="descriptors"),
        pytest.param(errno.ENOSPC, WRITES, id="room", marks=slow),
    ],
)
async def test_a_replica_that_cannot_be_moved_stays_in_use(tmp_path: Path, code: int, calls: frozenset[str]) -> None:
    async def tell(folder: Path, faults: FaultyCalls) -> None:
        properties = {"log.dirs": f"{folder / 'one'},{folder / 'two'}"}
        values = [b"%d" % number for number in range(6)]
        async with a_broker(folder, properties) as broker:
            await broker.create_topic("data", 2)
            client, logs, moves = Client(broker), broker.broker.logs, broker.broker.replica_moves
            where, log = TopicPartition("data", 1), logs.logs[TopicPartition("data", 1)]
            for number, value in enumerate(values[:3]):
                await client.produce(value, 1, number)
            with faults:
                moves.start(where, next(one for one in logs.dirs if one.path != log.dir.parent))
                await client.produce(values[3], 1, 3)
                while moves.get(where) is not None:
                    await asyncio.sleep(0.001)
                await client.produce(values[4], 1, 4)
            await client.produce(values[5], 1, 5)
            assert await client.read(1) == values
        async with a_broker(folder, properties) as broker:
            assert await Client(broker).read(1) == values

    await _at_every_step(tmp_path, code, calls, tell)
