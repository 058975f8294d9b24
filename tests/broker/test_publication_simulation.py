"""Images that come while parts of the broker fail on them, before they have done anything or after all of it.

In the end everybody goes by the last image: what is led here, which coordinators were elected and with which partition,
what they know. Nobody loads for ever, and what a coordinator knows is what its log says.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.controller import metadata_changes
from ottla.common.ids import TopicPartition
from ottla.metadata.image import ClusterImage, without_topics
from ottla.protocol import messages as m
from tests.support import transactional_client as t
from tests.support.joined_brokers import JoinedBrokers
from tests.support.loop_broker import LoopBroker
from tests.support.manual_clock import ManualClock

HERE, THERE = 1, 2
OFFSETS, STATE = "__consumer_offsets", "__transaction_state"
PARTITIONS = 2
STEPS = 40
PATIENCE_S = 60


class World:
    def __init__(self, brokers: JoinedBrokers, rng: random.Random) -> None:
        self.brokers, self.rng = brokers, rng
        self.broker = brokers[HERE].broker
        self.runtimes = {OFFSETS: self.broker.groups.runtime, STATE: self.broker.transactions.runtime}
        self.is_failing = True
        self.failures = 0
        for subscriber in self.broker.topics._subscribers:
            subscriber.on_image = self.failing(subscriber.on_image)
        ids = iter(range(1_000, 1_000_000))

        async def take() -> int:
            return next(ids)

        self.broker.producer_ids.take = take  # type: ignore[method-assign]

    def failing(self, on_image: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
        def now_and_then(old: ClusterImage, new: ClusterImage) -> None:
            chance = self.rng.random() if self.is_failing else 1.0
            if chance < 0.1:
                self.failures += 1
                raise RuntimeError("before")
            on_image(old, new)
            if chance < 0.2:
                self.failures += 1
                raise RuntimeError("after")

        return now_and_then

    async def step(self) -> None:
        topic, index = self.rng.choice((OFFSETS, STATE, "data")), self.rng.randrange(PARTITIONS)
        act = self.rng.random()
        if act < 0.4:
            leader = self.rng.choice((HERE, THERE))
            await self.brokers.change(topic, index, leader=leader, isr=(leader,))
        elif act < 0.5:
            await self.brokers.change(topic, index)
        elif act < 0.6:
            if self.rng.random() < 0.5:
                await self.brokers.adopt(without_topics(self.brokers.image, [topic]))
            await self.make(topic)
        elif act < 0.7:
            self.broker.topics.tell_all_again()
        else:
            await self.work()
        for _ in range(self.rng.choice((0, 1, 5))):
            await asyncio.sleep(0)

    async def make(self, *topics: str) -> None:
        """Or make them again: others of the same name."""
        settings = {"min.insync.replicas": "1"}
        await self.brokers.publish(
            {topic: [(HERE, THERE)] * PARTITIONS for topic in topics}, dict.fromkeys(topics, settings)
        )
        for topic in topics:
            for index in range(PARTITIONS):
                await self.brokers.change(topic, index, isr=(HERE,))

    async def work(self) -> None:
        """Whatever is answered: what it has left in a log is compared in the end."""
        one = m.OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=7)
        topic = m.OffsetCommitRequest.OffsetCommitRequestTopic(name="data", partitions=[one])
        name = self.rng.choice("abcdef")
        asked = m.OffsetCommitRequest(group_id=name, generation_id_or_member_epoch=-1, topics=[topic])
        await self.brokers[HERE].call(asked, 9)
        await self.brokers[HERE].call(t.init_request(name), 5)

    # --- at the end

    async def heal(self) -> None:
        self.is_failing = False
        subscribers = self.broker.topics._subscribers
        while any(one.seen is not self.broker.image for one in subscribers):
            await asyncio.sleep(0.001)
        await self.brokers[HERE].loaded()

    async def check(self) -> None:
        image = self.brokers.image
        for topic in (OFFSETS, STATE, "data"):
            led = {one.index: one for one in self.broker.partitions.of_topic(topic)}
            wanted = {
                index: one.leader_epoch
                for index, one in enumerate(image.topics[topic].partitions)
                if one.leader == HERE
            }
            assert {index: one.leader_epoch for index, one in led.items()} == wanted
            if topic in self.runtimes:
                assert self.runtimes[topic]._partitions == led
                before = self.memory(topic)
                assert before.keys() == led.keys()
                for index, partition in led.items():
                    self.runtimes[topic].resign(index)
                    self.runtimes[topic].elect(partition)
                await self.brokers[HERE].loaded()
                assert self.memory(topic) == before, "what it knew is what its log says"
        assert all(shard.state.image is self.broker.image for shard in self.runtimes[OFFSETS].all())

    def memory(self, topic: str) -> dict[int, Any]:
        shards = self.runtimes[topic]._shards
        if topic == STATE:
            return {index: {one.transactional_id: one for one in shard.coordinator} for index, shard in shards.items()}
        return {index: (shard.state.offsets.by_group, sorted(shard.state.groups)) for index, shard in shards.items()}


@pytest.mark.parametrize("seed", range(6))
async def test_who_fails_on_an_image_has_caught_up_in_the_end(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata_changes, "_TELL_AGAIN_S", 0.001)
    clock = ManualClock(time.time_ns() // 1_000_000)
    async with JoinedBrokers(tmp_path, 2, clock=clock, properties={"offsets.commit.timeout.ms": "1000"}) as brokers:
        world = World(brokers, random.Random(seed))
        async with asyncio.timeout(PATIENCE_S):
            await world.make("data", OFFSETS, STATE)
            for _ in range(STEPS):
                await world.step()
            await world.heal()
            await world.check()
        assert world.failures


async def test_a_coordinator_is_elected_when_its_partition_is_there_at_last(tmp_path: Path) -> None:
    """Those behind a part that failed go on after it: told before, they would have looked for the partition in vain,
    and nobody would tell them when it has come."""
    async with LoopBroker(tmp_path) as broker:
        logs, asked = broker.broker.logs, m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
        get, missing = logs.get, {TopicPartition(OFFSETS, 0)}
        logs.get = lambda tp: None if tp in missing else get(tp)  # type: ignore[method-assign]
        await broker.call(asked, 4)
        runtime = broker.broker.groups.runtime
        assert (runtime.has_topic, runtime.all()) == (False, [])
        missing.clear()
        broker.broker.topics._tell_again()
        assert (runtime.has_topic, len(runtime.all())) == (True, 1)
