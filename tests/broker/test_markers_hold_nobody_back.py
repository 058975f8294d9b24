"""A destination of markers that takes long keeps no other destination waiting: not here, and not on another broker."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.coordinators.java_hash import partition_of
from ottla.broker.coordinators.transactions.transaction_markers import MarkerWriter
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicPartition
from ottla.protocol import messages as m
from ottla.transactions.transaction import EPOCH_MAX
from tests.support.joined_brokers import JoinedBrokers
from tests.support.manual_clock import ManualClock
from tests.support.transaction_desk import Desk
from tests.support.transactional_client import end_request

COORDINATOR, ELSEWHERE = 3, 1
LEADERS = {
    "near": [COORDINATOR] * 3,
    "far": [ELSEWHERE] * 3,
    "__transaction_state": [COORDINATOR] * 2,
    "__consumer_offsets": [2],
}


class Markers:
    """Those that were written, by partition; and which partitions refuse them."""

    def __init__(self) -> None:
        self.written: Counter[str] = Counter()
        self.refused: set[str] = set()


@pytest.fixture
def markers(monkeypatch: pytest.MonkeyPatch) -> Markers:
    seen, write = Markers(), MarkerWriter.write

    def watched(self: MarkerWriter, where: TopicPartition, *rest: Any) -> Any:
        if str(where) in seen.refused:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "not now")
        waiting = write(self, where, *rest)
        seen.written[str(where)] += 1
        return waiting

    monkeypatch.setattr(MarkerWriter, "write", watched)
    return seen


@pytest.fixture
async def brokers(tmp_path: Path) -> AsyncIterator[JoinedBrokers]:
    # Who waits for a commit does so for ever.
    patient = {"offsets.commit.timeout.ms": str(2**31 - 1)}
    async with JoinedBrokers(tmp_path, clock=ManualClock(time.time_ns() // 1_000_000), properties=patient) as joined:
        await joined.publish(LEADERS)
        yield joined


@pytest.fixture
def coordinator(brokers: JoinedBrokers) -> Desk:
    return Desk(brokers[COORDINATOR])


async def takes_long(brokers: JoinedBrokers, topic: str, partition: int) -> None:
    """From now on a second replica is in sync, and nobody fetches from a leader here."""
    leader = brokers.image.topics[topic].partitions[partition].leader
    await brokers.change(topic, partition, replicas=(leader, 2), isr=(leader, 2))


async def takes_long_no_more(brokers: JoinedBrokers, topic: str, partition: int) -> None:
    leader = brokers.image.topics[topic].partitions[partition].leader
    await brokers.change(topic, partition, isr=(leader,))


async def begin(brokers: JoinedBrokers, coordinator: Desk, name: str, *where: tuple[str, int]) -> Callable[[], Any]:
    """A transaction with a record in each of these partitions; what is given back commits it."""
    who = await coordinator.init(name)
    for topic, partition in where:
        leader = brokers.image.topics[topic].partitions[partition].leader
        await Desk(brokers[leader]).produce(who, name.encode(), name=name, topic=topic, partition=partition)
    return lambda: coordinator.ask(end_request(name, who, True), 5)


async def until(brokers: JoinedBrokers, is_so: Callable[[], Awaitable[bool]]) -> None:
    """By the brokers' clock and by ours: some pauses are taken by the one, some by the other."""
    clock = brokers[COORDINATOR].broker.clock
    assert isinstance(clock, ManualClock)
    for _ in range(500):
        if await is_so():
            return
        clock.advance(100)
        for number in (1, 2, 3):
            await brokers[number].pass_time(0)
        await asyncio.sleep(0.01)
    raise AssertionError("it never came to that")


async def until_complete(brokers: JoinedBrokers, coordinator: Desk, name: str, state: str = "CompleteCommit") -> None:
    async def is_complete() -> bool:
        return await coordinator.state(name) == state

    await until(brokers, is_complete)


async def test_one_that_takes_long_here_keeps_no_other_from_being_tried_again(
    brokers: JoinedBrokers, coordinator: Desk, markers: Markers
) -> None:
    end_slow = await begin(brokers, coordinator, "slow", ("near", 0))
    end_quick = await begin(brokers, coordinator, "quick", ("near", 1))
    markers.refused = {"near-0", "near-1"}
    await end_slow()
    await end_quick()
    await takes_long(brokers, "near", 0)
    markers.refused = {"near-1"}

    async def is_written() -> bool:
        return markers.written["near-0"] == 1

    await until(brokers, is_written)
    markers.refused = set()
    await until_complete(brokers, coordinator, "quick")
    assert await coordinator.state("slow") == "PrepareCommit"
    await takes_long_no_more(brokers, "near", 0)
    await until_complete(brokers, coordinator, "slow")
    assert markers.written == {"near-0": 1, "near-1": 1}


async def test_a_marker_that_is_lost_is_written_again_while_others_of_its_transaction_take_long(
    brokers: JoinedBrokers, coordinator: Desk, markers: Markers
) -> None:
    end = await begin(brokers, coordinator, "t", ("near", 0), ("near", 1))
    await takes_long(brokers, "near", 0)
    await takes_long(brokers, "near", 1)
    await end()
    assert markers.written == {"near-0": 1, "near-1": 1}
    leader_epoch = brokers.image.topics["near"].partitions[1].leader_epoch
    await brokers.change("near", 1, leader=COORDINATOR, isr=(COORDINATOR,))  # what was not committed is in doubt
    assert brokers.image.topics["near"].partitions[1].leader_epoch == leader_epoch + 1

    async def is_written() -> bool:
        return markers.written["near-1"] == 2

    await until(brokers, is_written)
    assert await coordinator.state("t") == "PrepareCommit"
    await takes_long_no_more(brokers, "near", 0)
    await until_complete(brokers, coordinator, "t")
    assert markers.written == {"near-0": 1, "near-1": 2}


async def test_one_that_takes_long_on_another_broker_keeps_no_other_waiting_there(
    brokers: JoinedBrokers, coordinator: Desk, markers: Markers
) -> None:
    end_slow = await begin(brokers, coordinator, "slow", ("far", 0), ("far", 1))
    quick = {f"quick{number}": ("far", 1 + number % 2) for number in range(6)}
    ending = {name: await begin(brokers, coordinator, name, where) for name, where in quick.items()}
    await takes_long(brokers, "far", 0)
    await end_slow()
    for name, end in ending.items():
        await end()
        await until_complete(brokers, coordinator, name)
    assert await coordinator.state("slow") == "PrepareCommit"
    assert markers.written == {"far-0": 1, "far-1": 4, "far-2": 3}, "asked for again, it is waited for"
    await takes_long_no_more(brokers, "far", 0)
    await until_complete(brokers, coordinator, "slow")
    assert markers.written["far-0"] <= 2, "it may just have been committed when it is asked for once more"


async def test_what_is_known_to_take_long_goes_apart_from_the_rest(
    brokers: JoinedBrokers, coordinator: Desk, markers: Markers
) -> None:
    """The others would wait for it with each request that it goes with."""
    slow = [await begin(brokers, coordinator, f"slow{number}", ("far", 0)) for number in range(3)]
    end_quick = await begin(brokers, coordinator, "quick", ("far", 1))
    await takes_long(brokers, "far", 0)
    await slow[0]()

    async def is_asked_for_again() -> bool:
        return brokers.network.asked[COORDINATOR, ELSEWHERE, "WriteTxnMarkers"] > 2

    await until(brokers, is_asked_for_again)
    brokers.network.requests.clear()
    await slow[1]()
    await end_quick()
    await until_complete(brokers, coordinator, "quick")
    named = [
        {index for marker in request.markers for topic in marker.topics for index in topic.partition_indexes}
        for request in brokers.network.requests
        if type(request).__name__ == "WriteTxnMarkersRequest"
    ]
    assert {1} in named
    assert not any({0, 1} <= indexes for indexes in named)
    await takes_long_no_more(brokers, "far", 0)
    await until_complete(brokers, coordinator, "slow1")
    await slow[2]()
    await until_complete(brokers, coordinator, "slow2")


async def test_a_transaction_log_that_takes_long_keeps_none_of_another_from_being_aborted_in_time(
    brokers: JoinedBrokers, coordinator: Desk
) -> None:
    slow = [next(name for name in map(str, range(start, 99)) if not partition_of(name, 2)) for start in (0, 50)]
    quick = next(name for name in map(str, range(99)) if partition_of(name, 2))
    for name in (*slow, quick):
        await begin(brokers, coordinator, name, ("near", 0))
    await takes_long(brokers, "__transaction_state", 0)
    coordinator.clock.advance(120_000)
    aborting = asyncio.ensure_future(coordinator.transactions.abort_overdue())
    await until_complete(brokers, coordinator, quick, "CompleteAbort")
    assert aborting.done(), "the next time comes although some are not done yet"
    await takes_long_no_more(brokers, "__transaction_state", 0)
    for name in slow:
        await until_complete(brokers, coordinator, name, "CompleteAbort")


async def test_who_asks_by_hand_is_not_answered_before_the_marker_is_committed(
    brokers: JoinedBrokers, coordinator: Desk, markers: Markers
) -> None:
    """Kafka's client that aborts a hanging transaction takes REQUEST_TIMED_OUT for a failure."""
    who = await coordinator.init("hanging")
    await Desk(brokers[ELSEWHERE]).produce(who, b"x", name="hanging", topic="far")
    await takes_long(brokers, "far", 0)
    asked = m.WriteTxnMarkersRequest
    topic = asked.WritableTxnMarkerTopic(name="far", partition_indexes=[0])
    marker = asked.WritableTxnMarker(
        producer_id=who.producer_id, producer_epoch=who.epoch, transaction_result=False, topics=[topic]
    )
    by_hand = asyncio.ensure_future(brokers[ELSEWHERE].call(asked(markers=[marker]), 1))
    for_coordinator = await brokers.network.request(COORDINATOR, ELSEWHERE, asked(markers=[marker]))
    assert for_coordinator.markers[0].topics[0].partitions[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    assert not by_hand.done(), "it was asked for first"
    await takes_long_no_more(brokers, "far", 0)
    assert (await by_hand).markers[0].topics[0].partitions[0].error_code == ErrorCode.NONE
    assert markers.written == {"far-0": 1}


async def test_one_that_waits_for_a_producer_id_is_not_aborted_a_second_time(
    brokers: JoinedBrokers, coordinator: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is overdue until the id is there, and the next look comes sooner than that while nobody gives any."""
    await begin(brokers, coordinator, "t", ("near", 0))
    broker = brokers[COORDINATOR].broker
    shard = coordinator.transactions.shard("t")
    known = shard.coordinator._transactions["t"]
    monkeypatch.setitem(shard.coordinator._transactions, "t", known._replace(producer_epoch=EPOCH_MAX - 1))
    given: list[asyncio.Future[int]] = []

    def take() -> asyncio.Future[int]:
        given.append(asyncio.get_running_loop().create_future())
        return given[-1]

    monkeypatch.setattr(broker.producer_ids, "take", take)
    coordinator.clock.advance(120_000)
    for _ in range(3):
        await coordinator.transactions.abort_overdue()
    assert len(given) == 1
    given[0].set_exception(ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "not now"))
    await brokers[COORDINATOR].pass_time(0)
    await coordinator.transactions.abort_overdue()
    assert len(given) == 2, "it is tried again when that has failed"
    given[1].set_result(4711)
    await until_complete(brokers, coordinator, "t", "CompleteAbort")
