"""An idempotent producer with acks=all: each batch is sent again, the same, until it is acknowledged."""

from __future__ import annotations

import asyncio

from ottla.common.errors import ErrorCode
from ottla.common.ids import TopicPartition
from ottla.protocol import messages as m
from ottla.records.record import Record, build_batch
from ottla.testing.simulation.clients.client import Client, TryAgain

_TIMEOUT_MS = 2_000


class Producer(Client):
    """One batch at a time, to any partition of the topic."""

    async def run(self) -> None:
        producer_id, epoch = await self._identify()
        sequences: dict[TopicPartition, int] = {}
        count = 0
        while not self.is_stopping:
            partition = self.rng.choice(self.world.partitions)
            values = [f"{self.name} {count + number}".encode() for number in range(self.rng.randint(1, 3))]
            count += len(values)
            sequence = sequences.get(partition, 0)
            sequences[partition] = sequence + len(values)
            self.world.promises.sent(self.name, partition, values)
            now_ms = 1_700_000_000_000 + count
            batch = build_batch(
                [Record(number, now_ms, None, value) for number, value in enumerate(values)],
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=sequence,
            )
            offset = await self._deliver(partition, bytes(batch))
            self.world.promises.acknowledged(self.name, partition, offset, values)
            self.say(f"{partition} has {values[0].decode()} at {offset}")
            await asyncio.sleep(self.rng.random() * 0.5)

    async def _identify(self) -> tuple[int, int]:
        while True:
            try:
                request = m.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
                answer: m.InitProducerIdResponse = await self.ask(self.some_broker(), request)
                self.check(answer.error_code, "a producer id")
                return answer.producer_id, answer.producer_epoch
            except TryAgain:
                await self.pause()

    async def _deliver(self, partition: TopicPartition, batch: bytes) -> int:
        """The offset; -1 if it was there already."""
        while True:
            try:
                return await self._produce(partition, batch)
            except TryAgain as error:
                self.say(f"{partition}: {error}; again")
                self.forget_leader(partition)
                await self.pause()

    async def _produce(self, partition: TopicPartition, batch: bytes) -> int:
        topic_id = await self.topic_id(partition.topic)
        leader, _ = await self.leader(partition)
        data = m.ProduceRequest
        request = data(
            acks=-1,
            timeout_ms=_TIMEOUT_MS,
            topic_data=[
                data.TopicProduceData(
                    topic_id=topic_id,
                    partition_data=[data.PartitionProduceData(index=partition.partition, records=batch)],
                )
            ],
        )
        answer: m.ProduceResponse = await self.ask(leader, request)
        ((row,),) = [topic.partition_responses for topic in answer.responses]
        if row.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            return -1
        self.check(row.error_code, f"producing to {partition}")
        return int(row.base_offset)
