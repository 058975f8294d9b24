"""Makes a topic, writes to it and reads it, deletes it, and makes it again under the same name: what is in one life of
the topic is in no other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from ottla.common.errors import ErrorCode
from ottla.common.ids import TopicPartition
from ottla.protocol import messages as m
from ottla.records.record import Record, build_batch, iterate_batches, read_records
from ottla.testing.simulation.checks.lives import FLEETING
from ottla.testing.simulation.checks.violation import Violation
from ottla.testing.simulation.clients.client import Client, TryAgain

if TYPE_CHECKING:
    from ottla.testing.simulation.world import World

_TIMEOUT_MS = 1_500
_FETCH_BYTES = 4_000
_PARTITION = TopicPartition(FLEETING, 0)
_NOW_MS = 1_700_000_000_000


class Remaker(Client):
    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self._life = 0
        self._count = 0
        # Of this life, and of those before.
        self._id = b""
        self._old_ids: set[bytes] = set()
        # Of this life: the values by the offsets at which they were acknowledged.
        self._acknowledged: dict[int, bytes] = {}

    async def run(self) -> None:
        while not self.is_stopping:
            await self._until_done(self._create)
            for _ in range(self.rng.randint(0, 4)):
                await self._until_done(self._produce)
            await self._until_done(self._read)
            await self.pause(10)
            await self._until_done(self._delete)
            self._old_ids.add(self._id)
            self._acknowledged.clear()
            self._life += 1

    async def _until_done(self, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await work()
                return
            except TryAgain as error:
                self.say(f"{FLEETING}: {error}; again")
                self.forget_leader(_PARTITION)
                self._topic_ids.pop(FLEETING, None)
                await self.pause()

    async def _create(self) -> None:
        asked = m.CreateTopicsRequest
        factor = self.world.settings.replication_factor
        topic = asked.CreatableTopic(name=FLEETING, num_partitions=1, replication_factor=factor)
        request = asked(topics=[topic], timeout_ms=_TIMEOUT_MS)
        answer: m.CreateTopicsResponse = await self.ask(self.some_broker(), request)
        (outcome,) = answer.topics
        if outcome.error_code == ErrorCode.TOPIC_ALREADY_EXISTS:
            # By an earlier try of ours; whoever was asked may also not have heard yet that it was deleted.
            self._topic_ids.pop(FLEETING, None)
            self._id = await self.topic_id(FLEETING)
            if self._id in self._old_ids:
                raise TryAgain("it seems not to be deleted yet")
        else:
            what = f"creating {FLEETING}: {outcome.error_message}"
            self.check(outcome.error_code, what, ErrorCode.INVALID_REPLICATION_FACTOR)
            self._id = outcome.topic_id
        if self._id in self._old_ids:
            raise Violation("one topic for each id", f"{FLEETING} has the id of an earlier one")
        # Epochs begin anew.
        self._epochs.pop(_PARTITION, None)
        self.forget_leader(_PARTITION)

    async def _leader_of_this_life(self) -> int:
        self.forget_leader(_PARTITION)
        self._epochs.pop(_PARTITION, None)
        leader, _ = await self.leader(_PARTITION)
        if self._topic_ids.get(FLEETING) != self._id:
            raise TryAgain("metadata is of another life")
        return leader

    async def _produce(self) -> None:
        leader = await self._leader_of_this_life()
        value = f"{self.name} {self._life}.{self._count}".encode()
        self._count += 1
        data = m.ProduceRequest
        records = bytes(build_batch([Record(0, _NOW_MS + self._count, None, value)]))
        row = data.PartitionProduceData(index=0, records=records)
        topic = data.TopicProduceData(topic_id=self._id, partition_data=[row])
        answer: m.ProduceResponse = await self.ask(leader, data(acks=-1, timeout_ms=_TIMEOUT_MS, topic_data=[topic]))
        ((found,),) = [one.partition_responses for one in answer.responses]
        self.check(found.error_code, f"producing to {FLEETING}")
        self._acknowledged[found.base_offset] = value

    async def _read(self) -> None:
        """All of it: nothing of an earlier life, and all that was acknowledged in this one."""
        leader, offset, found = await self._leader_of_this_life(), 0, dict[int, bytes]()
        while offset <= max(self._acknowledged, default=-1):
            row = await self._fetch(leader, offset)
            records = bytes(row.records or b"")
            for position, header in iterate_batches(records):
                found |= {record.offset: record.value or b"" for record in read_records(records, position)}
                offset = header.last_offset + 1
            if not records:
                raise TryAgain("its end is not there yet")
        for at, value in found.items():
            if not value.startswith(f"{self.name} {self._life}.".encode()):
                raise Violation("record of a deleted topic", f"{self.name}: {value!r} at {at} in life {self._life}")
        for at, value in self._acknowledged.items():
            if found.get(at) != value:
                raise Violation("acknowledged record lost", f"{self.name}: {FLEETING} has {found.get(at)!r} at {at}")

    async def _fetch(self, leader: int, offset: int) -> Any:
        asked = m.FetchRequest
        row = asked.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=_FETCH_BYTES)
        request = asked(
            max_wait_ms=100,
            min_bytes=1,
            max_bytes=_FETCH_BYTES,
            session_epoch=-1,
            topics=[asked.FetchTopic(topic_id=self._id, partitions=[row])],
        )
        answer: m.FetchResponse = await self.ask(leader, request)
        self.check(answer.error_code, "fetching")
        ((found,),) = [topic.partitions for topic in answer.responses]
        self.check(found.error_code, f"fetching {FLEETING} at {offset}", ErrorCode.OFFSET_OUT_OF_RANGE)
        return found

    async def _delete(self) -> None:
        asked = m.DeleteTopicsRequest
        topic = asked.DeleteTopicState(name=None, topic_id=self._id)
        request = asked(topics=[topic], timeout_ms=_TIMEOUT_MS)
        answer: m.DeleteTopicsResponse = await self.ask(self.some_broker(), request)
        (outcome,) = answer.responses
        self.say(f"{FLEETING}: deleting life {self._life}: {ErrorCode(outcome.error_code).name}")
        # Whoever was asked has perhaps not heard of it yet: the store knows.
        is_gone = outcome.error_code == ErrorCode.UNKNOWN_TOPIC_ID and self.world.stored.id_of(FLEETING) != self._id
        if not is_gone:
            self.check(outcome.error_code, f"deleting {FLEETING}")
