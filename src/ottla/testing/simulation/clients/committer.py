"""Commits offsets of a group, each larger than the last, and asks which one is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.common.errors import ErrorCode
from ottla.common.ids import TopicPartition
from ottla.protocol import messages as m
from ottla.testing.simulation.clients.client import GROUP, Client, TryAgain

if TYPE_CHECKING:
    from ottla.testing.simulation.world import World

# The last versions that name topics.
_COMMIT, _FETCH = 9, 9
_OFFSETS = TopicPartition("__consumer_offsets", 0)


class Committer(Client):
    """Without a membership, as a consumer that was told its partitions."""

    def __init__(self, world: World, name: str, group: str) -> None:
        super().__init__(world, name)
        self.group = group

    async def run(self) -> None:
        partition = self.world.partitions[0]
        while not self.is_stopping:
            try:
                if self.rng.random() < 0.5:
                    await self.commit(partition)
                else:
                    await self.look(partition)
            except TryAgain:
                self.forget_coordinator(self.group, GROUP)
            await self.pause(4)

    async def group_coordinator(self) -> int:
        return await self.coordinator(self.group, GROUP)

    async def commit(
        self, partition: TopicPartition, generation: int = -1, member: str = "", *expected: ErrorCode
    ) -> None:
        asked = m.OffsetCommitRequest
        promises = self.world.promises
        coordinator = await self.group_coordinator()
        offset, last = promises.next_offset(self.group, partition), promises.generation(self.group)
        row = asked.OffsetCommitRequestPartition(
            partition_index=partition.partition, committed_offset=offset, committed_metadata=""
        )
        request = asked(
            group_id=self.group,
            generation_id_or_member_epoch=generation,
            member_id=member,
            topics=[asked.OffsetCommitRequestTopic(name=partition.topic, partitions=[row])],
        )
        answer: m.OffsetCommitResponse = await self.ask(coordinator, request, _COMMIT)
        ((found,),) = [topic.partitions for topic in answer.topics]
        self.check(found.error_code, "committing an offset", *expected)
        # Not acknowledged later than in this epoch; perhaps in one before it.
        epoch = self.world.led_epoch(coordinator, _OFFSETS)
        if epoch is None:
            epoch = self.world.stored.partitions[_OFFSETS].leader_epoch
        promises.committed_offset(self.group, partition, offset, generation, last, epoch)

    async def look(self, partition: TopicPartition) -> None:
        """A coordinator that was deposed and does not know it yet answers with what it has, as Kafka's does: that is
        all that was acknowledged up to its epoch, by itself or by those before it."""
        coordinator = await self.group_coordinator()
        epoch = self.world.led_epoch(coordinator, _OFFSETS)
        at_least = self.world.promises.acknowledged_offset(self.group, partition, epoch)
        asked = m.OffsetFetchRequest
        topics = [asked.OffsetFetchRequestTopics(name=partition.topic, partition_indexes=[partition.partition])]
        group = asked.OffsetFetchRequestGroup(group_id=self.group, topics=topics)
        request = asked(groups=[group], require_stable=True)
        answer: m.OffsetFetchResponse = await self.ask(coordinator, request, _FETCH)
        (found,) = answer.groups
        self.check(found.error_code, "asking for an offset")
        ((row,),) = [topic.partitions for topic in found.topics]
        self.check(row.error_code, "asking for an offset")
        self.world.promises.found_offset(self.group, partition, row.committed_offset, at_least)
