"""Partitions and who waits for them."""

from __future__ import annotations

import asyncio
import os
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ottla.broker.partitions.partition_table import Partitions
from ottla.broker.partitions.partitions_of_image import PartitionsOfImage
from ottla.common.clock import SystemClock
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicPartition
from ottla.common.random_ids import random_topic_id
from ottla.metadata.image import BrokerImage, ClusterImage, TopicImage, initial_partition, with_topics, without_topics
from ottla.storage.disk import Disk
from ottla.storage.log_config import LogConfig
from ottla.storage.log_manager import LogManager
from tests.storage.batches import append
from tests.support.loop_broker import LoopBroker
from tests.support.raw_client import batch_of, fetch_request, produce_request


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


class OneSyncAtATime(Disk):
    """Each sync of a log waits until it is let go."""

    def __init__(self) -> None:
        self.begun = 0
        self.let_go = threading.Semaphore(0)

    def fsync(self, fd: int) -> None:
        if os.readlink(f"/proc/self/fd/{fd}").endswith(".log"):
            self.begun += 1
            assert self.let_go.acquire(timeout=60)
        super().fsync(fd)


async def test_who_waits_for_records_is_woken_by_each_flush(tmp_path: Path) -> None:
    """Also by the second of two, of which the first was told of all bytes that were in the log by then."""
    disk = OneSyncAtATime()
    async with LoopBroker(tmp_path, disk=disk) as broker:
        await broker.create_topic("topic", configs={"flush.messages": "1"})
        producing = []
        for _ in range(2):
            producing.append(asyncio.ensure_future(broker.call(produce_request("topic", batch_of(b"x")), 9)))
            while not disk.begun:
                await asyncio.sleep(0.001)
            await _turns()
        for offset in range(2):
            asked = fetch_request([("topic", 0, offset)], max_wait_ms=3_600_000)
            fetching = asyncio.ensure_future(broker.call(asked, 12))
            await _turns()
            assert not fetching.done()
            disk.let_go.release()
            await asyncio.wait_for(producing[offset], 60)
            await _turns()
            assert fetching.done(), f"nobody was told of offset {offset}"
            while disk.begun < 2:
                await asyncio.sleep(0.001)
        disk.let_go.release(100)


async def _turns() -> None:
    for _ in range(100):
        await asyncio.sleep(0)


def test_a_topic_that_is_led_elsewhere_is_known_and_forgotten() -> None:
    partitions, nothing = Partitions(), ClusterImage("cluster")
    logs: Any = SimpleNamespace(unmade={})
    follower = PartitionsOfImage(1, partitions, logs, lambda _: LogConfig())
    topic = TopicImage("topic", random_topic_id(), (initial_partition((2, 1)),))
    image = with_topics(nothing, [topic])
    follower.on_image(nothing, image)
    assert (partitions.knows(topic.id), partitions.of_topic("topic")) == (True, [])
    follower.on_image(image, without_topics(image, ["topic"]))
    assert not partitions.by_id.knows(topic.id) and not partitions.by_name.knows(b"topic")


def test_a_leader_of_a_cluster_commits_by_what_the_topics_node_says(tmp_path: Path) -> None:
    """Not by its own settings, which may be others than those of the controller that says who is eligible."""
    topic = TopicImage("topic", random_topic_id(), (initial_partition((1, 2, 3)),), min_insync=2)
    nothing = ClusterImage("cluster", brokers={1: BrokerImage(1, None, {}, 5)})
    logs = LogManager([tmp_path], node_id=1, cluster_id="cluster", clock=SystemClock(), default_config=LogConfig())
    logs.open()
    logs.create(TopicPartition("topic", 0), topic.id, LogConfig())
    partitions = Partitions()
    replicas = PartitionsOfImage(
        1, partitions, logs, lambda _: LogConfig(min_insync_replicas=1), broker_epoch=lambda: 5
    )
    image = with_topics(nothing, [topic])
    replicas.on_image(nothing, image)

    def in_force() -> int:
        (led,) = partitions.of_topic("topic")
        assert led.replication is not None
        return led.replication.min_insync

    assert in_force() == 2
    lowered = replace(topic, min_insync=1, partitions=(replace(topic.partitions[0], partition_epoch=1),))
    replicas.on_image(image, with_topics(image, [lowered]))
    assert in_force() == 1
    logs.close(clean=True)


def test_a_leader_that_lacks_records_is_not_cut_there_when_it_follows_another(tmp_path: Path) -> None:
    """A person let it lead without them, or it was the only copy: what others have copied from it goes on behind the
    hole, and it counts as in sync when it hands over."""
    topic = TopicImage("topic", random_topic_id(), (initial_partition((1, 2)),))
    nothing = ClusterImage("cluster", brokers={1: BrokerImage(1, None, {}, 5)})
    logs = LogManager([tmp_path], node_id=1, cluster_id="cluster", clock=SystemClock(), default_config=LogConfig())
    logs.open()
    log = logs.create(TopicPartition("topic", 0), topic.id, LogConfig())
    for value in (b"1", b"2", b"3"):
        append(log, value)
    log.hole = 1
    followed: list[Any] = []
    fetchers: Any = SimpleNamespace(follow=followed.append, stop=lambda _: None)
    replicas = PartitionsOfImage(
        1, Partitions(), logs, lambda _: LogConfig(), broker_epoch=lambda: 5, fetchers=fetchers
    )
    led = with_topics(nothing, [topic])
    replicas.on_image(nothing, led)
    other = replace(topic, partitions=(replace(topic.partitions[0], leader=2, leader_epoch=1, partition_epoch=1),))
    replicas.on_image(led, with_topics(led, [other]))
    (replica,) = followed
    assert (replica.log.hole, replica.log.log_end_offset) == (None, 3)
    logs.close()
