"""A cluster as its own metadata describe it: brokers, leaders, coordinators, and a connection to each when needed.

Whom it was told of is kept until `close`, which whoever meets a failure calls: the next question finds all of it anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self, TypeVar

from ottla.client.address import ClusterAddress
from ottla.client.connection import BrokerConnection
from ottla.client.retrying import Deadline, retried
from ottla.common.errors import ErrorCode, OttlaError
from ottla.common.failures import Retriable, RetriableAnswer, check
from ottla.common.ids import ZERO_TOPIC_ID, TopicId, TopicPartition
from ottla.protocol.messages import FindCoordinatorRequest, MetadataRequest

T = TypeVar("T")

_GROUP, _TRANSACTION = 0, 1
_BATCHED_SINCE = 4
_NO_TOPIC = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION)


class Unreachable(Retriable):
    """Nobody answers there now; it may pass."""


class Absent(Retriable):
    """A partition that the cluster does not know: it may just have restarted, or the topic is gone."""

    def __init__(self, partition: TopicPartition) -> None:
        super().__init__(f"partition {partition} does not exist.")
        self.partition = partition


class ClusterClient:
    def __init__(self, address: ClusterAddress | str, *, timeout_s: float = 15.0, client_id: str = "ottla") -> None:
        """A bare `host:port` is reached in plain text."""
        self._address = address if isinstance(address, ClusterAddress) else ClusterAddress(address)
        self._timeout_s = timeout_s
        self._client_id = client_id
        self._connections: dict[int, BrokerConnection] = {}
        self._first: BrokerConnection | None = None
        self._leaders: dict[str, dict[int, int]] = {}
        # Of all that were ever named: empty as long as nobody has answered.
        self.brokers: dict[int, tuple[str, int]] = {}
        # Those that were not where they should be: they may have moved.
        self._lost: set[int] = set()
        # Of the topics that were asked for last; brokers before Kafka 2.8 know none.
        self.topic_ids: dict[str, TopicId] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Drop every connection, and whom we know; the next request makes new ones."""
        for connection in (*self._connections.values(), *([self._first] if self._first else [])):
            connection.close()
        self._connections, self._first = {}, None
        self.forget_leaders()

    def forget_leaders(self) -> None:
        self._leaders = {}

    def forget(self, error: Exception) -> None:
        """After a failure: whom we knew may be somebody else now. A broker that answered keeps its connection."""
        if isinstance(error, RetriableAnswer):
            self.forget_leaders()
        else:
            self.close()

    def sibling(self) -> ClusterClient:
        """The same cluster over connections of its own: answers to one never wait behind those to the other."""
        return ClusterClient(self._address, timeout_s=self._timeout_s, client_id=self._client_id)

    def settled(self, ask: Callable[[], T]) -> T:
        """What `ask` gives once it meets no retriable error any more; that nobody is there at all is told at once."""
        self.any_broker()
        return retried(ask, Deadline(self._timeout_s), self.forget)

    # --- brokers

    def any_broker(self) -> BrokerConnection:
        """For requests that every broker answers or forwards."""
        if self._first is None:
            self._first = self._connect_first()
        return self._first

    def _connect_first(self) -> BrokerConnection:
        for server in self._address.servers.split(","):
            host, _, port = server.strip().rpartition("://")[2].rpartition(":")
            if not host:
                host, port = port, "9092"
            try:
                return self._connect(host.strip("[]"), int(port))
            except (OSError, ValueError):
                continue
        raise Unreachable(
            f"cannot reach any broker at {self._address.servers}: is it running? start one with `ottla start`"
        )

    def _connect(self, host: str, port: int) -> BrokerConnection:
        return BrokerConnection(
            host, port, timeout_s=self._timeout_s, client_id=self._client_id, security=self._address.security
        )

    def broker(self, node_id: int) -> BrokerConnection:
        if node_id not in self._connections:
            if node_id not in self.brokers or node_id in self._lost:
                self.metadata([])
            if node_id not in self.brokers:
                raise Unreachable(f"broker {node_id} is not part of the cluster now.")
            host, port = self.brokers[node_id]
            try:
                self._connections[node_id] = self._connect(host, port)
            except OSError:
                self._lost.add(node_id)
                raise Unreachable(f"broker {node_id} cannot be reached at {host}:{port}.") from None
        return self._connections[node_id]

    def controller(self) -> BrokerConnection:
        """For requests that an older cluster answers at its controller only. Raises Retriable while there is none."""
        controller = self.metadata([]).controller_id
        if controller < 0:
            raise Unreachable("the cluster has no controller now.")
        return self.broker(controller)

    # --- topics

    def metadata(self, topics: Sequence[str] | None) -> Any:
        """Of these topics; None means all, an empty list none."""
        wanted = None if topics is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
        answer = self.any_broker().call(MetadataRequest(topics=wanted, allow_auto_topic_creation=False))
        self.brokers = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
        self._lost = set()
        return answer

    def refresh(self, topics: Sequence[str] | None) -> dict[str, list[int]]:
        """The partitions of each of these topics that is there. Their leaders, and the ids of topics, are known now."""
        found: dict[str, list[int]] = {}
        for topic in self.metadata(topics).topics:
            self.topic_ids.pop(topic.name, None)
            if topic.error_code in _NO_TOPIC:
                continue
            check(topic.error_code, f"topic '{topic.name}'")
            if topic.topic_id != ZERO_TOPIC_ID:
                self.topic_ids[topic.name] = TopicId(bytes(topic.topic_id))
            leaders = {partition.partition_index: partition.leader_id for partition in topic.partitions}
            self._leaders[topic.name], found[topic.name] = leaders, sorted(leaders)
        return found

    def leaders(self, topics: Sequence[str] | None) -> dict[TopicPartition, int]:
        """The broker that leads each partition. Raises OttlaError for a topic that is not there."""
        found = self.refresh(topics)
        for topic in topics or ():
            if topic not in found:
                raise OttlaError(f"there is no topic '{topic}': `ottla topic list` shows what there is.")
        return {
            TopicPartition(topic, number): self._leaders[topic][number]
            for topic, numbers in found.items()
            for number in numbers
        }

    def require(self, topics: Iterable[str]) -> None:
        """Raises OttlaError for one that is not there, as far as it was not asked for already."""
        if unknown := set(topics) - self._leaders.keys():
            self.leaders(sorted(unknown))

    def by_leader(self, partitions: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
        """Raises Retriable while one of them has no leader, Absent while one is not there."""
        wanted = list(partitions)
        if unknown := {partition.topic for partition in wanted if self._leader(partition, -1) < 0}:
            self.refresh(sorted(unknown))
        grouped: dict[int, list[TopicPartition]] = {}
        for partition in wanted:
            leader = self._leader(partition, None)
            if leader is None:
                raise Absent(partition)
            if leader < 0:
                raise Unreachable(f"partition {partition} has no leader now.")
            grouped.setdefault(leader, []).append(partition)
        return grouped

    def _leader(self, partition: TopicPartition, otherwise: T) -> int | T:
        return self._leaders.get(partition.topic, {}).get(partition.partition, otherwise)

    # --- coordinators

    def transaction_coordinator(self, transactional_id: str) -> int:
        """The broker that coordinates this transactional id. Raises Retriable while there is none."""
        return self._coordinator(transactional_id, _TRANSACTION, f"the transactional id '{transactional_id}'")

    def group_coordinator(self, group: str) -> int:
        return self._coordinator(group, _GROUP, f"group '{group}'")

    def _coordinator(self, key: str, key_type: int, what: str) -> int:
        connection = self.any_broker()
        answer = connection.call(FindCoordinatorRequest(key_type=key_type, key=key, coordinator_keys=[key]))
        is_batched = connection.version_of("FindCoordinatorRequest") >= _BATCHED_SINCE
        row = answer.coordinators[0] if is_batched else answer
        check(row.error_code, what)
        return int(row.node_id)
