"""Several brokers' partitions in one process: real logs, sessions and fetchers; a network, a controller and a store of
the test's own.

Each node has what replication uses of a broker and nothing else. The controller is the real, pure one; what it decides
becomes the image of all nodes at once, or of those that the test lets hear of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import Any, Self

from ottla.broker.chores.timers import Timers
from ottla.broker.cluster.peers import Channel, PeerUnavailable
from ottla.broker.configs.config_service import ConfigService
from ottla.broker.context import RequestContext
from ottla.broker.handlers.records import delete_records, fetch, list_offsets, produce
from ottla.broker.memory import Memory
from ottla.broker.partitions.fetch_sessions import FetchSessions
from ottla.broker.partitions.isr_changes import IsrChanges
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partition_table import Partitions
from ottla.broker.partitions.partitions_of_image import PartitionsOfImage
from ottla.broker.partitions.replica_fetcher import ReplicaFetcher, ReplicaFetchers
from ottla.broker.partitions.replica_sessions import ReplicaSessions
from ottla.broker.partitions.replica_throttles import ReplicaThrottles
from ottla.broker.partitions.traffic import Traffic
from ottla.broker.turns import Turns
from ottla.common.clock import SystemClock
from ottla.common.config import BrokerConfig
from ottla.common.ids import TopicPartition
from ottla.common.random_ids import random_topic_id
from ottla.controller.isr_changes import alter_partition
from ottla.controller.rules import Rules
from ottla.metadata.image import (
    NOTHING,
    BrokerImage,
    ClusterImage,
    PartitionImage,
    Registration,
    TopicImage,
    initial_partition,
    with_topics,
)
from ottla.protocol import codec
from ottla.protocol.codec import Message
from ottla.protocol.produce_frames import Layouts
from ottla.storage.disk import DISK, Disk
from ottla.storage.log_manager import LogManager
from ottla.testing.simulation.network import joined
from tests.support.raw_client import request_frame

HANDLERS = {0: produce, 1: fetch}
MESSAGE_HANDLERS: dict[str, Any] = {"DeleteRecordsRequest": delete_records, "ListOffsetsRequest": list_offsets}
_RULES = Rules(
    min_insync_replicas=lambda topic: int(topic.configs.get("min.insync.replicas", "1")),
    unclean_election=lambda topic: False,
)


class Node:
    """One broker, as far as partitions are concerned."""

    def __init__(self, cluster: Cluster, node_id: int, folder: Path, properties: Mapping[str, str], disk: Disk) -> None:
        self.id = node_id
        self.cluster = cluster
        self.image = ClusterImage("cluster")
        clock, loop = SystemClock(), asyncio.get_running_loop()
        config = BrokerConfig.load({"log.dirs": str(folder), "node.id": str(node_id), **properties})
        folder.mkdir(exist_ok=True)
        configs = ConfigService(config)
        timers = Timers(loop, clock)
        self.logs = LogManager(
            [folder],
            node_id=node_id,
            cluster_id="cluster",
            clock=clock,
            default_config=configs.log_config({}),
            disk=disk,
        )
        self.logs.open()
        self.partitions = Partitions()
        self.broker: Any = SimpleNamespace(
            access=None,
            throttling=None,
            config=config,
            configs=configs,
            loop=loop,
            clock=clock,
            timers=timers,
            call_later=timers.call_later,
            node_id=node_id,
            rack=config.broker_rack,
            partitions=self.partitions,
            produce_layouts=Layouts(),
            parked_fetches={},
            observer=None,
            traffic=Traffic(),
            fetch_sessions=FetchSessions(100, clock),
            fetch_bytes_max=config.fetch_max_bytes,
            turns=Turns(),
            opened_memory=Memory(1 << 28),
            image=self.image,
            is_clustered=True,
            broker_epoch=1,
            peers=self,
            ask_controller=self.ask_controller,
            logs=self.logs,
        )
        self.broker.in_turns = lambda work: loop.create_task(self.broker.turns.queue(work))
        self.broker.throttles = ReplicaThrottles(self.broker)
        self.broker.replica_sessions = ReplicaSessions(self.broker)
        self.broker.isr_changes = IsrChanges(self.broker)
        self.broker.replica_fetchers = ReplicaFetchers(partial(ReplicaFetcher, self.broker))
        self._replicas = PartitionsOfImage(
            node_id,
            self.partitions,
            self.logs,
            configs.log_config,
            clock=clock,
            fetchers=self.broker.replica_fetchers,
            on_lead=self.broker.replica_sessions.expect,
            broker_epoch=lambda: self.broker.broker_epoch,
        )
        self.broker.isr_changes.start()
        self._context = RequestContext(0, 0, 0, "test", "here", "PLAINTEXT", 1)

    def learn(self, image: ClusterImage) -> None:
        old, self.image = self.image, image
        self.broker.image = image
        for topic in image.topics.values():
            for index, partition in enumerate(topic.partitions):
                if self.id in partition.replicas:
                    config = self.broker.configs.log_config(topic.configs)
                    self.logs.create(TopicPartition(topic.name, index), topic.id, config)
        self._replicas.on_image(old, image)
        self.broker.isr_changes.on_image(old, image)

    async def close(self, *, clean: bool = True) -> None:
        await self.broker.timers.stop()
        await self.broker.isr_changes.close()
        await self.broker.replica_fetchers.close()
        self.logs.close(clean)

    # --- requests

    async def handle(self, frame: bytes | bytearray) -> bytes:
        """A whole request without its size; the answer likewise."""
        view = memoryview(bytearray(frame))
        key, version, correlation_id = (int.from_bytes(view[a:b], "big") for a, b in ((0, 2), (2, 4), (4, 8)))
        context = self._context
        context.api_key, context.version, context.correlation_id = key, version, correlation_id
        position = 10 + int.from_bytes(view[8:10], "big")
        flexible = version >= {0: 9, 1: 12}[key]
        if key == 0 and context.produce_prefix_end:
            known = produce.handle_known_frame(self.broker, context, view)
            if known is not None:
                return joined(known if isinstance(known, (bytes, list)) else await known)
        answer: Any = HANDLERS[key].handle_frame(self.broker, context, view, position + flexible)
        if not isinstance(answer, (bytes, bytearray, list)):
            answer = await answer
        return joined(answer)

    async def call(self, request: Message, version: int) -> Any:
        name = type(request).__name__
        if name in MESSAGE_HANDLERS:
            self._context.version = version
            answer = self.broker.turns.start(MESSAGE_HANDLERS[name].handle(self.broker, self._context, request))
            return answer if isinstance(answer, Message) else await answer
        raw = await self.handle(request_frame(request, version))
        flexible = version >= (9 if name == "ProduceRequest" else 12)
        return codec.decode(name.removesuffix("Request") + "Response", version, raw, 9 if flexible else 8)

    # --- as the port to other brokers

    async def exchange(
        self, broker: int, api_key: int, version: int, body: bytes | bytearray, channel: Channel, *, timeout_ms: int
    ) -> memoryview:
        cluster = self.cluster
        if not cluster.is_linked(self.id, broker):
            await asyncio.sleep(0.001)
            raise PeerUnavailable("cut off")
        frame = b"".join((api_key.to_bytes(2, "big"), version.to_bytes(2, "big"), bytes(4), b"\x00\x00\x00", body))
        asking = asyncio.ensure_future(cluster.nodes[broker].handle(frame))
        cluster.conversations.setdefault((self.id, broker), set()).add(asking)
        try:
            raw = await asking
        except asyncio.CancelledError:
            if cluster.is_linked(self.id, broker):
                raise
            raise PeerUnavailable("cut off") from None
        finally:
            cluster.conversations[self.id, broker].discard(asking)
        await asyncio.sleep(0)
        if not cluster.is_linked(self.id, broker):
            raise PeerUnavailable("cut off")
        return memoryview(bytearray(raw))[9:]

    def ask_controller(self, request: Message) -> Awaitable[Any]:
        return self.cluster.ask_controller(self, request)

    # --- what is here

    def led(self, topic: str = "topic", index: int = 0) -> Partition:
        found = self.partitions.get(topic, index)
        assert found is not None, f"{topic}-{index} is not led by {self.id}"
        return found

    def log(self, topic: str = "topic", index: int = 0) -> Any:
        return self.logs.get(TopicPartition(topic, index))

    def content(self, topic: str = "topic", index: int = 0, upper: int | None = None) -> bytes:
        """The bytes of the log, below an offset."""
        log = self.log(topic, index)
        end = log.log_end_offset if upper is None else upper
        pieces, offset = [], log.log_start_offset
        while offset < end:
            found = log.read(offset, 1 << 30, upper_offset=end, min_one=True)
            if not found.size:
                break
            data = joined([found])
            pieces.append(data)
            at = 0
            while at < len(data):
                offset = int.from_bytes(data[at : at + 8], "big") + int.from_bytes(data[at + 23 : at + 27], "big") + 1
                at += int.from_bytes(data[at + 8 : at + 12], "big") + 12
        return b"".join(pieces)


class Cluster:
    """`async with Cluster(folder, 3) as cluster:`; nodes are numbered from 1."""

    def __init__(
        self,
        folder: Path,
        count: int = 3,
        properties: Mapping[str, str] | None = None,
        disk: Disk = DISK,
        racks: Mapping[int, str] | None = None,
    ) -> None:
        self._folder = folder
        self._count = count
        self._properties = dict(properties or {})
        self._disk = disk
        self._racks = racks or {}
        self.nodes: dict[int, Node] = {}
        self.image = ClusterImage("cluster")
        # Pairs that do not reach one another, the first asks.
        self.cuts: set[tuple[int, int]] = set()
        self.conversations: dict[tuple[int, int], set[asyncio.Future[bytes]]] = {}
        self.is_controller_there = True
        # Nodes that hear of no change.
        self.deaf: set[int] = set()

    async def __aenter__(self) -> Self:
        for number in range(1, self._count + 1):
            self.nodes[number] = self._make(number)
        brokers = {
            number: BrokerImage(number, self._racks.get(number), {"PLAINTEXT": ("localhost", 9092 + number)}, 1)
            for number in self.nodes
        }
        registrations = {number: Registration(1, True) for number in self.nodes}
        self.publish(replace(self.image, brokers=brokers, present=brokers, registrations=registrations))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for node in self.nodes.values():
            await node.close(clean=kind is None)

    def _make(self, number: int) -> Node:
        properties = dict(self._properties)
        if number in self._racks:
            properties["broker.rack"] = self._racks[number]
        return Node(self, number, self._folder / f"node-{number}", properties, self._disk)

    # --- metadata

    def publish(self, image: ClusterImage) -> None:
        self.image = image
        for number, node in self.nodes.items():
            if number not in self.deaf:
                node.learn(image)

    def create_topic(
        self,
        name: str = "topic",
        replicas: Iterable[tuple[int, ...]] = ((1, 2, 3),),
        configs: Mapping[str, str] = NOTHING,
    ) -> None:
        partitions = tuple(initial_partition(assigned) for assigned in replicas)
        self.publish(with_topics(self.image, [TopicImage(name, random_topic_id(), partitions, configs)]))

    def change(self, topic: str = "topic", index: int = 0, **changes: Any) -> None:
        """One more partition epoch, and with another leader one more leader epoch."""
        before = self.image.topics[topic]
        partition = before.partitions[index]
        changes.setdefault("leader_epoch", partition.leader_epoch + ("leader" in changes))
        changed = replace(partition, partition_epoch=partition.partition_epoch + 1, **changes)
        partitions = (*before.partitions[:index], changed, *before.partitions[index + 1 :])
        self.publish(with_topics(self.image, [replace(before, partitions=partitions)]))

    def fence(self, number: int) -> None:
        """The controller has found it gone: it is live no more, and in sync nowhere."""
        self.image = replace(
            self.image, brokers={broker: known for broker, known in self.image.brokers.items() if broker != number}
        )
        if number in self.partition().isr:
            self.change(isr=tuple(member for member in self.partition().isr if member != number))
        else:
            self.publish(self.image)

    def partition(self, topic: str = "topic", index: int = 0) -> PartitionImage:
        return self.image.topics[topic].partitions[index]

    async def ask_controller(self, node: Node, request: Message) -> Any:
        await asyncio.sleep(0)
        if not self.is_controller_there:
            raise PeerUnavailable("no controller")
        answer, changed = alter_partition(self.image, request, _RULES)
        if changed:
            self.publish(with_topics(self.image, changed.values()))
        return answer

    # --- the network

    def is_linked(self, asks: int, answers: int) -> bool:
        return (asks, answers) not in self.cuts and answers in self.nodes

    def cut(self, *numbers: int) -> None:
        """These neither ask nor answer anybody."""
        for one in numbers:
            for other in range(1, self._count + 1):
                if one != other:
                    self.cuts |= {(one, other), (other, one)}
        for pair, asking in self.conversations.items():
            if pair in self.cuts:
                for conversation in list(asking):
                    conversation.cancel()

    def heal(self) -> None:
        self.cuts.clear()


async def until(condition: Any, what: str = "") -> None:
    """Wait for it, not for long."""
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.001)
