"""The offsets of a group as they are decided: nothing that an open transaction might still change. And new ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ottla.client.cluster import ClusterClient
from ottla.client.coordinators import coordinator_of_group
from ottla.client.producing import Committed
from ottla.client.retrying import Deadline
from ottla.common.errors import ErrorCode, OttlaError
from ottla.common.failures import refusal
from ottla.common.ids import TopicPartition, by_topic
from ottla.protocol.messages import OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest

# From version 10 on topics are named by id.
_VERSION_MAX = 9
_COMMIT_MAX = 9


def committed_offsets(
    cluster: ClusterClient, group: str, *, retry_timeout_s: float = 60.0
) -> dict[TopicPartition, Committed]:
    """All of them; empty for a group that nobody knows. Waits for transactions that hold some of them open."""
    request = OffsetFetchRequest(
        group_id=group,
        topics=None,
        groups=[OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=None)],
        require_stable=True,
    )
    code, answer = coordinator_of_group(cluster, group).ask(
        lambda connection: connection.call(request, _VERSION_MAX),
        lambda answer: _codes(_group(answer)),
        Deadline(retry_timeout_s),
    )
    if code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.RESOURCE_NOT_FOUND):
        return {}
    if code:
        raise OttlaError(refusal(code, f"group '{group}'", f"the offsets of group '{group}' cannot be read"))
    return {
        TopicPartition(topic.name, row.partition_index): Committed(row.committed_offset, row.metadata or "")
        for topic in _group(answer).topics
        for row in topic.partitions
        if row.committed_offset >= 0
    }


def commit_offsets(
    cluster: ClusterClient, group: str, offsets: Mapping[TopicPartition, Committed], *, retry_timeout_s: float = 60.0
) -> None:
    """As somebody who assigns partitions by hand: the group must have no members. Raises OttlaError."""
    if not offsets:
        return
    schema = OffsetCommitRequest.OffsetCommitRequestPartition
    rows = by_topic(
        (partition, schema(partition_index=partition.partition, committed_offset=offset, committed_metadata=metadata))
        for partition, (offset, metadata) in offsets.items()
    )
    request = OffsetCommitRequest(
        group_id=group,
        topics=[OffsetCommitRequest.OffsetCommitRequestTopic(name=name, partitions=its) for name, its in rows.items()],
    )
    code, _ = coordinator_of_group(cluster, group).ask(
        lambda connection: connection.call(request, _COMMIT_MAX),
        lambda answer: {row.error_code for topic in answer.topics for row in topic.partitions},
        Deadline(retry_timeout_s),
    )
    if code:
        raise OttlaError(refusal(code, f"group '{group}'", f"the offsets of group '{group}' cannot be written"))


def delete_offsets(
    cluster: ClusterClient, group: str, partitions: Collection[TopicPartition], *, retry_timeout_s: float = 60.0
) -> None:
    """What the group has for these partitions is forgotten. Raises OttlaError."""
    if not partitions:
        return
    schema = OffsetDeleteRequest.OffsetDeleteRequestPartition
    rows = by_topic((partition, schema(partition_index=partition.partition)) for partition in partitions)
    request = OffsetDeleteRequest(
        group_id=group,
        topics=[OffsetDeleteRequest.OffsetDeleteRequestTopic(name=name, partitions=its) for name, its in rows.items()],
    )
    code, _ = coordinator_of_group(cluster, group).ask(
        lambda connection: connection.call(request),
        lambda answer: {answer.error_code, *(row.error_code for topic in answer.topics for row in topic.partitions)},
        Deadline(retry_timeout_s),
    )
    if code not in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
        raise OttlaError(refusal(code, f"group '{group}'", f"the offsets of group '{group}' cannot be deleted"))


def _group(answer: Any) -> Any:
    return answer.groups[0] if answer.groups else answer


def _codes(group: Any) -> set[int]:
    return {group.error_code, *(row.error_code for topic in group.topics for row in topic.partitions)}
