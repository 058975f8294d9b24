"""Commits offsets of a group, each larger than the last, and asks which one is there."""

from __future__ import annotations

from ottla.common.ids import TopicPartition
from ottla.protocol import messages as m
from ottla.testing.simulation.clients.client import GROUP, Client, TryAgain

# The last versions that name topics.
_COMMIT, _FETCH = 9, 9


class Committer(Client):
    async def run(self) -> None:
        partition = self.world.partitions[0]
        offset = 0
        while not self.is_stopping:
            try:
                if self.rng.random() < 0.5:
                    offset += 1
                    await self._commit(partition, offset)
                else:
                    await self._look(partition)
            except TryAgain:
                self.forget_coordinator(self.name, GROUP)
            await self.pause(2)

    async def _commit(self, partition: TopicPartition, offset: int) -> None:
        asked = m.OffsetCommitRequest
        row = asked.OffsetCommitRequestPartition(
            partition_index=partition.partition, committed_offset=offset, committed_metadata=""
        )
        request = asked(
            group_id=self.name,
            generation_id_or_member_epoch=-1,
            member_id="",
            topics=[asked.OffsetCommitRequestTopic(name=partition.topic, partitions=[row])],
        )
        coordinator = await self.coordinator(self.name, GROUP)
        self.world.promises.sends_offset(self.name, partition, offset)
        answer: m.OffsetCommitResponse = await self.ask(coordinator, request, _COMMIT)
        ((found,),) = [topic.partitions for topic in answer.topics]
        self.check(found.error_code, "committing an offset")
        self.world.promises.committed_offset(self.name, partition, offset)

    async def _look(self, partition: TopicPartition) -> None:
        at_least = self.world.promises.acknowledged_offset(self.name, partition)
        asked = m.OffsetFetchRequest
        topics = [asked.OffsetFetchRequestTopics(name=partition.topic, partition_indexes=[partition.partition])]
        group = asked.OffsetFetchRequestGroup(group_id=self.name, topics=topics)
        request = asked(groups=[group], require_stable=True)
        answer: m.OffsetFetchResponse = await self.ask(await self.coordinator(self.name, GROUP), request, _FETCH)
        (found,) = answer.groups
        self.check(found.error_code, "asking for an offset")
        ((row,),) = [topic.partitions for topic in found.topics]
        self.check(row.error_code, "asking for an offset")
        self.world.promises.found_offset(self.name, partition, row.committed_offset, at_least)
