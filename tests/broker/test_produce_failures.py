"""A produce request of which one partition breaks: the others are written, and their producer hears of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ottla.common.errors import ErrorCode
from ottla.protocol.messages import ProduceRequest
from ottla.storage.log import Log
from tests.support.loop_broker import LoopBroker
from tests.support.raw_client import batch_of


@pytest.mark.parametrize("count", [3, 200])
@pytest.mark.parametrize("settings", [{}, {"compression.type": "lz4"}], ids=["plain", "recompressed"])
@pytest.mark.parametrize(
    ("error", "code"),
    [(OSError(24, "too many open files"), "KAFKA_STORAGE_ERROR"), (ZeroDivisionError(), "UNKNOWN_SERVER_ERROR")],
)
async def test_one_partition_that_breaks_does_not_take_the_others_along(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    code: str,
    settings: dict[str, str],
    count: int,
) -> None:
    append = Log.append

    def broken(log: Log, data: Any, **fields: Any) -> Any:
        if log.name == "topic-1":
            raise error
        return append(log, data, **fields)

    async with LoopBroker(tmp_path) as broker:
        await broker.create_topic("topic", count, settings)
        monkeypatch.setattr(Log, "append", broken)
        data = [ProduceRequest.PartitionProduceData(index=one, records=batch_of(b"record")) for one in range(count)]
        topic = ProduceRequest.TopicProduceData(name="topic", partition_data=data)
        answer = await broker.call(ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic]), 9)
        told = {one.index: ErrorCode(one.error_code).name for one in answer.responses[0].partition_responses}
        assert told == {one: code if one == 1 else "NONE" for one in range(count)}
