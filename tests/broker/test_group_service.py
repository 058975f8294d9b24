"""The group coordinator inside a broker: loading, durability, time, and what changes around it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest

from ottla.broker.coordinators.groups.group_service import GroupService
from ottla.broker.coordinators.java_hash import partition_of
from ottla.common.errors import ApiError, ErrorCode
from ottla.protocol import messages as m
from ottla.testing import Broker
from tests.broker.handlers.group_talk import (
    Talk,
    commit,
    commit_request,
    consumer_heartbeat,
    fetch_request,
    join_request,
    new_member_id,
    wait_until,
)

DAY_S = 86_400


@pytest.fixture
def broker() -> Iterator[Broker]:
    # Tests that move the clock want to keep their connections.
    with Broker({"offsets.topic.num.partitions": "1", "connections.max.idle.ms": "-1"}) as running:
        running.create_topic("orders", 4)
        yield running


@pytest.fixture
def talk(broker: Broker) -> Iterator[Talk]:
    conversation = talk_to(broker)
    yield conversation
    conversation.close()


def talk_to(broker: Broker) -> Talk:
    conversation = Talk(broker.bootstrap_servers)
    assert conversation.client.call(m.FindCoordinatorRequest(key="g"), 3).error_code == 0
    return conversation


def service(broker: Broker) -> GroupService:
    return broker.server.broker.groups


def committed(talk: Talk, group: str = "g", partition: int = 0) -> int:
    answer = talk.client.call(fetch_request(talk, group, (partition,)), 9)
    while answer.groups[0].error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:  # as it may be after a restart
        time.sleep(0.05)
        answer = talk.client.call(fetch_request(talk, group, (partition,)), 9)
    assert answer.groups[0].error_code == 0
    offset: int = answer.groups[0].topics[0].partitions[0].committed_offset
    return offset


# --- where groups live


@pytest.mark.parametrize(
    ("group", "code"),
    [("", 0), ("a", 97), ("group", 98629247), ("polygenelubricants", -(2**31)), ("zażółć 🦆", 1000676709)],
)
def test_a_group_lives_where_kafka_would_put_it(group: str, code: int) -> None:
    expected = 0 if code == -(2**31) else abs(code) % 50
    assert partition_of(group, 50) == expected


# --- loading


def test_groups_are_loaded_in_turns_and_clients_are_told_to_wait(broker: Broker, talk: Talk) -> None:
    for number in range(1_500):
        commit(talk, f"g{number}", number, metadata="x" * 16)

    async def load_again() -> tuple[list[ErrorCode], Any]:
        """A second coordinator on the same log: what clients were told whenever the loop had its turn."""
        groups = GroupService(broker.server.broker)
        groups.runtime.follow(groups._broker.image)
        told = []
        while True:
            try:
                return told, groups.shard("g1").state
            except ApiError as error:
                told.append(error.code)
            await asyncio.sleep(0)

    told, state = broker.run(load_again())
    assert len(told) > 3 and set(told) == {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
    assert state.offsets.by_group == service(broker).shard("g1").state.offsets.by_group


def test_a_record_that_cannot_be_read_keeps_nobody_from_being_served(broker: Broker, talk: Talk) -> None:
    from ottla.records.record import Record, build_batch
    from ottla.storage.results import Origin

    commit(talk, "g", 5)
    partition = broker.server.broker.partitions.get("__consumer_offsets", 0)
    assert partition is not None
    rows = [(b"\x00\x01nonsense", b"x"), (b"\x00\x63a kind of later", b"x"), (b"", None)]

    async def spoil() -> None:
        batch = build_batch([Record(number, 1, key, value) for number, (key, value) in enumerate(rows)])
        partition.append(batch, 1, Origin.COORDINATOR)

    broker.run(spoil())
    commit(talk, "g", 6)
    broker.restart()
    again = talk_to(broker)
    again.topic_id = talk.topic_id
    assert committed(again) == 6
    again.close()


def test_requests_before_there_is_a_coordinator_are_sent_to_find_one() -> None:
    with Broker() as broker:
        broker.create_topic("orders", 1)
        talk = Talk(broker.bootstrap_servers)
        answer = talk.client.call(commit_request(talk, "g", 1), 9)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NOT_COORDINATOR
        assert talk.client.call(m.ListGroupsRequest(), 4).groups == []
        talk.close()


# --- durability


def test_where_each_write_is_flushed_a_commit_is_answered_when_it_is_on_disk() -> None:
    with Broker({"log.flush.interval.messages": "1", "offsets.topic.num.partitions": "1"}) as broker:
        broker.create_topic("orders", 1)
        talk = talk_to(broker)
        partition = broker.server.broker.partitions.get("__consumer_offsets", 0)
        assert partition is not None
        for offset in range(20):
            answer = commit(talk, "g", offset)
            assert answer.topics[0].partitions[0].error_code == 0
            assert partition.log.recovery_point > offset
        member = new_member_id(talk, "h", "m")
        assert talk.client.call(join_request("h", member), 9).error_code == 0
        talk.close()


# --- time


def test_offsets_and_groups_nobody_needs_go_with_time(broker: Broker, talk: Talk) -> None:
    commit(talk, "g", 5)
    broker.clock.advance(days=8)
    deadline = time.monotonic() + 60
    while talk.client.call(m.ListGroupsRequest(), 4).groups:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_jump_of_the_wall_clock_forgets_no_offset(
    broker: Broker, talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(talk, "g", 5)
    now_ms = broker.clock.now_ms
    monkeypatch.setattr(broker.clock, "now_ms", lambda: now_ms() + 1_000 * DAY_S * 1_000)
    broker.run(service(broker).expire_offsets())
    assert committed(talk) == 5


def test_a_session_ends_when_the_clock_says_so(broker: Broker, talk: Talk) -> None:
    member = new_member_id(talk, "g", "m")
    talk.client.call(join_request("g", member), 9)
    broker.clock.advance(seconds=60)
    wait_until(talk, "g", "Empty")


# --- what changes around


def test_offsets_go_with_their_topic(broker: Broker, talk: Talk) -> None:
    commit(talk, "g", 5)
    deleted = m.DeleteTopicsRequest(topics=[m.DeleteTopicsRequest.DeleteTopicState(name="orders")], timeout_ms=9_000)
    assert talk.client.call(deleted, 6).responses[0].error_code == 0
    broker.create_topic("orders", 4)
    assert committed(talk) == -1


def test_a_group_can_have_settings_of_its_own(broker: Broker, talk: Talk) -> None:
    from ottla.broker.configs.config_changes import Change

    talk.topic_id = _topic_id(talk)
    before = talk.client.call(consumer_heartbeat(talk, "g", "m", 0), 1)
    configs = broker.server.broker.configs
    broker.run(configs.change(32, "g", [Change("consumer.heartbeat.interval.ms", 0, "700")], validate_only=False))
    after = talk.client.call(consumer_heartbeat(talk, "g", "m", before.member_epoch), 1)
    assert (before.heartbeat_interval_ms, after.heartbeat_interval_ms) == (500, 700)


def test_settings_of_the_broker_change_while_it_runs(broker: Broker, talk: Talk) -> None:
    from ottla.broker.configs.config_changes import Change

    talk.topic_id = _topic_id(talk)
    configs = broker.server.broker.configs
    change = Change("group.consumer.assignment.interval.ms", 0, "15000")
    broker.run(configs.change(4, "", [change], validate_only=False))
    talk.client.call(consumer_heartbeat(talk, "g", "m1", 0), 1)
    talk.client.call(consumer_heartbeat(talk, "g", "m2", 0), 1)
    described = talk.client.call(m.ConsumerGroupDescribeRequest(group_ids=["g"]), 1)
    assert described.groups[0].group_state == "Assigning", "the second member comes too soon for a new assignment"


def _topic_id(talk: Talk) -> bytes:
    asked = [m.MetadataRequest.MetadataRequestTopic(name="orders")]
    found = talk.client.call(m.MetadataRequest(topics=asked, allow_auto_topic_creation=False), 12)
    return bytes(found.topics[0].topic_id)


def test_a_join_that_waits_is_answered_when_the_broker_stops(broker: Broker, talk: Talk) -> None:
    first, second = new_member_id(talk, "g", "first"), new_member_id(talk, "g", "second")
    assert talk.client.call(join_request("g", first), 9).error_code == 0
    waiting = talk.send(join_request("g", second), 9)
    wait_until(talk, "g", "PreparingRebalance")
    broker.stop()
    assert waiting().error_code == ErrorCode.NOT_COORDINATOR
