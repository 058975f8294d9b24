"""What can be changed in a cluster, each as one request, with the broker's own words when it refuses."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ottla.client.admin.admin_answers import check_answer
from ottla.client.cluster import ClusterClient
from ottla.common.errors import OttlaError
from ottla.common.ids import TopicPartition, by_topic
from ottla.protocol.messages import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteGroupsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
    IncrementalAlterConfigsRequest,
    OffsetCommitRequest,
)

_TIMEOUT_MS = 15_000
_LEGAL_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
KINDS = {"topic": 2, "broker": 4, "group": 32}
_SET, _DELETE = 0, 1
# From version 10 on topics are named by id.
_OFFSET_COMMIT_VERSION_MAX = 9


def create_topic(
    cluster: ClusterClient, name: str, partitions: int, replication: int, settings: Mapping[str, str]
) -> None:
    """-1 as a number means the cluster's default."""
    if not _LEGAL_TOPIC.fullmatch(name) or name in (".", ".."):
        raise OttlaError(f"'{name}' is not a topic name: use up to 249 of letters, digits, '.', '_' and '-'.")
    schema = CreateTopicsRequest.CreatableTopicConfig
    topic = CreateTopicsRequest.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication,
        configs=[schema(name=key, value=value) for key, value in settings.items()],
    )
    request = CreateTopicsRequest(topics=[topic], timeout_ms=_TIMEOUT_MS)

    def ask() -> None:
        (row,) = cluster.controller().call(request).topics
        check_answer(row.error_code, row.error_message, f"topic '{name}'")

    cluster.settled(ask)


def add_partitions(cluster: ClusterClient, name: str, count: int) -> None:
    one = CreatePartitionsRequest.CreatePartitionsTopic
    request = CreatePartitionsRequest(
        topics=[one(name=name, count=count, assignments=None)], timeout_ms=_TIMEOUT_MS, validate_only=False
    )

    def ask() -> None:
        (row,) = cluster.controller().call(request).results
        check_answer(row.error_code, row.error_message, f"topic '{name}'")

    cluster.settled(ask)


def delete_topic(cluster: ClusterClient, name: str) -> None:
    request = DeleteTopicsRequest(
        topics=[DeleteTopicsRequest.DeleteTopicState(name=name)], topic_names=[name], timeout_ms=_TIMEOUT_MS
    )

    def ask() -> None:
        (row,) = cluster.controller().call(request).responses
        check_answer(row.error_code, row.error_message, f"topic '{name}'")

    cluster.settled(ask)


def trim(cluster: ClusterClient, before: Mapping[TopicPartition, int]) -> None:
    """Delete the records before these offsets; -1 means all there are."""
    one = DeleteRecordsRequest.DeleteRecordsPartition

    def ask() -> None:
        for leader, partitions in cluster.by_leader(before).items():
            rows = by_topic((where, one(partition_index=where.partition, offset=before[where])) for where in partitions)
            schema = DeleteRecordsRequest.DeleteRecordsTopic
            request = DeleteRecordsRequest(
                topics=[schema(name=name, partitions=its) for name, its in rows.items()], timeout_ms=_TIMEOUT_MS
            )
            for topic in cluster.broker(leader).call(request).topics:
                for row in topic.partitions:
                    check_answer(row.error_code, None, f"partition {topic.name}-{row.partition_index}")

    cluster.settled(ask)


def alter_settings(cluster: ClusterClient, kind: str, name: str, changes: Mapping[str, str | None]) -> None:
    """None puts a setting back to its default."""
    message = IncrementalAlterConfigsRequest
    resource = message.AlterConfigsResource(
        resource_type=KINDS[kind],
        resource_name=name,
        configs=[
            message.AlterableConfig(name=key, config_operation=_DELETE if value is None else _SET, value=value)
            for key, value in changes.items()
        ],
    )

    def ask() -> None:
        broker = cluster.broker(int(name)) if kind == "broker" and name.isdigit() else cluster.any_broker()
        for row in broker.call(message(resources=[resource], validate_only=False)).responses:
            check_answer(row.error_code, row.error_message, f"{kind} '{name}'")

    cluster.settled(ask)


def commit_offsets(cluster: ClusterClient, group: str, offsets: Mapping[TopicPartition, int]) -> None:
    """From outside of the group, which must have no members."""
    one = OffsetCommitRequest.OffsetCommitRequestPartition
    rows = by_topic(
        (
            where,
            one(
                partition_index=where.partition,
                committed_offset=offset,
                committed_leader_epoch=-1,
                committed_metadata="",
            ),
        )
        for where, offset in offsets.items()
    )
    schema = OffsetCommitRequest.OffsetCommitRequestTopic
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        retention_time_ms=-1,
        topics=[schema(name=name, partitions=its) for name, its in rows.items()],
    )

    def ask() -> None:
        broker = cluster.broker(cluster.group_coordinator(group))
        for topic in broker.call(request, _OFFSET_COMMIT_VERSION_MAX).topics:
            for row in topic.partitions:
                check_answer(row.error_code, None, f"group '{group}', {topic.name}-{row.partition_index}")

    cluster.settled(ask)


def delete_group(cluster: ClusterClient, group: str) -> None:
    def ask() -> None:
        broker = cluster.broker(cluster.group_coordinator(group))
        (row,) = broker.call(DeleteGroupsRequest(groups_names=[group])).results
        check_answer(row.error_code, None, f"group '{group}'")

    cluster.settled(ask)
