"""A topic that is made again has nothing of its predecessor, also where files of that one could not be removed."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from ottla.common.errors import ApiError
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
        await broker.broker.topics.delete(["topic"])
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
