"""Consume, transform, produce with a library that names no generation with its offsets (it predates KIP-447).

What is safe with such a library is a transactional id for each partition of the source: whoever is given a partition
takes its id over, which settles or fences what the member before left, and only then asks where to go on.
"""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.abc import ConsumerRebalanceListener
from aiokafka.coordinator.assignors.range import RangePartitionAssignor

from tests.support.pipeline import BATCH, aiokafka_consumer, say, to_committed


class PartitionPipeline(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, bootstrap: str, source: str, target: str, group: str, transactional_id: str) -> None:
        self._bootstrap = bootstrap
        self._source = source
        self._target = target
        self._group = group
        self._transactional_id = transactional_id
        self._producers: dict[TopicPartition, AIOKafkaProducer] = {}
        # Held while records are in hand: partitions neither come nor go in the middle of a transaction.
        self._turn = asyncio.Lock()
        self._consumer = aiokafka_consumer(
            bootstrap=bootstrap, group=group, partition_assignment_strategy=[RangePartitionAssignor]
        )

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        async with self._turn:
            for partition in revoked & self._producers.keys():
                await self._producers.pop(partition).stop()

    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        async with self._turn:
            for partition in assigned:
                self._producers[partition] = producer = AIOKafkaProducer(
                    bootstrap_servers=self._bootstrap,
                    transactional_id=f"{self._transactional_id}-{partition.partition}",
                    linger_ms=1,
                )
                await producer.start()
                await to_committed(self._consumer, partition)

    async def run(self) -> None:
        self._consumer.subscribe([self._source], listener=self)
        await self._consumer.start()
        say("ready")
        numbers, done = itertools.count(1), 0
        while True:
            async with self._turn:
                found = await self._consumer.getmany(timeout_ms=200, max_records=BATCH)
                for partition, records in found.items():
                    done += await self._move(partition, records, next(numbers))
                    say("committed", done)
            await asyncio.sleep(0)

    async def _move(self, partition: TopicPartition, records: list[Any], number: int) -> int:
        """How many records were moved: all, or none as every fifth transaction is aborted."""
        producer = self._producers[partition]
        await producer.begin_transaction()
        say("begun", number)
        for one in records:
            await producer.send(self._target, one.value, partition=one.partition)
        await producer.send_offsets_to_transaction({partition: records[-1].offset + 1}, self._group)
        if number % 5 == 0:
            await producer.abort_transaction()
            say("aborted")
            await to_committed(self._consumer, partition)
            return 0
        await producer.commit_transaction()
        return len(records)


def run(*arguments: str) -> None:
    async def piping() -> None:
        await PartitionPipeline(*arguments).run()

    asyncio.run(piping())
