"""Coordinators whose partition gets another leader, or another epoch, or too few replicas, while somebody waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.partitions.partition import Partition
from ottla.common.errors import ErrorCode
from ottla.protocol import messages as m
from tests.broker.test_coordinator_resigns import join_request
from tests.support.joined_brokers import JoinedBrokers
from tests.support.transactional_client import Identity, add_request, all_codes, end_request, init_request

HERE, THERE = 1, 2
BOTH = (HERE, THERE)
OFFSETS, STATE = "__consumer_offsets", "__transaction_state"


@pytest.fixture
async def brokers(tmp_path: Path) -> AsyncIterator[JoinedBrokers]:
    """Both coordinators are here; what they write is committed while they are alone."""
    properties = {"offsets.commit.timeout.ms": "1000", "group.initial.rebalance.delay.ms": "0"}
    async with JoinedBrokers(tmp_path, 2, properties=properties) as joined:
        settings = {"min.insync.replicas": "1"}
        await joined.publish({"data": [HERE], OFFSETS: [BOTH], STATE: [BOTH]}, {OFFSETS: settings, STATE: settings})
        for topic in (OFFSETS, STATE):
            await joined.change(topic, isr=(HERE,))
        ids = iter(range(1000, 2000))

        async def take() -> int:
            return next(ids)

        joined[HERE].broker.producer_ids.take = take  # type: ignore[method-assign]
        yield joined


def led(brokers: JoinedBrokers, topic: str) -> Partition:
    found = brokers[HERE].broker.partitions.get(topic, 0)
    assert found is not None
    return found


def commit_request(offset: int) -> m.OffsetCommitRequest:
    one = m.OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = m.OffsetCommitRequest.OffsetCommitRequestTopic(name="data", partitions=[one])
    return m.OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, topics=[topic])


def fetch_request() -> m.OffsetFetchRequest:
    asked = m.OffsetFetchRequest.OffsetFetchRequestGroup(
        group_id="g", topics=[m.OffsetFetchRequest.OffsetFetchRequestTopics(name="data", partition_indexes=[0])]
    )
    return m.OffsetFetchRequest(groups=[asked])


async def code(brokers: JoinedBrokers, request: Any, version: int) -> ErrorCode:
    return ErrorCode(max(all_codes(await brokers[HERE].call(request, version))))


async def offset(brokers: JoinedBrokers) -> int:
    (group,) = (await brokers[HERE].call(fetch_request(), 9)).groups
    assert not group.error_code
    return int(group.topics[0].partitions[0].committed_offset)


async def begun(brokers: JoinedBrokers) -> Identity:
    """A classic transaction with one partition."""
    answer = await brokers[HERE].call(init_request("t"), 5)
    who = Identity(answer.producer_id, answer.producer_epoch)
    assert await code(brokers, add_request("t", who, {"data": [0]}), 3) is ErrorCode.NONE
    return who


async def state(brokers: JoinedBrokers) -> str:
    answer = await brokers[HERE].call(m.DescribeTransactionsRequest(transactional_ids=["t"]), 0)
    return str(answer.transaction_states[0].transaction_state)


async def asked(brokers: JoinedBrokers, *requests: tuple[Any, int]) -> list[asyncio.Future[ErrorCode]]:
    """All of them wait."""
    asking = [asyncio.ensure_future(code(brokers, *one)) for one in requests]
    await asyncio.sleep(0.01)
    assert not any(one.done() for one in asking)
    return asking


def send_request(who: Identity) -> tuple[Any, int]:
    return end_request("t", who, True), 3


# --- another leader


async def test_who_waits_for_a_commit_is_sent_to_the_next_coordinator(brokers: JoinedBrokers) -> None:
    """Readers too: what they have seen is not committed."""
    who = await begun(brokers)
    for topic in (OFFSETS, STATE):
        await brokers.change(topic, isr=BOTH)
    asking = await asked(
        brokers,
        (commit_request(7), 9),
        (fetch_request(), 9),
        (join_request(), 9),
        send_request(who),
        (init_request("u"), 5),
    )
    ends = [led(brokers, topic).log.log_end_offset for topic in (OFFSETS, STATE)]
    partitions = [led(brokers, topic) for topic in (OFFSETS, STATE)]
    for topic in (OFFSETS, STATE):
        await brokers.change(topic, leader=THERE)
    assert await asyncio.wait_for(asyncio.gather(*asking), 60) == [ErrorCode.NOT_COORDINATOR] * len(asking)
    assert [one.log.log_end_offset for one in partitions] == ends, "who has resigned writes nothing"
    assert brokers[HERE].broker.groups.runtime.all() == []
    assert brokers[HERE].broker.transactions.runtime.all() == []


async def test_the_same_leader_under_another_epoch_reads_the_log_again(brokers: JoinedBrokers) -> None:
    who = await begun(brokers)
    assert await code(brokers, commit_request(7), 9) is ErrorCode.NONE
    runtimes = (brokers[HERE].broker.groups.runtime, brokers[HERE].broker.transactions.runtime)
    before = [runtime.get(0) for runtime in runtimes]
    for topic in (OFFSETS, STATE):
        await brokers.change(topic, isr=(HERE,))
    assert [runtime.get(0) for runtime in runtimes] == before, "a change of the in-sync replicas is none of the leader"
    for topic in (OFFSETS, STATE):
        await brokers.change(topic, leader=HERE)
    after = [runtime.get(0) for runtime in runtimes]
    assert not any(old is new for old, new in zip(before, after, strict=True))
    assert await offset(brokers) == 7
    assert await state(brokers) == "Ongoing"
    assert await code(brokers, *send_request(who)) is ErrorCode.NONE
    (_, marker) = _batches(led(brokers, "data"))
    assert marker == led(brokers, STATE).leader_epoch == 1, "markers carry the epoch of the coordinator"


def _batches(partition: Partition) -> tuple[int, int]:
    """How many markers there are, and the coordinator epoch of the last one."""
    entries = partition.log.producers.entries
    return len(entries), max(one.coordinator_epoch for one in entries.values())


# --- too few replicas


async def test_what_is_not_committed_is_not_shown_and_counts_when_it_is(brokers: JoinedBrokers) -> None:
    assert await code(brokers, commit_request(1), 9) is ErrorCode.NONE
    await brokers.change(OFFSETS, isr=BOTH)
    committing, looking = await asked(brokers, (commit_request(2), 9), (fetch_request(), 9))
    again = [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2
    assert await asyncio.wait_for(asyncio.gather(committing, looking), 60) == again, "offsets.commit.timeout.ms"
    await brokers.change(OFFSETS, isr=(HERE,))
    assert await offset(brokers) == 2, "it is in the log"


async def test_nothing_is_written_that_could_not_be_committed(brokers: JoinedBrokers) -> None:
    who = await begun(brokers)
    for topic in (OFFSETS, STATE):
        partition = led(brokers, topic)
        assert partition.replication is not None
        partition.replication.min_insync = 2
    ends = [led(brokers, topic).log.log_end_offset for topic in (OFFSETS, STATE)]
    away = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert await code(brokers, commit_request(2), 9) is away
    assert await code(brokers, join_request(), 9) is away
    assert await code(brokers, *send_request(who)) is away
    assert [led(brokers, topic).log.log_end_offset for topic in (OFFSETS, STATE)] == ends


async def test_a_decision_that_lacks_replicas_is_carried_out_when_they_are_back(brokers: JoinedBrokers) -> None:
    who = await begun(brokers)
    await brokers.change(STATE, isr=BOTH)
    (ending,) = await asked(brokers, send_request(who))
    assert await asyncio.wait_for(ending, 60) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    markers = led(brokers, "data").log.log_end_offset
    assert markers == 0, "no marker outlives its decision"
    await brokers.change(STATE, isr=(HERE,))
    async with asyncio.timeout(60):
        while await state(brokers) != "CompleteCommit":
            await asyncio.sleep(0.01)
    assert led(brokers, "data").log.log_end_offset == 1
    assert await code(brokers, *send_request(who)) is ErrorCode.NONE, "asked again, it is as it was decided"
