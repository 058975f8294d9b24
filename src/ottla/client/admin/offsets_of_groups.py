"""Which groups there are, and what they have committed in some partitions: for tools that look at all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ottla.client.cluster import ClusterClient
from ottla.client.coordinators import coordinator_of_group
from ottla.client.producing import Committed
from ottla.client.retrying import Deadline
from ottla.common.errors import ErrorCode, OttlaError
from ottla.common.failures import check, refusal
from ottla.common.ids import TopicPartition, by_topic
from ottla.protocol.messages import ListGroupsRequest, OffsetCommitRequest, OffsetFetchRequest

# From version 10 on topics are named by id.
_NAMES_UNTIL = 9
_SEVERAL_GROUPS_SINCE = 8
_GROUPS_TOGETHER = 100
# Of KIP-932: they keep no offsets of this kind.
_WITHOUT_OFFSETS = ("share",)
_GONE = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.RESOURCE_NOT_FOUND, ErrorCode.GROUP_AUTHORIZATION_FAILED)


def group_names(cluster: ClusterClient) -> dict[str, int]:
    """Every group that may have committed offsets, with the broker that coordinates it."""
    cluster.metadata([])
    found: dict[str, int] = {}
    for node in sorted(cluster.brokers):
        answer = cluster.broker(node).call(ListGroupsRequest())
        check(answer.error_code, "the groups of a broker")
        for group in answer.groups:
            if (getattr(group, "group_type", "") or "").lower() not in _WITHOUT_OFFSETS:
                found[group.group_id] = node
    return found


def offsets_of_groups(
    cluster: ClusterClient, groups: Mapping[str, int], partitions: Iterable[TopicPartition]
) -> dict[str, dict[TopicPartition, int]]:
    """What each of these groups, by its coordinator, has committed in these partitions, without waiting for open
    transactions. A group that is gone, or that this user may not see, has nothing."""
    wanted = list(partitions)
    found: dict[str, dict[TopicPartition, int]] = {}
    for node in sorted(set(groups.values())):
        connection = cluster.broker(node)
        names = sorted(name for name, its in groups.items() if its == node)
        together = _GROUPS_TOGETHER if connection.version_of("OffsetFetchRequest") >= _SEVERAL_GROUPS_SINCE else 1
        for at in range(0, len(names), together):
            request = _fetch_request(names[at : at + together], wanted)
            answer = connection.call(request, _NAMES_UNTIL)
            rows = answer.groups if answer.groups else [answer]
            for name, row in zip(names[at : at + together], rows, strict=True):
                if row.error_code in _GONE:
                    continue
                check(row.error_code, f"group '{name}'")
                found[getattr(row, "group_id", name) or name] = {
                    TopicPartition(topic.name, its.partition_index): its.committed_offset
                    for topic in row.topics
                    for its in topic.partitions
                    if its.committed_offset >= 0
                }
    return found


def _fetch_request(groups: Sequence[str], partitions: Sequence[TopicPartition]) -> OffsetFetchRequest:
    numbers = by_topic((partition, partition.partition) for partition in partitions)
    schema = OffsetFetchRequest
    return OffsetFetchRequest(
        group_id=groups[0],
        topics=[schema.OffsetFetchRequestTopic(name=name, partition_indexes=its) for name, its in numbers.items()],
        groups=[
            schema.OffsetFetchRequestGroup(
                group_id=group,
                topics=[
                    schema.OffsetFetchRequestTopics(name=name, partition_indexes=its) for name, its in numbers.items()
                ],
            )
            for group in groups
        ],
        require_stable=False,
    )


def commit_alone(
    cluster: ClusterClient, group: str, offsets: Mapping[TopicPartition, Committed], *, retry_timeout_s: float = 60.0
) -> None:
    """As a consumer that is a member of nothing: refused while the group has members. Raises OttlaError."""
    schema = OffsetCommitRequest
    rows = by_topic(
        (
            partition,
            schema.OffsetCommitRequestPartition(
                partition_index=partition.partition,
                committed_offset=committed.offset,
                committed_leader_epoch=-1,
                committed_metadata=committed.metadata,
            ),
        )
        for partition, committed in offsets.items()
    )
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[schema.OffsetCommitRequestTopic(name=name, partitions=its) for name, its in rows.items()],
    )
    code, _ = coordinator_of_group(cluster, group).ask(
        lambda connection: connection.call(request, _NAMES_UNTIL),
        lambda answer: {row.error_code for topic in answer.topics for row in topic.partitions},
        Deadline(retry_timeout_s),
    )
    if code:
        raise OttlaError(refusal(code, f"group '{group}'", f"offsets of group '{group}' cannot be committed"))
