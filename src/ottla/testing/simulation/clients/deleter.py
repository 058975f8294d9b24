"""Deletes the oldest records now and then, as `ottla topic trim` does."""

from __future__ import annotations

from ottla.common.errors import ErrorCode
from ottla.common.ids import TopicPartition
from ottla.protocol import messages as m
from ottla.testing.simulation.checks.violation import Violation
from ottla.testing.simulation.clients.client import Client, TryAgain

_TIMEOUT_MS = 1_500
# Of what is there. A broker that has deleted all records of a producer need not know it any more, and takes what that
# sends again for something new, as Kafka does: what was sent last stays.
_SHARE_MAX = 0.6


class Deleter(Client):
    async def run(self) -> None:
        while not self.is_stopping:
            partition = self.rng.choice(self.world.partitions)
            offset = int(self.world.promises.end_of(partition)[1] * self.rng.random() * _SHARE_MAX)
            try:
                await self._delete(partition, offset)
            except TryAgain as error:
                self.say(f"{partition}: perhaps nothing is deleted below {offset}: {error}")
                self.forget_leader(partition)
            await self.pause(8)

    async def _delete(self, partition: TopicPartition, offset: int) -> None:
        self.world.replicas.may_delete(partition, offset)
        leader, _ = await self.leader(partition)
        asked = m.DeleteRecordsRequest
        row = asked.DeleteRecordsPartition(partition_index=partition.partition, offset=offset)
        topic = asked.DeleteRecordsTopic(name=partition.topic, partitions=[row])
        answer: m.DeleteRecordsResponse = await self.ask(leader, asked(topics=[topic], timeout_ms=_TIMEOUT_MS))
        ((found,),) = [one.partitions for one in answer.topics]
        # A new leader may not know yet how far the watermark was.
        self.check(found.error_code, f"deleting below {offset} in {partition}", ErrorCode.OFFSET_OUT_OF_RANGE)
        if found.low_watermark < offset:
            raise Violation("not deleted", f"{partition} begins at {found.low_watermark}, {offset} was asked for")
        self.say(f"{partition} begins at {found.low_watermark}")
