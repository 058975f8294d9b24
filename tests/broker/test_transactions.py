"""What the coordinator does by itself and at its edges: time, failing disks, what must be on disk, huge requests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.handlers.records import produce
from ottla.common.errors import ErrorCode
from ottla.protocol import messages as m
from ottla.records.record import iterate_batches, read_records
from ottla.testing import Broker
from ottla.transactions.transaction import decode_key
from tests.broker.test_answers_are_durable import HeldDisk
from tests.support.loop_broker import LoopBroker
from tests.support.loop_turns import TURN_S_MAX, LoopTurns
from tests.support.manual_clock import ManualClock
from tests.support.raw_client import RawClient
from tests.support.transaction_desk import Desk, FussyDisk
from tests.support.transactional_client import (
    Identity,
    add_codes,
    add_request,
    all_codes,
    end_request,
    init_request,
    offsets_request,
    transactional_batch,
)

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    clock = ManualClock(time.time_ns() // 1_000_000)
    async with LoopBroker(tmp_path, clock=clock) as broker:
        await broker.create_topic("data", 3)
        yield Desk(broker)


# --- joining


async def test_the_partitions_of_one_request_join_with_one_record(desk: Desk) -> None:
    who = await desk.init()
    await desk.produce(who, b"alone")
    before = sum(one.log_end_offset for one in _state_logs(desk))
    codes = all_codes(await desk.broker.call(_to_partitions(desk, who, (0, 1), (1, 0), (2, 0)), 12))
    assert set(codes) == {0}
    assert sum(one.log_end_offset for one in _state_logs(desk)) == before + 1
    await desk.end(who, True)
    assert [await desk.read(partition=one) for one in range(3)] == [[b"alone", b"0"], [b"1"], [b"2"]]


async def test_a_partition_that_refuses_its_records_joins_and_the_transaction_can_end(desk: Desk) -> None:
    """As in Kafka: partitions are added before their records are looked at."""
    who = await desk.init()
    request = _to_partitions(desk, who, (0, 0), (1, 0), (7, 0))
    request.topic_data[0].partition_data[1].records[-1] ^= 1
    answer = await desk.broker.call(request, 12)
    codes = [line.error_code for line in answer.responses[0].partition_responses]
    assert codes == [0, ErrorCode.CORRUPT_MESSAGE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    (described,) = (await desk.ask(m.DescribeTransactionsRequest(transactional_ids=["t"]), 0)).transaction_states
    assert [(one.topic, list(one.partitions)) for one in described.topics] == [("data", [0, 1])]
    after = await desk.end(who, True)
    assert [await desk.read(partition=one) for one in range(2)] == [[b"0"], []]
    await desk.produce(after, b"next", partition=1)
    await desk.end(after, True)
    assert await desk.read(partition=1) == [b"next"]


async def test_an_internal_topic_does_not_join(desk: Desk) -> None:
    who = await desk.init()
    request = _to_partitions(desk, who, (0, 0), (1, 0))
    request.topic_data.append(desk.produce_request(who, topic="__transaction_state").topic_data[0])
    answer = await desk.broker.call(request, 12)
    assert answer.responses[1].partition_responses[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    (described,) = (await desk.ask(m.DescribeTransactionsRequest(transactional_ids=["t"]), 0)).transaction_states
    assert [(one.topic, list(one.partitions)) for one in described.topics] == [("data", [0, 1])]


def _to_partitions(desk: Desk, who: Identity, *places: tuple[int, int]) -> Any:
    """One request for these (partition, sequence number); each value is its partition."""
    request = desk.produce_request(who)
    request.topic_data[0].partition_data = [
        type(request.topic_data[0].partition_data[0])(
            index=partition, records=transactional_batch(who, b"%d" % partition, sequence=sequence)
        )
        for partition, sequence in places
    ]
    return request


def _state_logs(desk: Desk) -> list[Any]:
    return [one.log for one in desk.broker.broker.partitions.of_topic("__transaction_state")]


# --- time


async def test_what_is_open_for_too_long_is_aborted_and_its_owner_may_go_on(desk: Desk) -> None:
    who = await desk.init(timeout_ms=5_000)
    await desk.produce(who, b"late")
    desk.clock.advance(5_000)
    await desk.transactions.abort_overdue()
    assert await desk.state() == "Ongoing"
    desk.clock.advance(1)
    await desk.transactions.abort_overdue()
    assert await desk.state() == "CompleteAbort"
    assert await desk.code(desk.produce_request(who, sequence=1), 12) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert await desk.code(end_request("t", who, True), 5) is ErrorCode.INVALID_TXN_STATE
    after = await desk.end(who, False)
    assert after == Identity(who.producer_id, who.epoch + 1)
    await desk.produce(after, b"on time")
    await desk.end(after, True)
    assert await desk.read() == [b"on time"]


async def test_a_classic_client_that_took_too_long_is_fenced(desk: Desk) -> None:
    who = await desk.init(timeout_ms=5_000)
    await desk.ask(add_request("t", who, {"data": [0]}), 3)
    await desk.ask(desk.produce_request(who), 11)
    desk.clock.advance(5_001)
    await desk.transactions.abort_overdue()
    assert await desk.code(end_request("t", who, True), 3) is ErrorCode.PRODUCER_FENCED
    assert await desk.read() == []


async def test_a_clock_that_jumps_ends_nothing(desk: Desk) -> None:
    who = await desk.init(timeout_ms=5_000)
    await desk.produce(who)
    desk.clock.set_wall(desk.clock.now_ms() + 1000 * DAY_MS)
    await desk.transactions.abort_overdue()
    desk.transactions.forget_unused()
    assert await desk.state() == "Ongoing"
    desk.clock.set_wall(desk.clock.now_ms() - 2000 * DAY_MS)
    desk.clock.advance(5_001)
    await desk.transactions.abort_overdue()
    assert await desk.state() == "CompleteAbort"


async def test_a_transaction_from_the_future_is_aborted_in_time_after_a_restart(tmp_path: Path) -> None:
    clock = ManualClock(time.time_ns() // 1_000_000)
    async with LoopBroker(tmp_path, clock=clock) as broker:
        await broker.create_topic("data")
        desk = Desk(broker)
        await desk.produce(await desk.init(timeout_ms=5_000))
    earlier = ManualClock(clock.now_ms() - 100 * DAY_MS)
    async with LoopBroker(tmp_path, clock=earlier) as broker:
        await broker.loaded()
        earlier.advance(5_001)
        await broker.broker.transactions.abort_overdue()
        assert await Desk(broker).state() == "CompleteAbort"


async def test_ids_that_nobody_uses_are_forgotten_with_a_tombstone(desk: Desk) -> None:
    open_ = await desk.init("open", 900_000)
    await desk.produce(open_, name="open")
    first = await desk.init()
    desk.clock.advance(7 * DAY_MS)
    desk.transactions.forget_unused()
    assert await desk.code(m.DescribeTransactionsRequest(transactional_ids=["t"]), 0) is (
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    )
    assert await desk.state("open") == "Ongoing"
    (path,) = desk.log("__transaction_state").dir.glob("*.log")
    data = path.read_bytes()
    last = [record for position, _ in iterate_batches(data) for record in read_records(data, position)][-1]
    assert (decode_key(last.key or b""), last.value) == ("t", None)
    assert await desk.code(end_request("t", first, False), 5) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert (await desk.init()).producer_id != first.producer_id


# --- epochs


async def test_a_producer_id_that_runs_out_of_epochs_is_replaced(desk: Desk) -> None:
    who = await desk.init()
    (shard,) = desk.transactions.runtime.all()
    known = shard.coordinator.get("t")
    assert known is not None
    shard.write(known._replace(producer_epoch=32766))
    who = Identity(who.producer_id, 32766)
    await desk.produce(who, b"last")
    after = await desk.end(who, True)
    assert after.producer_id != who.producer_id
    assert after.epoch == 0
    assert await desk.end(who, True) == after, "asked again"
    await desk.produce(after, b"first")
    await desk.end(after, True)
    assert await desk.read() == [b"last", b"first"]


# --- the log


async def test_the_last_stable_offset_is_not_before_the_log_start(desk: Desk) -> None:
    who = await desk.init()
    await desk.produce(who)
    await desk.produce(who, sequence=1)
    log = desk.log()
    log.delete_records(1)
    assert log.last_stable_offset == 1
    assert await desk.read(offset=1) == []
    await desk.end(who, True)
    assert await desk.read(offset=1) == [b"x"]


async def test_a_batch_that_was_made_ready_too_slowly_does_not_join_a_later_transaction(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    await desk.broker.create_topic("packed", configs={"compression.type": "gzip"})
    ready, prepare = asyncio.Event(), produce.prepare_records

    async def slowly(*arguments: Any) -> Any:
        prepared = await prepare(*arguments)
        await ready.wait()
        return prepared

    who = await desk.init()
    await desk.produce(who, b"in time")
    monkeypatch.setattr(produce, "prepare_records", slowly)
    late = asyncio.ensure_future(desk.broker.call(desk.produce_request(who, b"too late", topic="packed"), 12))
    await asyncio.sleep(0.01)
    assert await desk.state() == "Ongoing"
    await desk.end(who, True)
    ready.set()
    assert max(all_codes(await late)) == ErrorCode.INVALID_PRODUCER_EPOCH
    log = desk.log("packed")
    assert (log.log_end_offset, log.last_stable_offset) == (1, 1), "nothing but the marker"


async def test_a_recompressing_topic_takes_part_in_transactions(desk: Desk) -> None:
    await desk.broker.create_topic("packed", configs={"compression.type": "zstd"})
    await desk.broker.create_topic("compacted", configs={"cleanup.policy": "compact"})
    who = await desk.init()
    for topic in ("packed", "compacted"):
        await desk.produce(who, topic.encode(), topic=topic, key=b"k")
        await desk.produce(who, topic.encode(), topic=topic, key=b"k", sequence=1)
    await desk.end(who, True)
    for topic in ("packed", "compacted"):
        assert await desk.read(topic) == [topic.encode()] * 2


# --- disks


async def test_a_marker_that_cannot_be_written_is_tried_again(tmp_path: Path) -> None:
    clock, disk = ManualClock(time.time_ns() // 1_000_000), FussyDisk()
    async with LoopBroker(tmp_path, clock=clock, disk=disk, jumps=True) as broker:
        await broker.create_topic("data", 2)
        desk = Desk(broker)
        who = await desk.init()
        await desk.produce(who, b"good")
        await desk.produce(who, b"full", partition=1)
        disk.full.add("data-1")
        after = await desk.end(who, True)
        assert await desk.state() == "PrepareCommit", "decided, so the client is told; but not complete"
        assert (await desk.read(), await desk.read(partition=1)) == ([b"good"], [])
        assert await desk.code(desk.produce_request(after), 12) is ErrorCode.CONCURRENT_TRANSACTIONS
        assert await desk.code(init_request("t"), 5) is ErrorCode.CONCURRENT_TRANSACTIONS
        for _ in range(5):
            await desk.transactions.abort_overdue()
        assert desk.log().log_end_offset == 2, "the marker that is there is not written again and again"
        disk.full.clear()
        await broker.pass_time(1_000)
        assert await desk.state() == "CompleteCommit"
        assert await desk.read(partition=1) == [b"full"]
        await desk.produce(after, b"next")


async def test_a_full_disk_under_the_coordinator_decides_nothing(tmp_path: Path) -> None:
    clock, disk = ManualClock(time.time_ns() // 1_000_000), FussyDisk()
    async with LoopBroker(tmp_path, clock=clock, disk=disk) as broker:
        await broker.create_topic("data")
        desk = Desk(broker)
        who = await desk.init()
        await desk.produce(who)
        disk.full.add("__transaction_state-0")
        assert await desk.code(end_request("t", who, True), 5) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert await desk.code(init_request("other"), 5) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert await desk.state() == "Ongoing"
        disk.full.clear()
        await desk.end(who, True)
        assert await desk.read() == [b"x"]


@pytest.mark.parametrize("version", [11, 12])
async def test_a_producer_tries_again_when_the_coordinators_disk_fails_under_its_batch(
    tmp_path: Path, version: int
) -> None:
    """It knows no coordinator's errors here: NOT_ENOUGH_REPLICAS, as when the coordinator refuses at once."""
    clock, disk = ManualClock(time.time_ns() // 1_000_000), HeldDisk()
    dirs = {"log.dirs": f"{tmp_path / 'one'},{tmp_path / 'two'}", "log.flush.interval.messages": "1"}
    async with LoopBroker(tmp_path, dirs, clock=clock, disk=disk) as broker:
        await broker.create_topic("data", 4)
        desk = Desk(broker)
        who = await desk.init()
        coordinator = desk.log("__transaction_state").dir.parent
        partition = next(one for one in range(4) if desk.log("data", one).dir.parent != coordinator)
        disk.hold("__transaction_state")
        adding = None
        if version < 12:
            adding = asyncio.ensure_future(broker.call(add_request("t", who, {"data": [partition]}), 3))
            await asyncio.sleep(0)
        producing = asyncio.ensure_future(desk.code(desk.produce_request(who, partition=partition), version))
        while not disk.waiting.is_set():
            await asyncio.sleep(0.001)
        for _ in range(100):
            await asyncio.sleep(0)
        disk.let_go(broken=True)
        assert await asyncio.wait_for(producing, 60) is ErrorCode.NOT_ENOUGH_REPLICAS
        if adding is not None:
            assert add_codes(await adding) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
        assert await desk.code(desk.produce_request(who, partition=partition), version) is ErrorCode.NOT_ENOUGH_REPLICAS


async def test_with_flush_messages_nothing_outruns_what_it_stands_on(tmp_path: Path) -> None:
    """A power cut may take what is not synced. So: the coordinator's record before the data it allows, the decision
    before its markers, the markers before the completion, everything before its answer."""
    clock, disk = ManualClock(time.time_ns() // 1_000_000), FussyDisk()
    async with LoopBroker(tmp_path, {"log.flush.interval.messages": "1"}, clock=clock, disk=disk) as broker:
        await broker.create_topic("data", 2)
        desk = Desk(broker)
        who = await desk.init()
        await desk.broker.broker.groups.runtime.make_topic()
        state, offsets = "__transaction_state-0", "__consumer_offsets-0"

        async def diary(work: Any) -> list[tuple[str, str]]:
            disk.diary.clear()
            await work
            return [one for one in disk.diary if one[1] in (state, offsets, "data-0", "data-1")]

        def pair(folder: str) -> list[tuple[str, str]]:
            return [("write", folder), ("sync", folder)]

        assert await diary(desk.produce(who)) == pair(state) + pair("data-0")
        assert await diary(desk.produce(who, partition=1)) == pair(state) + pair("data-1")
        assert await diary(desk.produce(who, partition=1, sequence=1)) == pair("data-1")
        request = offsets_request("t", who, "g", {("data", 0): 3})
        assert await diary(desk.ask(request, 5)) == pair(state) + pair(offsets)
        ended = await diary(desk.end(who, True))
        assert ended[:2] == pair(state)
        markers, completion = ended[2:8], ended[8:]
        assert sorted(markers) == sorted(pair("data-0") + pair("data-1") + pair(offsets))
        assert completion[0] == ("write", state)
        assert await desk.read() == [b"x"]
        assert await desk.read(partition=1) == [b"x", b"x"]


# --- huge requests


@pytest.mark.parametrize("shape", ["unknown partitions", "one partition again and again", "topics"])
def test_as_many_partitions_as_may_be_are_answered_and_keep_nobody_waiting(shape: str) -> None:
    many = 24_000
    with LoopTurns() as turns, Broker({"transaction.state.log.num.partitions": "1"}) as broker:
        broker.create_topic("data", 2)
        with RawClient.to(broker.bootstrap_servers, timeout_s=200) as client:
            answer = client.call(init_request("t"), 5)
            while answer.error_code:
                answer = client.call(init_request("t"), 5)
            who = Identity(answer.producer_id, answer.producer_epoch)
            partitions: dict[str, Any] = {
                "unknown partitions": {"data": range(many)},
                "one partition again and again": {"data": [1] * many},
                "topics": {f"topic-{number}": [0] for number in range(many // 2)},
            }[shape]
            turns.reset()
            codes = add_codes(client.call(add_request("t", who, partitions), 3))
            expected = {
                "unknown partitions": [ErrorCode.OPERATION_NOT_ATTEMPTED] * 2
                + [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * (many - 2),
                "one partition again and again": [ErrorCode.NONE] * many,
                "topics": [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * (many // 2),
            }[shape]
            assert codes == expected
            assert turns.worst_s < TURN_S_MAX, turns.worst
