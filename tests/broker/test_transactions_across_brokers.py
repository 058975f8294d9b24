"""Transactions whose coordinator, partitions and groups are on different brokers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.coordinators.transactions import marker_channels
from ottla.common.errors import ErrorCode
from ottla.metadata.image import ClusterImage, with_topics, without_topics
from ottla.protocol import messages as m
from tests.support.joined_brokers import JoinedBrokers
from tests.support.manual_clock import ManualClock
from tests.support.transaction_desk import Desk
from tests.support.transactional_client import (
    Identity,
    add_request,
    all_codes,
    end_request,
    init_request,
    offsets_request,
    produce_request,
    transactional_batch,
)

COORDINATOR, GROUPS = 3, 2
HOUR_MS = 3_600_000
LEADERS = {"data": [1, 2, 1], "__transaction_state": [COORDINATOR], "__consumer_offsets": [GROUPS]}


@pytest.fixture
async def brokers(tmp_path: Path) -> AsyncIterator[JoinedBrokers]:
    async with JoinedBrokers(tmp_path, clock=ManualClock(time.time_ns() // 1_000_000)) as joined:
        await joined.publish(LEADERS)
        ids = iter(range(1000, 2000))

        async def take() -> int:
            return next(ids)

        for number in (1, 2, 3):
            joined[number].broker.producer_ids.take = take  # type: ignore[method-assign]
        yield joined


@pytest.fixture
def coordinator(brokers: JoinedBrokers) -> Desk:
    return Desk(brokers[COORDINATOR])


async def code(brokers: JoinedBrokers, number: int, request: Any, version: int) -> ErrorCode:
    return ErrorCode(max(all_codes(await brokers[number].call(request, version))))


def moved(brokers: JoinedBrokers, name: str, index: int, leader: int) -> ClusterImage:
    return brokers.changed(name, index, leader=leader, replicas=(leader,), isr=(leader,))


async def pass_time(brokers: JoinedBrokers, ms: int) -> None:
    clock = brokers[1].broker.clock
    assert isinstance(clock, ManualClock)
    await asyncio.sleep(0)
    clock.advance(ms)
    for number in (1, 2, 3):
        await brokers[number].pass_time(0)


async def write(brokers: JoinedBrokers, who: Identity, partition: int, value: bytes, *, name: str = "t") -> None:
    leader = brokers.image.topics["data"].partitions[partition].leader
    await Desk(brokers[leader]).produce(who, value, partition=partition, name=name)


async def read(brokers: JoinedBrokers, partition: int) -> list[bytes]:
    leader = brokers.image.topics["data"].partitions[partition].leader
    return await Desk(brokers[leader]).read(partition=partition)


async def committed_offset(brokers: JoinedBrokers) -> int:
    asked = m.OffsetFetchRequest.OffsetFetchRequestGroup(
        group_id="g",
        topics=[m.OffsetFetchRequest.OffsetFetchRequestTopics(name="data", partition_indexes=[0])],
    )
    (group,) = (await brokers[GROUPS].call(m.OffsetFetchRequest(groups=[asked]), 9)).groups
    assert not group.error_code
    return int(group.topics[0].partitions[0].committed_offset)


# --- joining, and ending


@pytest.mark.parametrize("commit", [True, False])
async def test_a_transaction_over_several_brokers_is_seen_everywhere_or_nowhere(
    brokers: JoinedBrokers, coordinator: Desk, commit: bool
) -> None:
    who = await coordinator.init()
    await write(brokers, who, 0, b"here")
    await write(brokers, who, 1, b"there")
    await Desk(brokers[GROUPS]).ask(offsets_request("t", who, "g", {("data", 0): 7}), 5)
    assert [await read(brokers, 0), await read(brokers, 1)] == [[], []]
    after = await coordinator.end(who, commit)
    assert after == Identity(who.producer_id, who.epoch + 1)
    assert await coordinator.state() == ("CompleteCommit" if commit else "CompleteAbort")
    assert [await read(brokers, 0), await read(brokers, 1)] == ([[b"here"], [b"there"]] if commit else [[], []])
    assert await committed_offset(brokers) == (7 if commit else -1)


async def test_a_classic_client_adds_its_partitions_and_they_are_verified(
    brokers: JoinedBrokers, coordinator: Desk
) -> None:
    who = await coordinator.init()
    batch = transactional_batch(who, b"x")
    outside = produce_request("t", batch, "data", 0)
    assert await code(brokers, 1, outside, 11) is ErrorCode.TRANSACTION_ABORTABLE
    assert await code(brokers, 1, outside, 10) is ErrorCode.INVALID_TXN_STATE
    await coordinator.ask(add_request("t", who, {"data": [0, 1]}), 3)
    assert await code(brokers, 1, outside, 11) is ErrorCode.NONE
    assert await code(brokers, 2, produce_request("t", batch, "data", 1), 11) is ErrorCode.NONE
    asked = brokers.network.asked[1, COORDINATOR, "AddPartitionsToTxn"]
    second = produce_request("t", transactional_batch(who, b"y", sequence=1), "data", 0)
    assert await code(brokers, 1, second, 11) is ErrorCode.NONE
    assert brokers.network.asked[1, COORDINATOR, "AddPartitionsToTxn"] == asked, "it is open in the log"
    await coordinator.ask(end_request("t", who, True), 4)
    assert [await read(brokers, 0), await read(brokers, 1)] == [[b"x", b"y"], [b"x"]]


async def test_classic_offsets_are_verified(brokers: JoinedBrokers, coordinator: Desk) -> None:
    who = await coordinator.init()
    request = offsets_request("t", who, "g", {("data", 0): 7})
    assert await code(brokers, GROUPS, request, 4) is ErrorCode.TRANSACTION_ABORTABLE
    assert await code(brokers, GROUPS, request, 3) is ErrorCode.INVALID_TXN_STATE
    adding = m.AddOffsetsToTxnRequest(
        transactional_id="t", producer_id=who.producer_id, producer_epoch=who.epoch, group_id="g"
    )
    await coordinator.ask(adding, 4)
    assert await code(brokers, GROUPS, request, 3) is ErrorCode.NONE
    await coordinator.ask(end_request("t", who, True), 4)
    assert await committed_offset(brokers) == 7


async def test_offsets_of_a_group_of_somebody_else_join_no_transaction(
    brokers: JoinedBrokers, coordinator: Desk
) -> None:
    who = await coordinator.init()
    request = offsets_request("t", who, "g", {("data", 0): 7})
    assert await code(brokers, 1, request, 5) is ErrorCode.NOT_COORDINATOR
    assert await coordinator.state() == "Empty"


async def test_the_partitions_of_one_request_are_asked_for_together(brokers: JoinedBrokers, coordinator: Desk) -> None:
    who = await coordinator.init()
    request = produce_request("t", transactional_batch(who, b"0"), "data", 0)
    piece = type(request.topic_data[0].partition_data[0])
    request.topic_data[0].partition_data = [
        piece(index=index, records=transactional_batch(who, b"%d" % index)) for index in (0, 2)
    ]
    assert await code(brokers, 1, request, 12) is ErrorCode.NONE
    assert brokers.network.asked[1, COORDINATOR, "AddPartitionsToTxn"] == 1
    await coordinator.end(who, True)
    assert brokers.network.asked[COORDINATOR, 1, "WriteTxnMarkers"] == 1
    assert [await read(brokers, 0), await read(brokers, 2)] == [[b"0"], [b"2"]]


async def test_who_is_fenced_is_told_so_by_a_leader_elsewhere(brokers: JoinedBrokers, coordinator: Desk) -> None:
    old = await coordinator.init()
    new = await coordinator.init()
    late = produce_request("t", transactional_batch(old, b"zombie"), "data", 0)
    assert await code(brokers, 1, late, 12) is ErrorCode.INVALID_PRODUCER_EPOCH
    offsets = offsets_request("t", old, "g", {("data", 0): 7})
    assert await code(brokers, GROUPS, offsets, 5) is ErrorCode.INVALID_PRODUCER_EPOCH
    await write(brokers, new, 0, b"new")
    await coordinator.end(new, True)
    assert await read(brokers, 0) == [b"new"]


async def test_a_coordinator_that_cannot_be_reached_lets_clients_try_again(
    brokers: JoinedBrokers, coordinator: Desk
) -> None:
    who = await coordinator.init()
    brokers.network.cut(1, COORDINATOR)
    brokers.network.cut(GROUPS, COORDINATOR)
    request = produce_request("t", transactional_batch(who, b"x"), "data", 0)
    assert await code(brokers, 1, request, 12) is ErrorCode.NOT_ENOUGH_REPLICAS
    offsets = offsets_request("t", who, "g", {("data", 0): 7})
    assert await code(brokers, GROUPS, offsets, 5) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    brokers.network.mend()
    assert await code(brokers, 1, request, 12) is ErrorCode.NONE


async def test_nobody_waits_for_a_coordinator_that_is_none_any_more(brokers: JoinedBrokers, coordinator: Desk) -> None:
    who = await coordinator.init()
    brokers.network.hold(COORDINATOR, "AddPartitionsToTxn")
    request = produce_request("t", transactional_batch(who, b"x"), "data", 0)
    asking = asyncio.ensure_future(code(brokers, 1, request, 12))
    await asyncio.sleep(0.01)
    assert not asking.done()
    await brokers.adopt(moved(brokers, "__transaction_state", 0, 2), only=[1])
    assert await asyncio.wait_for(asking, 60) is ErrorCode.NOT_ENOUGH_REPLICAS


async def test_what_is_verified_is_not_written_after_the_transaction_has_ended(
    brokers: JoinedBrokers, coordinator: Desk
) -> None:
    """The coordinator says yes; before its word arrives the transaction is over here. Classic transactions follow each
    other under one epoch, so the log could not tell such a batch from one of the next transaction."""
    who = await coordinator.init()
    await coordinator.ask(add_request("t", who, {"data": [0]}), 3)
    brokers.network.hold(COORDINATOR, "AddPartitionsToTxn")
    request = produce_request("t", transactional_batch(who, b"late"), "data", 0)
    asking = asyncio.ensure_future(code(brokers, 1, request, 11))
    await asyncio.sleep(0.01)
    await coordinator.ask(end_request("t", who, True), 4)
    brokers.network.let_go()
    assert await asyncio.wait_for(asking, 60) is ErrorCode.INVALID_TXN_STATE
    line = brokers[1].broker.partitions.get("data", 0)
    assert line is not None and line.log.last_stable_offset == line.log.log_end_offset


# --- markers


async def test_a_client_is_answered_although_a_broker_cannot_be_reached(
    brokers: JoinedBrokers, coordinator: Desk
) -> None:
    who = await coordinator.init()
    await write(brokers, who, 0, b"here")
    await write(brokers, who, 1, b"there")
    brokers.network.cut(COORDINATOR, 2)
    after = await coordinator.end(who, True)
    assert await coordinator.state() == "PrepareCommit"
    assert await read(brokers, 0) == [b"here"]
    assert await coordinator.code(end_request("t", after, True), 5) is ErrorCode.CONCURRENT_TRANSACTIONS
    brokers.network.mend()
    await until_state(brokers, coordinator, "CompleteCommit")
    assert await read(brokers, 1) == [b"there"]


async def until_state(brokers: JoinedBrokers, coordinator: Desk, state: str, name: str = "t") -> None:
    for _ in range(100):
        if await coordinator.state(name) == state:
            return
        await pass_time(brokers, 1_000)
    raise AssertionError(f"{name} is in {await coordinator.state(name)}")


@pytest.mark.parametrize("count", [1, 20])
async def test_a_broker_is_tried_once_a_second_however_many_wait_for_it(
    brokers: JoinedBrokers, coordinator: Desk, count: int
) -> None:
    names = [f"t{number}" for number in range(count)]
    brokers.network.cut(COORDINATOR, 2)
    for name in names:
        who = await coordinator.init(name)
        await write(brokers, who, 1, name.encode(), name=name)
        await coordinator.end(who, True, name)
    for _ in range(10):
        await pass_time(brokers, 1_000)  # the pauses have become as long as they get
    before = brokers.network.asked[COORDINATOR, 2, "WriteTxnMarkers"]
    for _ in range(10):
        await pass_time(brokers, 1_000)
    assert brokers.network.asked[COORDINATOR, 2, "WriteTxnMarkers"] - before == 10
    brokers.network.mend()
    for name in names:
        await until_state(brokers, coordinator, "CompleteCommit", name)
    assert sorted(await read(brokers, 1)) == sorted(name.encode() for name in names)


async def test_who_comes_while_a_broker_is_away_waits_for_the_next_try(
    brokers: JoinedBrokers, coordinator: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(marker_channels, "_RETRY_MS", HOUR_MS)
    names = [f"t{number}" for number in range(5)]
    brokers.network.cut(COORDINATOR, 2)
    for name in names:
        who = await coordinator.init(name)
        await write(brokers, who, 1, name.encode(), name=name)
        await coordinator.end(who, True, name)
    assert brokers.network.asked[COORDINATOR, 2, "WriteTxnMarkers"] == 1
    brokers.network.mend()
    await pass_time(brokers, HOUR_MS)
    assert {await coordinator.state(name) for name in names} == {"CompleteCommit"}
    assert brokers.network.asked[COORDINATOR, 2, "WriteTxnMarkers"] == 2


async def test_markers_of_many_transactions_go_together(brokers: JoinedBrokers, coordinator: Desk) -> None:
    names = [f"t{number}" for number in range(20)]
    holders = {name: await coordinator.init(name) for name in names}
    for name, who in holders.items():
        await write(brokers, who, 1, name.encode(), name=name)
    brokers.network.hold(2, "WriteTxnMarkers")
    ending = [asyncio.ensure_future(coordinator.end(who, True, name)) for name, who in holders.items()]
    await asyncio.gather(*ending)
    asked = brokers.network.asked[COORDINATOR, 2, "WriteTxnMarkers"]
    assert asked == 1, "one request is under way"
    brokers.network.let_go()
    for name in names:
        await until_state(brokers, coordinator, "CompleteCommit", name)
    assert brokers.network.asked[COORDINATOR, 2, "WriteTxnMarkers"] <= 2


async def test_a_lost_answer_is_asked_for_again_and_changes_nothing(brokers: JoinedBrokers, coordinator: Desk) -> None:
    who = await coordinator.init()
    await write(brokers, who, 1, b"x")
    brokers.network.hold(2, "WriteTxnMarkers")
    after = await coordinator.end(who, True)
    brokers.network.cut(COORDINATOR, 2)
    brokers.network.let_go()
    await pass_time(brokers, 0)
    assert await coordinator.state() == "PrepareCommit"
    brokers.network.mend()
    await until_state(brokers, coordinator, "CompleteCommit")
    await write(brokers, after, 1, b"y")
    await coordinator.end(after, False)
    assert await read(brokers, 1) == [b"x"]


@pytest.mark.parametrize("leader", [1, COORDINATOR])
async def test_markers_follow_the_leader_at_once(brokers: JoinedBrokers, coordinator: Desk, leader: int) -> None:
    who = await coordinator.init()
    await write(brokers, who, 1, b"x")
    brokers.network.cut(COORDINATOR, 2)
    await coordinator.end(who, True)
    assert await coordinator.state() == "PrepareCommit"
    await brokers.adopt(moved(brokers, "data", 1, leader))
    await asyncio.sleep(0.01)
    assert await coordinator.state() == "CompleteCommit", "no pause was waited for"


async def test_the_word_of_an_earlier_leader_does_not_count(brokers: JoinedBrokers, coordinator: Desk) -> None:
    """It was asked, and others after it: if its answer completed the transaction, the marker that is on its way to the
    new leader could end the next one."""
    who = await coordinator.init()
    await write(brokers, who, 1, b"x")
    brokers.network.hold(2, "WriteTxnMarkers")
    await coordinator.end(who, True)
    brokers.network.cut(COORDINATOR, 1)
    await brokers.adopt(moved(brokers, "data", 1, 1))
    brokers.network.let_go()
    await pass_time(brokers, 0)
    assert await coordinator.state() == "PrepareCommit"
    brokers.network.mend()
    await until_state(brokers, coordinator, "CompleteCommit")


async def test_a_partition_without_a_leader_is_waited_for(brokers: JoinedBrokers, coordinator: Desk) -> None:
    who = await coordinator.init()
    await write(brokers, who, 1, b"x")
    topic = brokers.image.topics["data"]
    orphan = replace(topic.partitions[1], leader=-1, isr=())
    partitions = (topic.partitions[0], orphan, topic.partitions[2])
    await brokers.adopt(with_topics(brokers.image, [replace(topic, partitions=partitions)]), only=[COORDINATOR])
    await coordinator.end(who, True)
    assert await coordinator.state() == "PrepareCommit"
    await brokers.adopt(with_topics(brokers.image, [topic]))
    await asyncio.sleep(0.01)
    assert await coordinator.state() == "CompleteCommit"
    assert await read(brokers, 1) == [b"x"]


async def test_a_topic_that_the_coordinator_has_not_heard_of_is_not_taken_for_deleted(
    brokers: JoinedBrokers, coordinator: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    who = await coordinator.init()
    await write(brokers, who, 1, b"x")
    topic = brokers.image.topics["data"]
    caught_up = asyncio.Event()
    monkeypatch.setattr(brokers[COORDINATOR].broker, "catch_up", caught_up.wait)
    await brokers.adopt(without_topics(brokers.image, ["data"]), only=[COORDINATOR])
    await coordinator.end(who, True)
    assert await coordinator.state() == "PrepareCommit"
    await brokers.adopt(with_topics(brokers.image, [topic]))
    caught_up.set()
    await until_state(brokers, coordinator, "CompleteCommit")
    assert await read(brokers, 1) == [b"x"]


async def test_a_deleted_topic_holds_nothing_back(brokers: JoinedBrokers, coordinator: Desk) -> None:
    who = await coordinator.init()
    await write(brokers, who, 1, b"x")
    brokers.network.cut(COORDINATOR, 2)
    await coordinator.end(who, True)
    await brokers.adopt(without_topics(brokers.image, ["data"]))
    await until_state(brokers, coordinator, "CompleteCommit")


# --- what a leader says to coordinators


def markers_request(who: Identity, *, coordinator_epoch: int, version: int = 0, partition: int = 0) -> Any:
    asked = m.WriteTxnMarkersRequest
    return asked(
        markers=[
            asked.WritableTxnMarker(
                producer_id=who.producer_id,
                producer_epoch=who.epoch,
                transaction_result=True,
                coordinator_epoch=coordinator_epoch,
                transaction_version=version,
                topics=[asked.WritableTxnMarkerTopic(name="data", partition_indexes=[partition])],
            )
        ]
    )


async def test_a_marker_that_the_leader_before_did_not_get_committed_is_written_again(
    brokers: JoinedBrokers, coordinator: Desk
) -> None:
    """Its epoch is known from the marker itself. Refused for good, the coordinator would not ask for it any more, and
    if the next leader lacks it, a committed transaction would be aborted. Found by seed 242 of the simulation."""
    who = await coordinator.init()
    await write(brokers, who, 0, b"x")
    ended = Identity(who.producer_id, who.epoch + 1)
    marker = markers_request(ended, coordinator_epoch=5, version=2)
    assert [await code(brokers, 1, marker, 2) for _ in range(2)] == [ErrorCode.NONE] * 2
    assert await read(brokers, 0) == [b"x"]


async def test_a_marker_of_long_ago_ends_no_later_transaction(brokers: JoinedBrokers, coordinator: Desk) -> None:
    who = await coordinator.init()
    await write(brokers, who, 0, b"x")
    who = await coordinator.end(who, True)
    await write(brokers, who, 0, b"y")
    assert await code(brokers, 1, markers_request(who, coordinator_epoch=5, version=2), 2) is (
        ErrorCode.INVALID_PRODUCER_EPOCH
    )
    assert await read(brokers, 0) == [b"x"]


async def test_an_earlier_coordinator_is_fenced(brokers: JoinedBrokers, coordinator: Desk) -> None:
    who = await coordinator.init()
    await coordinator.ask(add_request("t", who, {"data": [0]}), 3)
    await brokers[1].call(produce_request("t", transactional_batch(who, b"x"), "data", 0), 11)
    assert await code(brokers, 1, markers_request(who, coordinator_epoch=5), 2) is ErrorCode.NONE
    late = markers_request(who, coordinator_epoch=4)
    assert await code(brokers, 1, late, 2) is ErrorCode.TRANSACTION_COORDINATOR_FENCED


@pytest.mark.parametrize(
    ("partition", "expected"), [(1, ErrorCode.NOT_LEADER_OR_FOLLOWER), (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
)
async def test_what_is_not_led_here_is_told_from_what_is_not_there(
    brokers: JoinedBrokers, partition: int, expected: ErrorCode
) -> None:
    request = markers_request(Identity(1, 0), coordinator_epoch=0, partition=partition)
    assert await code(brokers, 1, request, 2) is expected


async def test_those_who_ask_the_wrong_broker_are_sent_away(brokers: JoinedBrokers, coordinator: Desk) -> None:
    await coordinator.init()
    describe = m.DescribeTransactionsRequest(transactional_ids=["t"])
    assert await code(brokers, 1, describe, 0) is ErrorCode.NOT_COORDINATOR
    assert await code(brokers, 1, m.DeleteGroupsRequest(groups_names=["g"]), 2) is ErrorCode.NOT_COORDINATOR
    assert await code(brokers, 1, init_request("t"), 5) is ErrorCode.NOT_COORDINATOR
    found = await brokers[1].call(m.FindCoordinatorRequest(key_type=1, coordinator_keys=["t"]), 4)
    assert found.coordinators[0].node_id == COORDINATOR
