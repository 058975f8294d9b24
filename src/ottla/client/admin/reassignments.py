"""Which partitions are on their way to other brokers, how far they are, and the requests that move them (KIP-455)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ottla.client.cluster import ClusterClient
from ottla.common.errors import ErrorCode, OttlaError
from ottla.common.failures import check
from ottla.common.ids import TopicPartition, partitions_by_topic
from ottla.protocol.messages import (
    AlterPartitionReassignmentsRequest,
    DescribeLogDirsRequest,
    ListPartitionReassignmentsRequest,
)

_TIMEOUT_MS = 15_000


@dataclass(frozen=True)
class Reassignment:
    """While it is under way `replicas` are the old ones and the new ones."""

    partition: TopicPartition
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @property
    def target(self) -> tuple[int, ...]:
        return tuple(replica for replica in self.replicas if replica not in self.removing)


def list_reassignments(cluster: ClusterClient) -> list[Reassignment]:
    def ask() -> list[Reassignment]:
        answer = cluster.controller().call(ListPartitionReassignmentsRequest(timeout_ms=_TIMEOUT_MS, topics=None))
        check(answer.error_code, "the list of reassignments")
        return [
            Reassignment(
                TopicPartition(topic.name, row.partition_index),
                tuple(row.replicas),
                tuple(row.adding_replicas),
                tuple(row.removing_replicas),
            )
            for topic in answer.topics
            for row in topic.partitions
        ]

    return sorted(cluster.settled(ask), key=lambda reassignment: reassignment.partition)


def alter_reassignments(
    cluster: ClusterClient, wanted: Mapping[TopicPartition, Sequence[int] | None]
) -> dict[TopicPartition, str]:
    """Move these partitions to these brokers, or with None stop what is under way. Gives the refusals, in words."""
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=_TIMEOUT_MS,
        topics=[
            AlterPartitionReassignmentsRequest.ReassignableTopic(
                name=topic,
                partitions=[
                    AlterPartitionReassignmentsRequest.ReassignablePartition(
                        partition_index=index,
                        replicas=None if replicas is None else list(replicas),
                    )
                    for index in indexes
                    for replicas in [wanted[TopicPartition(topic, index)]]
                ],
            )
            for topic, indexes in partitions_by_topic(wanted).items()
        ],
    )

    def ask() -> dict[TopicPartition, str]:
        answer = cluster.controller().call(request)
        check(answer.error_code, "the reassignment")
        return {
            TopicPartition(topic.name, row.partition_index): row.error_message or ErrorCode(row.error_code).name
            for topic in answer.responses
            for row in topic.partitions
            if row.error_code
        }

    return cluster.settled(ask)


@dataclass(frozen=True)
class ReplicaSizes:
    """How large each replica is that its broker has, and why other brokers have told nothing."""

    sizes: Mapping[tuple[TopicPartition, int], int]
    silent: Mapping[int, str]


def replica_bytes(cluster: ClusterClient, partitions: Iterable[TopicPartition], brokers: Iterable[int]) -> ReplicaSizes:
    request = DescribeLogDirsRequest(
        topics=[
            DescribeLogDirsRequest.DescribableLogDirTopic(topic=topic, partitions=list(indexes))
            for topic, indexes in partitions_by_topic(partitions).items()
        ]
    )
    found: dict[tuple[TopicPartition, int], int] = {}
    silent: dict[int, str] = {}
    for broker in brokers:
        try:
            answer = cluster.broker(broker).call(request)
            check(answer.error_code, f"the log directories of broker {broker}")
        except (OttlaError, OSError) as error:
            cluster.forget(error)
            silent[broker] = str(error)
            continue
        for folder in answer.results:
            for topic in folder.topics:
                for row in topic.partitions:
                    if not row.is_future_key:
                        found[TopicPartition(topic.name, row.partition_index), broker] = row.partition_size
    return ReplicaSizes(found, silent)
