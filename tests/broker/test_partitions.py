"""Partitions and who waits for them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from ottla.broker.partitions.partition_table import Partitions
from ottla.broker.partitions.partitions_of_image import PartitionsOfImage
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.random_ids import random_topic_id
from ottla.metadata.image import ClusterImage, TopicImage, initial_partition, with_topics, without_topics
from ottla.storage.log_config import LogConfig
from tests.support.loop_broker import LoopBroker
from tests.support.raw_client import batch_of


class Waiter:
    """Counts how often one is compared with another: the work of finding it among many."""

    comparisons = 0

    def __call__(self, size: int) -> None: ...

    def __eq__(self, other: object) -> bool:
        Waiter.comparisons += 1
        return self is other

    def __hash__(self) -> int:
        return id(self) >> 4


async def test_many_may_wait_for_one_partition_and_leave_in_any_order(tmp_path: Path) -> None:
    async with LoopBroker(tmp_path) as broker:
        await broker.create_topic("topic")
        partition = broker.broker.partitions.get("topic", 0)
        assert partition is not None
        waiters = [Waiter() for _ in range(2000)]
        for one in waiters:
            partition.watch(one)
        Waiter.comparisons = 0
        for one in (*waiters[1::2], *reversed(waiters[::2])):
            partition.unwatch(one)
        assert Waiter.comparisons < 10 * len(waiters)


async def test_who_waits_for_what_is_not_in_the_log_is_told_and_nobody_spins(tmp_path: Path) -> None:
    async with LoopBroker(tmp_path) as broker:
        await broker.create_topic("topic", configs={"flush.messages": "1"})
        partition = broker.broker.partitions.get("topic", 0)
        assert partition is not None
        told: list[Exception | None] = []
        result = partition.append(batch_of(b"x"), 1)
        partition.when_committed(result.last_offset + 1, told.append)
        partition.when_committed(result.last_offset + 5, told.append)
        while len(told) < 2:
            await asyncio.sleep(0.001)
        assert told[0] is None
        assert isinstance(told[1], ApiError) and told[1].code is ErrorCode.KAFKA_STORAGE_ERROR


def test_a_topic_that_is_led_elsewhere_is_known_and_forgotten() -> None:
    partitions, nothing = Partitions(), ClusterImage("cluster")
    follower = PartitionsOfImage(1, partitions, Any, lambda _: LogConfig())  # type: ignore[arg-type]
    topic = TopicImage("topic", random_topic_id(), (initial_partition((2, 1)),))
    image = with_topics(nothing, [topic])
    follower.on_image(nothing, image)
    assert (partitions.knows(topic.id), partitions.of_topic("topic")) == (True, [])
    follower.on_image(image, without_topics(image, ["topic"]))
    assert not partitions.knows(topic.id) and not partitions.knows(b"topic")
