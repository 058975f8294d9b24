"""The offsets of a group as they are decided: nothing that an open transaction might still change."""

from __future__ import annotations

from typing import Any

from ottla.client.cluster import ClusterClient
from ottla.client.coordinators import coordinator_of_group
from ottla.client.producing import Committed
from ottla.client.retrying import Deadline
from ottla.common.errors import ErrorCode, OttlaError
from ottla.common.failures import refusal
from ottla.common.ids import TopicPartition
from ottla.protocol.messages import OffsetFetchRequest

# From version 10 on topics are named by id.
_VERSION_MAX = 9


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


def _group(answer: Any) -> Any:
    return answer.groups[0] if answer.groups else answer


def _codes(group: Any) -> set[int]:
    return {group.error_code, *(row.error_code for topic in group.topics for row in topic.partitions)}
