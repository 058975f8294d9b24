"""What all clients do: find leaders and coordinators, ask them, and look again when that fails.

Connections are the brokers' own (`SocketPeers`), on the simulated network.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING, Any

from ottla.broker.apis import APIS
from ottla.broker.cluster.peers import Channel, PeerUnavailable
from ottla.broker.cluster.socket_peers import SocketPeers
from ottla.common.errors import ErrorCode
from ottla.common.failures import RETRIABLE
from ottla.common.ids import TopicPartition
from ottla.metadata.image import BrokerImage
from ottla.protocol import codec
from ottla.protocol import messages as m
from ottla.testing.simulation.checks.violation import Violation
from ottla.testing.simulation.loop import Process

if TYPE_CHECKING:
    from ottla.testing.simulation.world import World

_REQUEST_MS = 2_000
_RETRY_S = 0.1
_NODE_IDS_FROM = 1_000
GROUP, TRANSACTION = 0, 1


class TryAgain(Exception):
    """It may be that it works the next time, with what the cluster says then. `code` is NONE where nobody answered."""

    def __init__(self, why: str, code: ErrorCode = ErrorCode.NONE) -> None:
        super().__init__(why)
        self.code = code


class Client:
    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.say = world.transcript.speaker(name)
        self.rng = Random(f"{world.seed} {name}")
        self.process = Process(world.loop, name)
        world.network.machine(name).process = self.process
        loop = world.loop
        self._peers = SocketPeers(
            _NODE_IDS_FROM, self._find, "PLAINTEXT", lambda delay_ms, what: loop.call_later(delay_ms / 1000, what)
        )
        self.is_stopping = False
        self._topic_ids: dict[str, bytes] = {}
        # Leader, and its epoch; and the largest epoch that we have heard of.
        self._leaders: dict[TopicPartition, tuple[int, int]] = {}
        self._epochs: dict[TopicPartition, int] = {}
        self._coordinators: dict[tuple[str, int], int] = {}

    def start(self) -> asyncio.Task[None]:
        return self.world.loop.create_task(self.run(), context=self.process.context(), name=self.name)

    async def run(self) -> None:
        raise NotImplementedError

    # --- asking

    def _find(self, broker: int) -> BrokerImage | None:
        return BrokerImage(broker, None, {"PLAINTEXT": (f"b{broker}", 9092)})

    async def ask(self, broker: int, request: codec.Message, version: int | None = None) -> Any:
        """Raises TryAgain when there is no answer."""
        api = APIS[codec.definition(type(request).__name__)["key"]]
        version = api.max_version if version is None else version
        body = codec.encode(request, version)
        try:
            raw = await self._peers.exchange(broker, api.key, version, body, Channel.CONTROL, timeout_ms=_REQUEST_MS)
        except PeerUnavailable as error:
            raise TryAgain(str(error)) from None
        return codec.decode(f"{api.name}Response", version, raw, 0)

    def check(self, code: int, what: str, *expected: ErrorCode) -> None:
        """Raises TryAgain for what passes, Violation for what must not be."""
        if code == ErrorCode.NONE:
            return
        if code in RETRIABLE or code in expected:
            raise TryAgain(ErrorCode(code).name, ErrorCode(code))
        raise Violation(f"refused: {ErrorCode(code).name}", f"{self.name}: {what}")

    async def pause(self, factor: float = 1.0) -> None:
        await asyncio.sleep(self.rng.random() * _RETRY_S * 2 * factor)

    # --- who is who

    def some_broker(self) -> int:
        return self.rng.choice(list(self.world.nodes))

    async def leader(self, partition: TopicPartition) -> tuple[int, int]:
        if partition not in self._leaders:
            await self.refresh()
        if partition not in self._leaders:
            raise TryAgain("nobody leads")
        return self._leaders[partition]

    async def topic_id(self, topic: str) -> bytes:
        if topic not in self._topic_ids:
            await self.refresh()
        if topic not in self._topic_ids:
            raise TryAgain("there is no such topic")
        return self._topic_ids[topic]

    async def refresh(self) -> None:
        answer: m.MetadataResponse = await self.ask(self.some_broker(), m.MetadataRequest(topics=None))
        for topic in answer.topics:
            if topic.error_code:
                continue
            self._topic_ids[topic.name or ""] = topic.topic_id
            for row in topic.partitions:
                partition = TopicPartition(topic.name or "", row.partition_index)
                # As Java's client: what is older than what we know is not news (KIP-320).
                if row.leader_epoch >= self._epochs.get(partition, -1):
                    self._epochs[partition] = row.leader_epoch
                    if row.leader_id >= 0:
                        self._leaders[partition] = (row.leader_id, row.leader_epoch)
                    else:
                        self._leaders.pop(partition, None)

    def forget_leader(self, partition: TopicPartition) -> None:
        self._leaders.pop(partition, None)

    async def coordinator(self, key: str, kind: int) -> int:
        if (key, kind) not in self._coordinators:
            request = m.FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
            answer: m.FindCoordinatorResponse = await self.ask(self.some_broker(), request)
            (found,) = answer.coordinators
            self.check(found.error_code, "finding a coordinator")
            self._coordinators[key, kind] = found.node_id
        return self._coordinators[key, kind]

    def forget_coordinator(self, key: str, kind: int) -> None:
        self._coordinators.pop((key, kind), None)
