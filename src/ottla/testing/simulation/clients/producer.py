"""An idempotent producer with acks=all: each batch is sent again, the same, until it is acknowledged."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from ottla.common.errors import ErrorCode
from ottla.common.ids import TopicPartition
from ottla.protocol import messages as m
from ottla.records.record import Record, build_batch
from ottla.testing.simulation.clients.client import Client, TryAgain

if TYPE_CHECKING:
    from ottla.testing.simulation.world import World

_TIMEOUT_MS = 1_000
# As many as Java's producer has under way, and as a broker knows again.
_IN_FLIGHT_MAX = 5


class Batch(NamedTuple):
    values: list[bytes]
    data: bytes
    sequence: int


class Producer(Client):
    """A few batches at a time, one behind the other, to any partition of the topic."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self._sequences: dict[TopicPartition, int] = {}
        self._count = 0

    async def run(self) -> None:
        producer_id, epoch = await self._identify()
        while not self.is_stopping:
            partition = self.rng.choice(self.world.partitions)
            count = self.rng.choice((1, 1, 1, 2, _IN_FLIGHT_MAX))
            batches = [self._make(partition, producer_id, epoch) for _ in range(count)]
            for batch in await self._send_all(partition, batches):
                await self._deliver(partition, batch)
            await asyncio.sleep(self.rng.random() * 0.5)

    def _make(self, partition: TopicPartition, producer_id: int, epoch: int) -> Batch:
        values = [f"{self.name} {self._count + number}".encode() for number in range(self.rng.randint(1, 3))]
        self._count += len(values)
        sequence = self._sequences.get(partition, 0)
        self._sequences[partition] = sequence + len(values)
        self.world.promises.sent(self.name, partition, values)
        now_ms = 1_700_000_000_000 + self._count
        records = [Record(number, now_ms, None, value) for number, value in enumerate(values)]
        data = build_batch(records, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
        return Batch(values, bytes(data), sequence)

    async def _send_all(self, partition: TopicPartition, batches: list[Batch]) -> list[Batch]:
        """All on one connection, none waits for the one before. Those that have to be sent again."""
        try:
            topic_id, (leader, _) = await self.topic_id(partition.topic), await self.leader(partition)
        except TryAgain:
            return batches
        sending = [self._try(leader, topic_id, partition, batch) for batch in batches]
        are_there = await asyncio.gather(*sending)
        return [batch for batch, is_there in zip(batches, are_there, strict=True) if not is_there]

    async def _try(self, leader: int, topic_id: bytes, partition: TopicPartition, batch: Batch) -> bool:
        """Behind one that was refused it is refused alike, and finds no gap: librdkafka would send again under another
        epoch what is there already."""
        try:
            await self._produce(leader, topic_id, partition, batch)
        except TryAgain as error:
            self.say(f"{partition}: {error}; again")
            return False
        return True

    async def _identify(self) -> tuple[int, int]:
        while True:
            try:
                request = m.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
                answer: m.InitProducerIdResponse = await self.ask(self.some_broker(), request)
                self.check(answer.error_code, "a producer id")
                return answer.producer_id, answer.producer_epoch
            except TryAgain:
                await self.pause()

    async def _deliver(self, partition: TopicPartition, batch: Batch) -> None:
        while True:
            self.forget_leader(partition)
            await self.pause()
            try:
                topic_id, (leader, _) = await self.topic_id(partition.topic), await self.leader(partition)
                await self._produce(leader, topic_id, partition, batch)
                return
            except TryAgain as error:
                self.say(f"{partition}: {error}; again")

    async def _produce(self, leader: int, topic_id: bytes, partition: TopicPartition, batch: Batch) -> None:
        data = m.ProduceRequest
        rows = [data.PartitionProduceData(index=partition.partition, records=batch.data)]
        topic = data.TopicProduceData(topic_id=topic_id, partition_data=rows)
        request = data(acks=-1, timeout_ms=_TIMEOUT_MS, topic_data=[topic])
        answer: m.ProduceResponse = await self.ask(leader, request)
        ((row,),) = [topic.partition_responses for topic in answer.responses]
        offset = row.base_offset
        if row.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            offset = -1  # it was there already
        else:
            self.check(row.error_code, f"producing to {partition}")
        self.world.promises.acknowledged(self.name, partition, offset, batch.values)
        self.say(f"{partition} has {batch.values[0].decode()} at {offset}")
