"""Creates the topic that everybody else works with."""

from __future__ import annotations

from ottla.common.errors import ErrorCode
from ottla.protocol import messages as m
from ottla.testing.simulation.clients.client import Client, TryAgain


class Creator(Client):
    async def run(self) -> None:
        settings = self.world.settings
        name = self.world.partitions[0].topic
        topic = m.CreateTopicsRequest.CreatableTopic(
            name=name,
            num_partitions=settings.partitions,
            replication_factor=settings.replication_factor,
            configs=[
                m.CreateTopicsRequest.CreatableTopicConfig(
                    name="min.insync.replicas", value=str(settings.min_insync_replicas)
                )
            ],
        )
        while True:
            try:
                request = m.CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
                answer: m.CreateTopicsResponse = await self.ask(self.some_broker(), request)
                (outcome,) = answer.topics
                if outcome.error_code != ErrorCode.TOPIC_ALREADY_EXISTS:
                    self.check(outcome.error_code, f"creating {name}: {outcome.error_message}")
                return
            except TryAgain as error:
                self.say(f"no topic yet: {error}")
                await self.pause()
