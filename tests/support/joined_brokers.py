"""Several brokers on the test's own loop that take themselves for a cluster: an image made by hand, requests of one to
another straight into its router. There is no store, and nobody fetches from a leader: what has several in-sync replicas
is committed when the image says that they are not any more.

    async with JoinedBrokers(tmp_path) as brokers:                      # 1, 2 and 3
        await brokers.publish({"data": [1, 2], "__transaction_state": [3], "__consumer_offsets": [2]})
        await brokers[1].call(request, version)
        brokers.network.cut(3, 1)                                       # what 3 asks of 1 does not get there
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ottla.broker.apis import APIS
from ottla.broker.cluster.peers import Channel, PeerUnavailable, Watching, client_id_of
from ottla.common.random_ids import random_topic_id
from ottla.metadata.image import (
    NOTHING,
    BrokerImage,
    ClusterImage,
    Registration,
    TopicImage,
    initial_partition,
    with_topics,
)
from ottla.protocol import codec
from tests.support.loop_broker import LoopBroker
from tests.support.manual_clock import ManualClock

# By topic, who leads each of its partitions; or all replicas of one, the leader first.
Leaders = Mapping[str, Sequence[int | tuple[int, ...]]]


class Network:
    """What brokers ask of each other. A request that is held has been carried out when it is let go."""

    def __init__(self) -> None:
        self.brokers: dict[int, LoopBroker] = {}
        # (from, to, name of the request)
        self.asked: Counter[tuple[int, int, str]] = Counter()
        self.requests: list[Any] = []
        self._cut: set[tuple[int, int]] = set()
        self._held: dict[tuple[int, str], asyncio.Event] = {}

    def cut(self, source: int, target: int) -> None:
        self._cut.add((source, target))

    def mend(self) -> None:
        self._cut.clear()

    def hold(self, target: int, name: str) -> None:
        """Answers to such requests are on their way until `let_go`."""
        self._held[target, name] = asyncio.Event()

    def let_go(self) -> None:
        for held in self._held.values():
            held.set()
        self._held.clear()

    async def request(self, source: int, target: int, request: codec.Message) -> Any:
        name = type(request).__name__
        self.asked[source, target, name.removesuffix("Request")] += 1
        self.requests.append(request)
        if (source, target) in self._cut:
            raise PeerUnavailable(f"{target} cannot be reached")
        version = APIS[codec.definition(name)["key"]].max_version
        answer = await self.brokers[target].call(request, version, client_id_of(source))
        held = self._held.get((target, name.removesuffix("Request")))
        if held is not None:
            await held.wait()
        if (source, target) in self._cut:
            raise PeerUnavailable(f"the answer of {target} is lost")
        return answer


class NetworkPeers:
    def __init__(self, network: Network, node_id: int) -> None:
        self._network = network
        self._node_id = node_id

    def request(
        self, broker: int, request: codec.Message, channel: Channel, *, timeout_ms: int = 30_000
    ) -> Awaitable[Any]:
        return self._network.request(self._node_id, broker, request)

    def exchange(self, *_: Any, **__: Any) -> Awaitable[memoryview]:
        raise PeerUnavailable("nobody follows anybody here")

    def watch(self, broker: int, epoch: int, on_refused: Callable[[], None]) -> Watching:
        raise NotImplementedError

    def on_image(self) -> None: ...

    async def close(self) -> None: ...


class JoinedBrokers:
    def __init__(
        self,
        folder: Path,
        count: int = 3,
        *,
        clock: ManualClock | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self.network = Network()
        self.image = ClusterImage("joined")
        self._brokers = {
            number: LoopBroker(
                folder / str(number),
                {"node.id": str(number), **(properties or {})},
                clock=clock,
                jumps=clock is not None,
            )
            for number in range(1, count + 1)
        }

    def __getitem__(self, number: int) -> LoopBroker:
        return self._brokers[number]

    async def __aenter__(self) -> Self:
        for number, broker in self._brokers.items():
            await broker.__aenter__()
            self.network.brokers[number] = broker
            broker.broker.is_clustered = True
            broker.broker.peers = NetworkPeers(self.network, number)
        alive = {
            number: BrokerImage(number, None, {"PLAINTEXT": ("localhost", 9000 + number)}, 1)
            for number in self._brokers
        }
        known = {number: Registration(1, is_active=True) for number in self._brokers}
        features = self._brokers[1].broker.image.features
        self.image = replace(
            self.image, brokers=alive, present=alive, registrations=known, controller=1, features=features
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.network.let_go()
        for broker in self._brokers.values():
            await broker.__aexit__(kind, error, trace)

    async def publish(self, leaders: Leaders, configs: Mapping[str, Mapping[str, str]] | None = None) -> None:
        """Make the topics, with these settings."""
        topics = [
            TopicImage(
                name,
                random_topic_id(),
                tuple(initial_partition((one,) if isinstance(one, int) else one) for one in of_topic),
                (configs or {}).get(name, NOTHING),
            )
            for name, of_topic in leaders.items()
        ]
        await self.adopt(with_topics(self.image, topics))

    async def change(self, topic: str, index: int = 0, **changes: Any) -> None:
        """A partition is another one; with `leader` under the next leader epoch."""
        await self.adopt(self.changed(topic, index, **changes))

    def changed(self, topic: str, index: int = 0, **changes: Any) -> ClusterImage:
        before = self.image.topics[topic]
        partition = before.partitions[index]
        epoch = partition.leader_epoch + ("leader" in changes)
        changed = replace(partition, leader_epoch=epoch, partition_epoch=partition.partition_epoch + 1, **changes)
        partitions = (*before.partitions[:index], changed, *before.partitions[index + 1 :])
        return with_topics(self.image, [replace(before, partitions=partitions)])

    async def adopt(self, image: ClusterImage, only: Sequence[int] = ()) -> None:
        """All brokers, or these, take up the image."""
        self.image = image
        for number, broker in self._brokers.items():
            if not only or number in only:
                await broker.broker.topics.adopt(image)
                await broker.loaded()
