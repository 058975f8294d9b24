"""The same faults through the disk port, for machines where nothing can be mounted or traced."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ottla.common.errors import ErrorCode
from ottla.records.record import iterate_batches, read_records
from tests.storage.disks import BrokenDisk, FullDisk
from tests.support.loop_broker import LoopBroker
from tests.support.raw_client import batch_of, fetch_request, produce_request

TOPIC = "ledger"
FLUSHED = {"log.flush.interval.messages": "1"}


async def produce(broker: LoopBroker, value: bytes, **fields: Any) -> Any:
    answer = await broker.call(produce_request(TOPIC, batch_of(value, **fields)), 9)
    return answer.responses[0].partition_responses[0]


async def values(broker: LoopBroker) -> list[bytes | None]:
    answer = await broker.call(fetch_request([(TOPIC, 0, 0)], max_wait_ms=0), 12)
    records = answer.responses[0].partitions[0].records or b""
    return [one.value for position, _ in iterate_batches(records) for one in read_records(records, position)]


async def test_a_full_disk_is_an_error_and_passes_when_there_is_room(tmp_path: Path) -> None:
    disk = FullDisk()
    async with LoopBroker(tmp_path, disk=disk) as broker:
        await broker.create_topic(TOPIC)
        assert (await produce(broker, b"before")).error_code == 0
        for room in (0, 1, 60, 61, 100):
            disk.room = room
            line = await produce(broker, b"x" * 200)
            assert ErrorCode(line.error_code) is ErrorCode.KAFKA_STORAGE_ERROR
            assert "full" in line.error_message
            assert await values(broker) == [b"before"]
        disk.room = 1 << 30
        assert (await produce(broker, b"after")).base_offset == 1
    async with LoopBroker(tmp_path) as again:
        assert await values(again) == [b"before", b"after"]


@pytest.mark.parametrize("idempotent", [False, True])
async def test_a_failed_fsync_is_never_acknowledged_whatever_is_tried_again(tmp_path: Path, idempotent: bool) -> None:
    """A retry of an idempotent producer finds its batch in the log: it must not take that for a success."""
    disk = BrokenDisk()
    fields = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 1} if idempotent else {}
    async with LoopBroker(tmp_path, FLUSHED, disk=disk) as broker:
        await broker.create_topic(TOPIC)
        first = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0} if idempotent else {}
        assert (await produce(broker, b"safe", **first)).error_code == 0
        disk.broken.add("fsync")
        lines = await asyncio.gather(*(produce(broker, b"doubtful", **fields) for _ in range(3)))
        assert {ErrorCode(line.error_code) for line in lines} == {ErrorCode.KAFKA_STORAGE_ERROR}
        disk.broken.clear()  # the next fsync would say yes, though the pages are gone
        line = await produce(broker, b"doubtful", **fields)
        assert ErrorCode(line.error_code) is ErrorCode.KAFKA_STORAGE_ERROR
        # Nothing of the directory is served any more: what a reader saw might not be there tomorrow.
        answer = await broker.call(fetch_request([(TOPIC, 0, 0)], max_wait_ms=0), 12)
        assert ErrorCode(answer.responses[0].partitions[0].error_code) is ErrorCode.KAFKA_STORAGE_ERROR
    async with LoopBroker(tmp_path) as again:
        assert (await values(again))[0] == b"safe"
