"""A cluster as its own metadata describe it: brokers, leaders, coordinators, and a connection to each when needed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from ottla.client.address import ClusterAddress
from ottla.client.connection import BrokerConnection
from ottla.common.errors import ErrorCode, OttlaError
from ottla.common.failures import RETRIABLE, Retriable, refusal
from ottla.common.ids import TopicPartition
from ottla.protocol.messages import FindCoordinatorRequest, MetadataRequest

T = TypeVar("T")

_GROUP, _TRANSACTION = 0, 1
_BATCHED_SINCE = 4
_RETRY_S = 0.1
_NO_TOPIC = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION)


class Unreachable(Retriable):
    """Nobody answers there now; it may pass."""


class ClusterClient:
    def __init__(self, address: ClusterAddress | str, *, timeout_s: float = 15.0, client_id: str = "ottla") -> None:
        """A bare `host:port` is reached in plain text."""
        self._address = address if isinstance(address, ClusterAddress) else ClusterAddress(address)
        self._timeout_s = timeout_s
        self._client_id = client_id
        self._connections: dict[int, BrokerConnection] = {}
        self._first: BrokerConnection | None = None
        self.brokers: dict[int, tuple[str, int]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Drop every connection; the next request makes new ones."""
        for connection in (*self._connections.values(), *([self._first] if self._first else [])):
            connection.close()
        self._connections, self._first = {}, None

    def sibling(self) -> ClusterClient:
        """The same cluster over connections of its own: answers to one never wait behind those to the other."""
        return ClusterClient(self._address, timeout_s=self._timeout_s, client_id=self._client_id)

    # --- who is there

    def metadata(self, topics: Sequence[str] | None) -> Any:
        """Of these topics; None means all, an empty list none."""
        wanted = None if topics is None else [MetadataRequest.MetadataRequestTopic(name=one) for one in topics]
        answer = self._any().call(MetadataRequest(topics=wanted, allow_auto_topic_creation=False))
        self.brokers = {one.node_id: (one.host, one.port) for one in answer.brokers}
        return answer

    def any_broker(self) -> BrokerConnection:
        """For requests that every broker answers or forwards."""
        return self._any()

    def _any(self) -> BrokerConnection:
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
            if node_id not in self.brokers:
                self.metadata([])
            if node_id not in self.brokers:
                raise Unreachable(f"broker {node_id} is not part of the cluster now.")
            host, port = self.brokers[node_id]
            try:
                self._connections[node_id] = self._connect(host, port)
            except OSError:
                raise Unreachable(f"broker {node_id} cannot be reached at {host}:{port}.") from None
        return self._connections[node_id]

    def leaders(self, topics: Sequence[str] | None) -> dict[TopicPartition, int]:
        """The broker that leads each partition. Raises OttlaError for a topic that is not there."""
        found: dict[TopicPartition, int] = {}
        for topic in self.metadata(topics).topics:
            if topic.error_code in _NO_TOPIC:
                raise OttlaError(f"there is no topic '{topic.name}': `ottla topic list` shows what there is.")
            if topic.error_code in RETRIABLE:
                raise Retriable(f"topic '{topic.name}' cannot be served now: {ErrorCode(topic.error_code).name}.")
            if topic.error_code:
                what = f"topic '{topic.name}'"
                raise OttlaError(refusal(topic.error_code, what, f"{what} cannot be used"))
            for partition in topic.partitions:
                found[TopicPartition(topic.name, partition.partition_index)] = partition.leader_id
        return found

    def transaction_coordinators(self, transactional_ids: Iterable[str]) -> dict[str, int]:
        """The broker that coordinates each transactional id."""
        return {one: self._coordinator(one, _TRANSACTION) for one in transactional_ids}

    def transaction_coordinator(self, transactional_id: str) -> BrokerConnection:
        return self.broker(self._coordinator(transactional_id, _TRANSACTION))

    def group_coordinator(self, group: str) -> BrokerConnection:
        return self.broker(self._coordinator(group, _GROUP))

    def _coordinator(self, key: str, key_type: int) -> int:
        connection = self._any()
        request = FindCoordinatorRequest(key_type=key_type, key=key, coordinator_keys=[key])
        is_batched = connection.version_of("FindCoordinatorRequest") >= _BATCHED_SINCE

        def ask() -> tuple[int, int]:
            answer = connection.call(request)
            row = answer.coordinators[0] if is_batched else answer
            return row.error_code, row.node_id

        return self.until_settled(ask, f"{'group' if key_type == _GROUP else 'the transactional id'} '{key}'")

    # --- asking until there is an answer

    def until_settled(self, ask: Callable[[], tuple[int, T]], what: str = "this") -> T:
        """`ask` gives an error code and an answer; errors that pass by themselves are waited out."""
        deadline = time.monotonic() + self._timeout_s
        while True:
            code, answer = ask()
            if not code:
                return answer
            if code not in RETRIABLE:
                raise OttlaError(refusal(code, what, "the cluster refused"))
            if time.monotonic() > deadline:
                raise Retriable(f"the cluster has not settled yet: {ErrorCode(code).name}.")
            time.sleep(_RETRY_S)
