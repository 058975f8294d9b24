"""Does what an operator does with `ottla partition move` and `elect`: other replicas, another leader; and what
`ottla topic alter` does: another min.insync.replicas.

It has no work of its own: faults ask for what they need. What a cluster that is not well refuses is not asked again.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.common.errors import ErrorCode
from ottla.common.ids import TopicPartition
from ottla.protocol import messages as m
from ottla.testing.simulation.clients.client import Client, TryAgain

_PREFERRED, _UNCLEAN = 0, 1
_TOPIC, _SET = 2, 0
_TIMEOUT_MS = 2_000
# What is asked for is so already, or cannot be just now.
_REFUSALS = (
    ErrorCode.ELECTION_NOT_NEEDED,
    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
)


class Operator(Client):
    async def move_leader(self, partition: TopicPartition, replicas: Sequence[int]) -> bool:
        """The first of these, which are those that it has in another order, leads. Whether that was done."""
        return await self.reassign(partition, replicas) and await self._elect_first(partition)

    async def reassign(self, partition: TopicPartition, replicas: Sequence[int] | None) -> bool:
        """Begin to move it to these; None: stay where it was."""
        asked = m.AlterPartitionReassignmentsRequest
        row = asked.ReassignablePartition(
            partition_index=partition.partition, replicas=None if replicas is None else list(replicas)
        )
        topic = asked.ReassignableTopic(name=partition.topic, partitions=[row])
        try:
            request = asked(timeout_ms=_TIMEOUT_MS, topics=[topic])
            answer: m.AlterPartitionReassignmentsResponse = await self.ask(self.some_broker(), request)
            self.check(answer.error_code, f"moving {partition}")
            ((found,),) = [one.partitions for one in answer.responses]
            self.check(found.error_code, f"moving {partition} to {replicas}", *_REFUSALS)
        except TryAgain as refused:
            self.say(f"{partition} is not moved to {replicas}: {refused}")
            return False
        return True

    async def set_min_insync(self, topic: str, count: int) -> None:
        """min.insync.replicas of the topic. Whether it was done is not known where nobody answers."""
        asked = m.IncrementalAlterConfigsRequest
        setting = asked.AlterableConfig(name="min.insync.replicas", config_operation=_SET, value=str(count))
        resource = asked.AlterConfigsResource(resource_type=_TOPIC, resource_name=topic, configs=[setting])
        try:
            answer: m.IncrementalAlterConfigsResponse = await self.ask(
                self.some_broker(), asked(resources=[resource], validate_only=False)
            )
            (found,) = answer.responses
            self.check(found.error_code, f"min.insync.replicas={count} for {topic}: {found.error_message}")
        except TryAgain as refused:
            self.say(f"min.insync.replicas of {topic} is perhaps not {count}: {refused}")

    async def give_up_nothing(self, partition: TopicPartition) -> None:
        """Say that anybody may lead: the last one in sync has lost its disk, and there was nothing on it."""
        if await self._elect(partition, _UNCLEAN):
            self.say(f"{partition} may be led by anybody")

    async def _elect_first(self, partition: TopicPartition) -> bool:
        return await self._elect(partition, _PREFERRED)

    async def _elect(self, partition: TopicPartition, kind: int) -> bool:
        asked = m.ElectLeadersRequest
        topic = asked.TopicPartitions(topic=partition.topic, partitions=[partition.partition])
        try:
            request = asked(election_type=kind, topic_partitions=[topic], timeout_ms=_TIMEOUT_MS)
            answer: m.ElectLeadersResponse = await self.ask(self.some_broker(), request)
            self.check(answer.error_code, f"electing a leader of {partition}")
            ((found,),) = [one.partition_result for one in answer.replica_election_results]
            self.check(found.error_code, f"electing a leader of {partition}", *_REFUSALS)
        except TryAgain as refused:
            self.say(f"{partition} gets no other leader: {refused}")
            return False
        return True
