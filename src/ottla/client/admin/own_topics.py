"""Topics that a program made for itself: more partitions for them, their records and they themselves removed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ottla.client.cluster import ClusterClient
from ottla.client.retrying import Deadline
from ottla.common.errors import ErrorCode
from ottla.common.failures import Retriable, check
from ottla.common.ids import TopicPartition, by_topic
from ottla.protocol.messages import CreatePartitionsRequest, DeleteRecordsRequest, DeleteTopicsRequest

_TIMEOUT_MS = 30_000
# Brokers forget a deleted topic a moment after they have said so.
_GONE_TIMEOUT_S = 30.0
_NAMES_UNTIL = 5


def grow_topic(cluster: ClusterClient, topic: str, partitions: int) -> None:
    """To so many partitions. Raises OttlaError when that is refused."""
    wanted = CreatePartitionsRequest.CreatePartitionsTopic(name=topic, count=partitions, assignments=None)
    request = CreatePartitionsRequest(topics=[wanted], timeout_ms=_TIMEOUT_MS)

    def ask() -> None:
        (row,) = cluster.any_broker().call(request).results
        check(row.error_code, f"topic '{topic}'")

    cluster.settled(ask)


def delete_records(cluster: ClusterClient, before: Mapping[TopicPartition, int]) -> None:
    """Those that lie before these offsets. Raises OttlaError for the first partition that refuses."""
    for leader, partitions in cluster.by_leader(before).items():
        rows = by_topic((partition, _row(partition, before[partition])) for partition in partitions)
        topics = [DeleteRecordsRequest.DeleteRecordsTopic(name=name, partitions=its) for name, its in rows.items()]
        answer = cluster.broker(leader).call(DeleteRecordsRequest(topics=topics, timeout_ms=_TIMEOUT_MS))
        for topic in answer.topics:
            for row in topic.partitions:
                # Somebody has removed them already, and more.
                if row.error_code != ErrorCode.OFFSET_OUT_OF_RANGE:
                    check(row.error_code, f"partition {topic.name}-{row.partition_index}")


def _row(partition: TopicPartition, offset: int) -> DeleteRecordsRequest.DeleteRecordsPartition:
    return DeleteRecordsRequest.DeleteRecordsPartition(partition_index=partition.partition, offset=offset)


def delete_topics(cluster: ClusterClient, topics: Iterable[str]) -> None:
    """Until they are gone; one that is not there is fine. Raises OttlaError for the first that stays."""
    wanted = sorted(set(topics))
    if not wanted:
        return
    request = DeleteTopicsRequest(topic_names=wanted, timeout_ms=_TIMEOUT_MS)

    def ask() -> None:
        for row in cluster.any_broker().call(request, _NAMES_UNTIL).responses:
            if row.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                check(row.error_code, f"topic '{row.name}'")

    cluster.settled(ask)
    deadline = Deadline(_GONE_TIMEOUT_S)
    while left := cluster.settled(lambda: cluster.refresh(wanted)):
        if not deadline.pause():
            raise Retriable(f"the topic '{min(left)}' was deleted, and is still there.")
