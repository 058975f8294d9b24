"""What a cluster says about its transactions, and the marker that ends one by hand (KIP-664)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ottla.client.cluster import ClusterClient
from ottla.common.errors import ErrorCode, OttlaError
from ottla.common.ids import TopicPartition
from ottla.protocol.messages import (
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    ListTransactionsRequest,
    WriteTxnMarkersRequest,
)


@dataclass(frozen=True)
class Listed:
    transactional_id: str
    coordinator: int
    producer_id: int
    state: str


@dataclass(frozen=True)
class Described:
    transactional_id: str
    coordinator: int
    producer_id: int
    epoch: int
    state: str
    timeout_ms: int
    started_ms: int | None
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True)
class OpenInLog:
    """A transaction that holds the last stable offset of a partition back."""

    partition: TopicPartition
    leader: int
    producer_id: int
    epoch: int
    coordinator_epoch: int
    start_offset: int
    last_timestamp_ms: int


@dataclass
class Filter:
    states: Sequence[str] = ()
    producer_ids: Sequence[int] = ()
    pattern: str | None = None
    # Only those that are open longer than this.
    longer_than_ms: int = -1
    unknown_states: list[str] = field(default_factory=list)


def list_transactions(cluster: ClusterClient, wanted: Filter) -> list[Listed]:
    """Of all coordinators."""
    cluster.metadata([])
    found: list[Listed] = []
    request = ListTransactionsRequest(
        state_filters=list(wanted.states),
        producer_id_filters=list(wanted.producer_ids),
        duration_filter=wanted.longer_than_ms,
        transactional_id_pattern=wanted.pattern,
    )
    for node in sorted(cluster.brokers):
        connection = cluster.broker(node)
        version = connection.version_of("ListTransactionsRequest")
        if (wanted.longer_than_ms >= 0 and version < 1) or (wanted.pattern and version < 2):
            raise OttlaError(f"broker {node} is too old to filter transactions that way.")

        def ask(connection: Any = connection) -> tuple[int, Any]:
            answer = connection.call(request)
            return answer.error_code, answer

        answer = cluster.until_settled(ask)
        wanted.unknown_states = list(answer.unknown_state_filters)
        found += [
            Listed(one.transactional_id, node, one.producer_id, one.transaction_state)
            for one in answer.transaction_states
        ]
    return sorted(found, key=lambda one: one.transactional_id)


def describe_transactions(cluster: ClusterClient, transactional_ids: Iterable[str]) -> dict[str, Described | None]:
    """None for an id that its coordinator does not know."""
    by_node: dict[int, list[str]] = {}
    for name, node in cluster.transaction_coordinators(transactional_ids).items():
        by_node.setdefault(node, []).append(name)
    found: dict[str, Described | None] = {}
    for node, names in by_node.items():
        connection = cluster.broker(node)

        def ask(connection: Any = connection, names: list[str] = names) -> tuple[int, Any]:
            rows = connection.call(DescribeTransactionsRequest(transactional_ids=names)).transaction_states
            codes = {row.error_code for row in rows} - {0, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND}
            return min(codes, default=0), rows

        for row in cluster.until_settled(ask):
            found[row.transactional_id] = None if row.error_code else _described(row, node)
    return found


def _described(row: Any, node: int) -> Described:
    return Described(
        row.transactional_id,
        node,
        row.producer_id,
        row.producer_epoch,
        row.transaction_state,
        row.transaction_timeout_ms,
        row.transaction_start_time_ms if row.transaction_start_time_ms >= 0 else None,
        tuple(sorted(TopicPartition(topic.topic, one) for topic in row.topics for one in topic.partitions)),
    )


def open_in_logs(cluster: ClusterClient, topics: Sequence[str] | None) -> list[OpenInLog]:
    """The transactions that partitions of these topics (None: of all) have open."""
    by_leader: dict[int, dict[str, list[int]]] = {}
    for partition, leader in cluster.leaders(topics).items():
        if leader >= 0:
            by_leader.setdefault(leader, {}).setdefault(partition.topic, []).append(partition.partition)
    found: list[OpenInLog] = []
    for leader, partitions in by_leader.items():
        asked = [
            DescribeProducersRequest.TopicRequest(name=name, partition_indexes=indexes)
            for name, indexes in partitions.items()
        ]
        for topic in cluster.broker(leader).call(DescribeProducersRequest(topics=asked)).topics:
            for row in topic.partitions:
                where = TopicPartition(topic.name, row.partition_index)
                found += [
                    _open(where, leader, one) for one in row.active_producers if one.current_txn_start_offset >= 0
                ]
    return sorted(found, key=lambda one: (one.partition, one.start_offset))


def _open(partition: TopicPartition, leader: int, row: Any) -> OpenInLog:
    return OpenInLog(
        partition,
        leader,
        row.producer_id,
        row.producer_epoch,
        row.coordinator_epoch,
        row.current_txn_start_offset,
        row.last_timestamp,
    )


def owners(cluster: ClusterClient, open_: Sequence[OpenInLog]) -> dict[int, Described]:
    """By producer id: the transactions that coordinators know of."""
    ids = sorted({one.producer_id for one in open_})
    if not ids:
        return {}
    listed = list_transactions(cluster, Filter(producer_ids=ids))
    described = describe_transactions(cluster, [one.transactional_id for one in listed])
    return {one.producer_id: one for one in described.values() if one is not None}


def is_hanging(one: OpenInLog, owner: Described | None) -> bool:
    """No coordinator will ever end it: none knows the producer, or what it knows does not include the partition."""
    if owner is None or owner.epoch < one.epoch:
        return True
    return one.partition not in owner.partitions


def abort_in_log(cluster: ClusterClient, one: OpenInLog) -> None:
    """Write the abort marker into this one partition. Raises OttlaError."""
    asked = WriteTxnMarkersRequest
    topic = asked.WritableTxnMarkerTopic(name=one.partition.topic, partition_indexes=[one.partition.partition])
    marker = asked.WritableTxnMarker(
        producer_id=one.producer_id,
        producer_epoch=one.epoch,
        transaction_result=False,
        topics=[topic],
        # As Kafka's tool: a producer whose transaction was never ended has not seen a coordinator yet.
        coordinator_epoch=max(0, one.coordinator_epoch),
    )
    answer = cluster.broker(one.leader).call(asked(markers=[marker]))
    code = ErrorCode(answer.markers[0].topics[0].partitions[0].error_code)
    if code is not ErrorCode.NONE:
        raise OttlaError(f"{one.partition} did not take the marker: {code.name}.")
