"""A topic that is made again has nothing of its predecessor: neither files that could not be removed, nor changes."""

from __future__ import annotations

import asyncio
import errno
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ottla.common.errors import ApiError, ErrorCode
from ottla.common.random_ids import random_topic_id
from ottla.metadata.image import with_topics
from ottla.protocol import messages as m
from ottla.storage.disk import Disk
from tests.support.loop_broker import LoopBroker
from tests.support.raw_client import batch_of, fetch_request, produce_request


class StubbornDisk(Disk):
    """Does not rename the folder named."""

    folder = ""

    def rename(self, source: str | Path, target: str | Path) -> None:
        if self.folder and Path(source).name == self.folder:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().rename(source, target)


async def produce(broker: LoopBroker, value: bytes) -> None:
    for partition in range(3):
        answer = await broker.call(produce_request("topic", batch_of(value), partition=partition), 9)
        assert not answer.responses[0].partition_responses[0].error_code


async def sizes(broker: LoopBroker) -> list[int]:
    """How many bytes each partition has for a reader from the beginning."""
    asked = fetch_request([("topic", partition, 0) for partition in range(3)], max_wait_ms=0)
    lines = (await broker.call(asked, 12)).responses[0].partitions
    assert not any(line.error_code for line in lines)
    return [len(line.records or b"") for line in sorted(lines, key=lambda line: int(line.partition_index))]


@pytest.mark.parametrize("partition", range(3))
async def test_files_that_could_not_be_removed_come_back_in_no_topic(tmp_path: Path, partition: int) -> None:
    disk = StubbornDisk()
    async with LoopBroker(tmp_path, disk=disk) as broker:
        await broker.create_topic("topic", 3)
        await produce(broker, b"of the first")
        disk.folder = f"topic-{partition}"
        await broker.delete_topic("topic")
        disk.folder = ""
        await broker.create_topic("topic", 3)
        assert await sizes(broker) == [0, 0, 0]
        await produce(broker, b"of the second")
    async with LoopBroker(tmp_path) as broker:
        size = len(batch_of(b"of the second"))
        assert await sizes(broker) == [size, size, size]


async def test_a_topic_that_could_not_be_made_leaves_nothing_to_the_next(tmp_path: Path) -> None:
    """Its last log cannot be made, nor can its first be taken away again."""

    class Full(StubbornDisk):
        def replace_file(self, path: Path, content: bytes, *, sync: bool) -> None:
            if self.folder and path.parent.name == "topic-2":
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            super().replace_file(path, content, sync=sync)

    disk = Full()
    async with LoopBroker(tmp_path, disk=disk) as broker:
        disk.folder = "topic-0"
        with pytest.raises(ApiError):
            await broker.create_topic("topic", 3)
        disk.folder = ""
        await broker.create_topic("topic", 3)
        await produce(broker, b"x")
    async with LoopBroker(tmp_path) as broker:
        size = len(batch_of(b"x"))
        assert await sizes(broker) == [size, size, size]


# --- changes that wait for others


async def made_again(broker: LoopBroker, meanwhile: m.Message, version: int) -> Any:
    """The answer to a request that waits while its topic is deleted and made again."""
    again = m.CreateTopicsRequest.CreatableTopic(name="topic", num_partitions=3, replication_factor=1)
    changes = [
        (m.DeleteTopicsRequest(topic_names=["topic"], timeout_ms=60_000), 5),
        (m.CreateTopicsRequest(topics=[again], timeout_ms=60_000), 5),
        (meanwhile, version),
    ]
    async with broker.broker.topics._one_at_a_time:
        asked = []
        for change in changes:
            asked.append(asyncio.ensure_future(broker.call(*change)))
            for _ in range(20):
                await asyncio.sleep(0)
    return [await asyncio.wait_for(one, 60) for one in asked][-1]


async def test_a_deletion_by_id_is_not_of_the_next_topic_of_the_name(tmp_path: Path) -> None:
    async with LoopBroker(tmp_path) as broker:
        await broker.create_topic("topic", 3)
        first = broker.broker.image.topics["topic"]
        asked = m.DeleteTopicsRequest.DeleteTopicState(name=None, topic_id=first.id)
        answer = await made_again(broker, m.DeleteTopicsRequest(topics=[asked], timeout_ms=60_000), 6)
        assert answer.responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
        assert broker.broker.image.topics["topic"].id != first.id
        assert await sizes(broker) == [0, 0, 0]


async def test_settings_are_not_for_the_next_topic_of_the_name(tmp_path: Path) -> None:
    async with LoopBroker(tmp_path) as broker:
        await broker.create_topic("topic", 3, {"retention.ms": "1000"})
        change = m.IncrementalAlterConfigsRequest.AlterableConfig(
            name="max.message.bytes", config_operation=0, value="2000"
        )
        topic = m.IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=2, resource_name="topic", configs=[change]
        )
        answer = await made_again(broker, m.IncrementalAlterConfigsRequest(resources=[topic]), 1)
        assert answer.responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert broker.broker.image.topics["topic"].configs == {}


async def test_one_that_was_made_again_before_anybody_looked_has_logs_of_its_own(tmp_path: Path) -> None:
    """A broker of a cluster that was behind hears of the end of the first and of the second at once."""
    async with LoopBroker(tmp_path) as broker:
        await broker.create_topic("topic", 3)
        await produce(broker, b"of the first")
        topics = broker.broker.topics
        second = replace(topics.image.topics["topic"], id=random_topic_id())
        await topics.change(topics.adopt(with_topics(topics.image, [second]), is_ours=False))
        assert await sizes(broker) == [0, 0, 0]
        await produce(broker, b"of the second")
