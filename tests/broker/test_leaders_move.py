"""Every kind of request that waits for a partition, while that gets another leader, another epoch, or is deleted: it is
answered at once, long before its own time is over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.common.errors import ErrorCode
from ottla.metadata.image import without_topics
from ottla.protocol import messages as m
from tests.support.joined_brokers import JoinedBrokers
from tests.support.raw_client import batch_of
from tests.support.transactional_client import (
    Identity,
    add_request,
    all_codes,
    init_request,
    produce_request,
    transactional_batch,
)

HERE, THERE = 1, 2
BOTH = (HERE, THERE)
TOPIC = "data"
HOUR_MS = 3_600_000
Ask = Callable[[JoinedBrokers], Any]


@pytest.fixture
async def brokers(tmp_path: Path) -> AsyncIterator[JoinedBrokers]:
    """What is written here has to get there, whence nobody fetches. The coordinator of transactions is there."""
    async with JoinedBrokers(tmp_path, 2) as joined:
        await joined.publish({TOPIC: [BOTH], "__transaction_state": [THERE]}, {TOPIC: {"min.insync.replicas": "1"}})
        ids = iter(range(1000, 2000))

        async def take() -> int:
            return next(ids)

        joined[THERE].broker.producer_ids.take = take  # type: ignore[method-assign]
        yield joined


async def produce(brokers: JoinedBrokers, acks: int = -1) -> Any:
    request = produce_request(None, batch_of(b"waits"), TOPIC, acks=acks)
    request.timeout_ms = HOUR_MS
    return await brokers[HERE].call(request, 9)


async def produce_the_same_again(brokers: JoinedBrokers) -> Any:
    """A request of a known layout takes the short cut."""
    for _ in range(3):
        await produce(brokers, acks=1)
    return await produce(brokers)


async def produce_from_a_producer_that_repeats_itself(brokers: JoinedBrokers) -> Any:
    batch = batch_of(b"waits", producer_id=1, producer_epoch=0, base_sequence=0)
    await brokers[HERE].call(produce_request(None, bytearray(batch), TOPIC, acks=1), 9)
    return await brokers[HERE].call(produce_request(None, bytearray(batch), TOPIC), 9)


async def begin(brokers: JoinedBrokers) -> Identity:
    answer = await brokers[THERE].call(init_request("t"), 5)
    who = Identity(answer.producer_id, answer.producer_epoch)
    added = await brokers[THERE].call(add_request("t", who, {TOPIC: [0]}), 3)
    assert max(all_codes(added)) == 0
    return who


async def produce_in_a_transaction(brokers: JoinedBrokers) -> Any:
    who = await begin(brokers)
    return await brokers[HERE].call(produce_request("t", transactional_batch(who, b"waits"), TOPIC), 9)


async def produce_while_the_coordinator_is_asked(brokers: JoinedBrokers) -> Any:
    """Its word arrives when the partition is somebody else's."""
    who = await begin(brokers)
    brokers.network.hold(THERE, "AddPartitionsToTxn")
    return await brokers[HERE].call(produce_request("t", transactional_batch(who, b"waits"), TOPIC), 9)


async def fetch(brokers: JoinedBrokers) -> Any:
    wanted = m.FetchRequest.FetchPartition(
        partition=0, current_leader_epoch=0, fetch_offset=0, partition_max_bytes=1 << 20
    )
    topic = m.FetchRequest.FetchTopic(topic=TOPIC, partitions=[wanted])
    request = m.FetchRequest(
        replica_id=-1, max_wait_ms=HOUR_MS, min_bytes=1, max_bytes=1 << 20, topics=[topic], session_epoch=-1
    )
    return await brokers[HERE].call(request, 11)


async def delete_records(brokers: JoinedBrokers) -> Any:
    await produce(brokers, acks=1)
    await brokers.change(TOPIC, isr=(HERE,))
    await brokers.change(TOPIC, isr=BOTH)
    asked = m.DeleteRecordsRequest.DeleteRecordsTopic(
        name=TOPIC, partitions=[m.DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=1)]
    )
    return await brokers[HERE].call(m.DeleteRecordsRequest(topics=[asked], timeout_ms=HOUR_MS), 2)


async def write_markers(brokers: JoinedBrokers) -> Any:
    marked = m.WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=TOPIC, partition_indexes=[0])
    marker = m.WriteTxnMarkersRequest.WritableTxnMarker(
        producer_id=1, producer_epoch=0, transaction_result=True, coordinator_epoch=0, topics=[marked]
    )
    return await brokers[HERE].call(m.WriteTxnMarkersRequest(markers=[marker]), 1)


ASKING = [
    produce,
    produce_the_same_again,
    produce_from_a_producer_that_repeats_itself,
    produce_in_a_transaction,
    produce_while_the_coordinator_is_asked,
    fetch,
    delete_records,
    write_markers,
]


async def moved(brokers: JoinedBrokers) -> None:
    await brokers.change(TOPIC, leader=THERE)


async def led_here_again(brokers: JoinedBrokers) -> None:
    await brokers.change(TOPIC, leader=HERE)


async def without_a_leader(brokers: JoinedBrokers) -> None:
    await brokers.change(TOPIC, leader=-1)


async def deleted(brokers: JoinedBrokers) -> None:
    await brokers.adopt(without_topics(brokers.image, [TOPIC]))


@pytest.mark.parametrize("ask", ASKING)
@pytest.mark.parametrize("happens", [moved, led_here_again, without_a_leader, deleted])
async def test_nobody_waits_for_a_partition_that_is_led_here_no_more(
    brokers: JoinedBrokers, ask: Ask, happens: Any
) -> None:
    asking = asyncio.ensure_future(ask(brokers))
    done, _ = await asyncio.wait([asking], timeout=0.1)
    assert not done, asking.result()
    await happens(brokers)
    brokers.network.let_go()
    codes = {ErrorCode(code) for code in all_codes(await asyncio.wait_for(asking, 60))} - {ErrorCode.NONE}
    assert codes, "it was told that nothing is wrong"
    assert codes <= {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }


@pytest.mark.parametrize(
    "ask", [produce, produce_the_same_again, produce_in_a_transaction, delete_records, write_markers]
)
async def test_nobody_waits_for_other_replicas_at_a_broker_that_could_not_hand_over(
    brokers: JoinedBrokers, ask: Ask
) -> None:
    """The controller is away: the broker stops all the same, and the next leader is elected when it is gone. Until then
    clients waited for their own time, or for the connection to be closed."""
    asking = asyncio.ensure_future(ask(brokers))
    done, _ = await asyncio.wait([asking], timeout=0.1)
    assert not done, asking.result()
    brokers[HERE].broker.release_waiting()
    codes = {ErrorCode(code) for code in all_codes(await asyncio.wait_for(asking, 60))} - {ErrorCode.NONE}
    assert codes == {ErrorCode.NOT_LEADER_OR_FOLLOWER}
