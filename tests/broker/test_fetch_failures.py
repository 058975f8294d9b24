"""Fetches under which something breaks: every one is answered, and each partition speaks for itself."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path
from typing import Any

import pytest

from ottla.common.errors import ErrorCode
from ottla.protocol.messages import ProduceRequest
from ottla.storage.log import Log
from ottla.storage.producers import log_transactions
from tests.support.loop_broker import LoopBroker
from tests.support.raw_client import batch_of, fetch_request

# Only guards against hanging.
GUARD_S = 60


def errors(answer: Any) -> list[ErrorCode]:
    return [ErrorCode(line.error_code) for topic in answer.responses for line in topic.partitions]


async def produce(broker: LoopBroker, partition: int) -> None:
    data = ProduceRequest.PartitionProduceData(index=partition, records=batch_of(b"record"))
    topic = ProduceRequest.TopicProduceData(name="topic", partition_data=[data])
    answer = await broker.call(ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic]), 9)
    assert answer.responses[0].partition_responses[0].error_code == 0


async def park(broker: LoopBroker, **fields: Any) -> asyncio.Task[Any]:
    """A fetch of committed records of both partitions, from their beginning."""
    wanted = [("topic", partition, 0) for partition in range(2)]
    waiting = asyncio.ensure_future(broker.call(fetch_request(wanted, isolation_level=1, **fields), 12))
    while not broker.broker.parked_fetches:
        await asyncio.sleep(0)
    return waiting


def break_reading(monkeypatch: pytest.MonkeyPatch, partition: int, error: Exception) -> None:
    find = log_transactions.aborted_between

    def broken(log: Log, start: int, upper: int) -> list[tuple[int, int]]:
        if log.partition == partition:
            raise error
        return find(log, start, upper)

    monkeypatch.setattr(log_transactions, "aborted_between", broken)


@pytest.mark.parametrize("max_wait_ms", [50, 600_000], ids=["at its deadline", "when records come"])
async def test_a_disk_that_fails_under_a_waiting_fetch_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, max_wait_ms: int
) -> None:
    async with LoopBroker(tmp_path) as broker:
        await broker.create_topic("topic", 2)
        break_reading(monkeypatch, 1, OSError(errno.EMFILE, "too many open files"))
        waiting = await park(broker, max_wait_ms=max_wait_ms, min_bytes=100_000 if max_wait_ms < 1000 else 1)
        await produce(broker, 1)
        answer = await asyncio.wait_for(waiting, GUARD_S)
        assert errors(answer) == [ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR]
        assert not any(line.records for topic in answer.responses for line in topic.partitions)


async def test_a_waiting_fetch_ends_whatever_goes_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with LoopBroker(tmp_path) as broker:
        await broker.create_topic("topic", 2)
        break_reading(monkeypatch, 1, ZeroDivisionError())
        waiting = await park(broker, max_wait_ms=600_000)
        await produce(broker, 1)
        with pytest.raises(ZeroDivisionError):  # which closes the connection
            await asyncio.wait_for(waiting, GUARD_S)
        assert not broker.broker.parked_fetches


async def test_a_consumer_at_the_end_of_a_log_learns_that_it_failed(tmp_path: Path) -> None:
    async with LoopBroker(tmp_path) as broker:
        await broker.create_topic("topic", 2)
        partition = broker.broker.partitions.get("topic", 1)
        assert partition is not None
        partition.log.fail("the disk is gone")
        request = fetch_request([("topic", 0, 0), ("topic", 1, 0)], max_wait_ms=0)
        assert errors(await broker.call(request, 12)) == [ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR]
