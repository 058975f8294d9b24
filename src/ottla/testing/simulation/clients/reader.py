"""Reads partitions from their beginning to their end, also from followers, and asks where they end."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from ottla.common.errors import ErrorCode
from ottla.common.ids import TopicPartition
from ottla.protocol import messages as m
from ottla.records.record import iterate_batches, read_records
from ottla.testing.simulation.clients.client import Client, TryAgain

if TYPE_CHECKING:
    from ottla.testing.simulation.world import World

_LATEST, _EARLIEST = -1, -2
_FETCH_BYTES = 4_000


class Reader(Client):
    def __init__(self, world: World, name: str, *, is_committed_only: bool) -> None:
        super().__init__(world, name)
        self._is_committed_only = is_committed_only

    async def run(self) -> None:
        offsets = dict.fromkeys(self.world.partitions, 0)
        while not self.is_stopping:
            partition = self.rng.choice(self.world.partitions)
            try:
                if self.rng.random() < 0.4:
                    await self._ask_end(partition)
                else:
                    offsets[partition] = await self._read(partition, offsets[partition])
            except TryAgain as error:
                self.forget_leader(partition)
                if error.code == ErrorCode.OFFSET_OUT_OF_RANGE and self.world.settings.deletes:
                    # What it was to read next may be deleted.
                    offsets[partition] = await self._begin_again(partition, offsets[partition])
            await self.pause(4)

    async def _ask_end(self, partition: TopicPartition) -> None:
        known = self.world.promises.end_of(partition)
        offset, epoch = await self._list(partition, _LATEST)
        self.world.promises.told_end(partition, epoch, offset, known)

    async def _begin_again(self, partition: TopicPartition, offset: int) -> int:
        try:
            return max(offset, (await self._list(partition, _EARLIEST))[0])
        except TryAgain:
            return offset

    async def _list(self, partition: TopicPartition, which: int) -> tuple[int, int]:
        """The first offset, or the end; and the epoch in which it was asked for."""
        leader, epoch = await self.leader(partition)
        row = m.ListOffsetsRequest.ListOffsetsPartition(
            partition_index=partition.partition, current_leader_epoch=epoch, timestamp=which
        )
        topic = m.ListOffsetsRequest.ListOffsetsTopic(name=partition.topic, partitions=[row])
        answer: m.ListOffsetsResponse = await self.ask(leader, m.ListOffsetsRequest(replica_id=-1, topics=[topic]))
        ((found,),) = [one.partitions for one in answer.topics]
        self.check(found.error_code, f"the bounds of {partition}")
        return found.offset, epoch

    async def _read(self, partition: TopicPartition, offset: int) -> int:
        """Where to go on."""
        topic_id = await self.topic_id(partition.topic)
        source, epoch = await self.leader(partition)
        if self.rng.random() < 0.3:
            # As who was sent there, to a replica nearby (KIP-392). It need not be one any more.
            source = self.some_broker()
        asked = m.FetchRequest
        row = asked.FetchPartition(
            partition=partition.partition,
            current_leader_epoch=epoch,
            fetch_offset=offset,
            partition_max_bytes=_FETCH_BYTES,
        )
        request = asked(
            max_wait_ms=100,
            min_bytes=1,
            max_bytes=_FETCH_BYTES,
            isolation_level=int(self._is_committed_only),
            session_epoch=-1,
            topics=[asked.FetchTopic(topic_id=topic_id, partitions=[row])],
        )
        answer: m.FetchResponse = await self.ask(source, request)
        self.check(answer.error_code, "fetching")
        ((found,),) = [topic.partitions for topic in answer.responses]
        # A new leader may not know yet how far the watermark was.
        self.check(found.error_code, f"fetching {partition} at {offset}", ErrorCode.OFFSET_OUT_OF_RANGE)
        records = bytes(found.records or b"")
        aborted = deque(sorted(found.aborted_transactions or (), key=lambda one: one.first_offset))
        aborting: set[int] = set()
        for position, header in iterate_batches(records):
            while aborted and aborted[0].first_offset <= header.last_offset:
                aborting.add(aborted.popleft().producer_id)
            if header.is_control:
                aborting.discard(header.producer_id)
            elif header.last_offset >= offset:
                is_aborted = header.is_transactional and header.producer_id in aborting
                for record in read_records(records, position):
                    self.world.promises.read(partition, record.offset, record.value, self.name)
                    if self._is_committed_only and not is_aborted and record.value is not None:
                        self.world.promises.read_committed.add(record.value)
            offset = max(offset, header.last_offset + 1)
        return offset
