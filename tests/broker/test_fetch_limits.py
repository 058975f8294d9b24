"""What a fetch sends when not everything fits, compared with a model of Kafka's rules (KIP-74), batch by batch.

The first partition that has anything to send gets one whole batch at least, whatever the limits say. Every other one is
held to its own limit and to what is left of the answer's, and sends nothing at all when its first batch does not fit:
clients take a batch that is cut at the very beginning for a mistake of ours.
"""

from __future__ import annotations

import asyncio
import random
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from ottla.protocol.messages import FetchRequest, ProduceRequest
from ottla.records.batch import HEADER_SIZE, read_header
from tests.support.loop_broker import LoopBroker
from tests.support.raw_client import batch_of, fetch_request

VERSION = 12
# Never waited for: an answer that has enough comes at once.
LONG_WAIT_MS = 600_000
GUARD_S = 60

Sizes = list[tuple[int, int]]  # of a partition's batches: base offset, bytes


def records_in(number: int) -> int:
    """Of a partition's batches the first has one record, the next two, then three, and again."""
    return 1 + number % 3


async def fill(broker: LoopBroker, topic: str, partition: int, sizes: Iterable[int]) -> Sizes:
    """A batch of about each size."""
    batches: Sizes = []
    offset = 0
    for number, size in enumerate(sizes):
        count = records_in(number)
        batch = batch_of(*[b"x" * (size // count)] * count)
        data = ProduceRequest.PartitionProduceData(index=partition, records=batch)
        request = ProduceRequest(
            acks=-1,
            timeout_ms=30_000,
            topic_data=[ProduceRequest.TopicProduceData(name=topic, partition_data=[data])],
        )
        ((line,),) = [one.partition_responses for one in (await broker.call(request, 9)).responses]
        assert (line.error_code, line.base_offset) == (0, offset)
        batches.append((offset, len(batch)))
        offset += count
    return batches


class Consumer:
    """Reads everything, as a client would, and compares each answer with what Kafka would have sent."""

    def __init__(self, broker: LoopBroker, topic: str, batches: list[Sizes], chance: random.Random) -> None:
        self._broker = broker
        self._topic = topic
        self._batches = batches
        self._chance = chance
        # How many batches of each partition are read; the order is that in which partitions are looked at.
        self.read: OrderedDict[int, int] = OrderedDict((number, 0) for number in range(len(batches)))
        self.limits = dict.fromkeys(self.read, 2**31 - 1)

    def left(self, partition: int) -> Sizes:
        return self._batches[partition][self.read[partition] :]

    @property
    def is_done(self) -> bool:
        return not any(self.left(one) for one in self.read)

    def readable(self, partition: int) -> tuple[int, bool]:
        """Bytes to the end of the segment, and whether there are more in the next one."""
        left = self.left(partition)
        found = self._broker.broker.partitions.get(self._topic, partition)
        assert found is not None
        bases = [one.base_offset for one in found.log.segments]
        end = min((base for base in bases if left and base > left[0][0]), default=2**62)
        here = [size for base, size in left if base < end]
        return sum(here), len(here) < len(left)

    def expected(self, max_bytes: int) -> dict[int, int]:
        """Kafka's rules: how many bytes of each partition."""
        sizes: dict[int, int] = {}
        budget, must_send_one = max_bytes, True
        for partition in self.read:
            left = self.left(partition)
            if not left:
                continue
            first = left[0][1]
            limit = min(self.limits[partition], budget)
            if must_send_one:
                limit = max(limit, first)
            size = min(self.readable(partition)[0], limit) if first <= limit else 0
            if size:
                sizes[partition] = size
                must_send_one = False
                budget = max(0, budget - size)
        return sizes

    def is_enough(self, min_bytes: int, sizes: dict[int, int]) -> bool:
        """Whether Kafka answers at once: by what it sends, or by what is there and was only held back."""
        there = 0
        for partition in self.read:
            here, goes_on = self.readable(partition)
            there += min(here, self.limits[partition])
            if goes_on:
                return True
        return sum(sizes.values()) >= min_bytes or there >= min_bytes

    async def fetch(self, max_bytes: int, *, min_bytes: int = 0, session: tuple[int, int] = (0, -1)) -> Any:
        sizes = self.expected(max_bytes)
        min_bytes = min_bytes or self._chance.choice([1, max_bytes // 2, max_bytes, 2**31 - 1])
        enough = self.is_enough(min(min_bytes, max_bytes), sizes)
        session_id, epoch = session
        asked = self.wanted() if epoch < 1 else self.wanted_again()
        request = fetch_request(
            [],
            max_bytes=max_bytes,
            min_bytes=min_bytes,
            max_wait_ms=LONG_WAIT_MS if enough else 0,
            session_id=session_id,
            session_epoch=epoch,
        )
        request.topics = [FetchRequest.FetchTopic(topic=self._topic, partitions=asked)] if asked else []
        answer = await asyncio.wait_for(self._broker.call(request, VERSION), GUARD_S)
        lines = [line for topic in answer.responses for line in topic.partitions]
        assert all(line.error_code == 0 for line in lines)
        sent = {line.partition_index: len(line.records) for line in lines if line.records}
        assert sent == sizes
        for line in lines:
            if line.records:
                self._take(line.partition_index, line.records)
        return answer

    def _take(self, partition: int, records: Any) -> None:
        position, before = 0, self.read[partition]
        for base, size in self.left(partition):
            if len(records) - position < size:
                break
            assert read_header(records, position).base_offset == base
            position += size
            self.read[partition] += 1
        assert self.read[partition] > before, "a partition with records holds one whole batch at least"
        self.read.move_to_end(partition)

    def wanted(self) -> list[Any]:
        return [self._ask(one) for one in self.read]

    def wanted_again(self) -> list[Any]:
        """A session remembers what was asked: only what was read since is told."""
        return [self._ask(one) for one in sorted(self.read) if self.read[one]]

    def _ask(self, partition: int) -> Any:
        batches, left = self._batches[partition], self.left(partition)
        end = batches[-1][0] + records_in(len(batches) - 1) if batches else 0
        return FetchRequest.FetchPartition(
            partition=partition,
            current_leader_epoch=-1,
            fetch_offset=left[0][0] if left else end,
            partition_max_bytes=self.limits[partition],
        )


def some_sizes(chance: random.Random) -> list[int]:
    largest = chance.choice([50, 500, 20_000])
    return [chance.randint(1, largest) for _ in range(chance.choice([0, 1, 3, 12]))]


@pytest.mark.parametrize("with_session", [False, True])
@pytest.mark.parametrize("seed", range(20))
async def test_every_answer_is_what_kafka_would_send(tmp_path: Path, seed: int, with_session: bool) -> None:
    chance = random.Random(f"{seed} {with_session}")
    async with LoopBroker(tmp_path) as broker:
        count = chance.choice([1, 2, 7, 40])
        await broker.create_topic("topic", count, {"segment.bytes": "1048576", "max.message.bytes": "500000"})
        batches = [await fill(broker, "topic", number, some_sizes(chance)) for number in range(count)]
        consumer = Consumer(broker, "topic", batches, chance)
        largest = max((size for sizes in batches for _, size in sizes), default=HEADER_SIZE)
        for number in consumer.limits:
            consumer.limits[number] = chance.choice([0, 1, largest // 2, largest, 3 * largest, 2**31 - 1])
        max_bytes = chance.choice([1, largest, 2 * largest, 10 * largest])
        session = (0, 0) if with_session else (0, -1)
        rounds = 0
        while not consumer.is_done:
            answer = await consumer.fetch(max_bytes, session=session)
            if with_session:
                session = (answer.session_id, session[1] + 1)
            rounds += 1
        assert rounds <= sum(len(one) for one in batches)


async def test_no_partition_waits_longer_than_the_others_take(tmp_path: Path) -> None:
    """Each answer serves the partition that has waited longest, also when the ones behind it do not fit."""
    chance = random.Random(1)
    async with LoopBroker(tmp_path) as broker:
        await broker.create_topic("topic", 9)
        batches = [await fill(broker, "topic", one, [100 if one % 2 else 9000] * 30) for one in range(9)]
        consumer = Consumer(broker, "topic", batches, chance)
        session = (0, 0)
        waiting = dict.fromkeys(range(9), 0)
        while not consumer.is_done:
            before = dict(consumer.read)
            answer = await consumer.fetch(9500, session=session)
            session = (answer.session_id, session[1] + 1)
            for one in waiting:
                served = consumer.read[one] > before[one] or not consumer.left(one)
                waiting[one] = 0 if served else waiting[one] + 1
            assert max(waiting.values()) < 9


async def test_reading_goes_on_across_segments_without_waiting(tmp_path: Path) -> None:
    """What is left of a segment may be less than the minimum while the next one is full of records."""
    chance = random.Random(2)
    async with LoopBroker(tmp_path) as broker:
        await broker.create_topic("topic", 2, {"segment.bytes": "1048576"})
        batches = [await fill(broker, "topic", one, [300_000] * 8) for one in range(2)]
        consumer = Consumer(broker, "topic", batches, chance)
        while not consumer.is_done:
            await consumer.fetch(2_000_000, min_bytes=2_000_000)
