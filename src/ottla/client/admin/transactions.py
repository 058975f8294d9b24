"""What a cluster says about its transactions, and the marker that ends one by hand (KIP-664)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ottla.client.cluster import ClusterClient
from ottla.common.errors import ErrorCode, OttlaError
from ottla.common.failures import check
from ottla.common.ids import TopicPartition, partitions_by_topic
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
        answer = cluster.settled(partial(_ask_for_list, cluster, node, request))
        wanted.unknown_states = list(answer.unknown_state_filters)
        found += [
            Listed(row.transactional_id, node, row.producer_id, row.transaction_state)
            for row in answer.transaction_states
        ]
    return sorted(found, key=lambda listed: listed.transactional_id)


def _ask_for_list(cluster: ClusterClient, node: int, request: ListTransactionsRequest) -> Any:
    answer = cluster.broker(node).call(request)
    check(answer.error_code, f"the transactions of broker {node}")
    return answer


def describe_transactions(cluster: ClusterClient, transactional_ids: Iterable[str]) -> dict[str, Described | None]:
    """None for an id that its coordinator does not know."""
    wanted = list(transactional_ids)
    return cluster.settled(lambda: _describe(cluster, wanted)) if wanted else {}


def _describe(cluster: ClusterClient, transactional_ids: Sequence[str]) -> dict[str, Described | None]:
    by_node: dict[int, list[str]] = {}
    for name in transactional_ids:
        by_node.setdefault(cluster.transaction_coordinator(name), []).append(name)
    found: dict[str, Described | None] = {}
    for node, names in by_node.items():
        request = DescribeTransactionsRequest(transactional_ids=names)
        for row in cluster.broker(node).call(request).transaction_states:
            if row.error_code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                check(row.error_code, f"the transactional id '{row.transactional_id}'")
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
        tuple(sorted(TopicPartition(topic.topic, number) for topic in row.topics for number in topic.partitions)),
    )


def open_in_logs(cluster: ClusterClient, topics: Sequence[str] | None) -> list[OpenInLog]:
    """The transactions that partitions of these topics (None: of all) have open."""
    led = [partition for partition, leader in cluster.leaders(topics).items() if leader >= 0]
    found: list[OpenInLog] = []
    for leader, partitions in cluster.by_leader(led).items():
        asked = [
            DescribeProducersRequest.TopicRequest(name=name, partition_indexes=numbers)
            for name, numbers in partitions_by_topic(partitions).items()
        ]
        for topic in cluster.broker(leader).call(DescribeProducersRequest(topics=asked)).topics:
            for row in topic.partitions:
                where = TopicPartition(topic.name, row.partition_index)
                found += [
                    _open(where, leader, producer)
                    for producer in row.active_producers
                    if producer.current_txn_start_offset >= 0
                ]
    return sorted(found, key=lambda transaction: (transaction.partition, transaction.start_offset))


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
    ids = sorted({transaction.producer_id for transaction in open_})
    if not ids:
        return {}
    listed = list_transactions(cluster, Filter(producer_ids=ids))
    described = describe_transactions(cluster, [transaction.transactional_id for transaction in listed])
    return {owner.producer_id: owner for owner in described.values() if owner is not None}


def is_hanging(transaction: OpenInLog, owner: Described | None) -> bool:
    """No coordinator will ever end it: none knows the producer, or what it knows does not include the partition."""
    if owner is None or owner.epoch < transaction.epoch:
        return True
    return transaction.partition not in owner.partitions


def abort_in_log(cluster: ClusterClient, transaction: OpenInLog) -> None:
    """Write the abort marker into this one partition. Raises OttlaError."""
    asked = WriteTxnMarkersRequest
    topic, number = transaction.partition
    marker = asked.WritableTxnMarker(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.epoch,
        transaction_result=False,
        topics=[asked.WritableTxnMarkerTopic(name=topic, partition_indexes=[number])],
        # As Kafka's tool: a producer whose transaction was never ended has not seen a coordinator yet.
        coordinator_epoch=max(0, transaction.coordinator_epoch),
    )
    answer = cluster.broker(transaction.leader).call(asked(markers=[marker]))
    code = ErrorCode(answer.markers[0].topics[0].partitions[0].error_code)
    if code is not ErrorCode.NONE:
        raise OttlaError(f"{transaction.partition} did not take the marker: {code.name}.")
