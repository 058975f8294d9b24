"""All of a cluster in a few questions: each is asked once per broker, however many topics and groups there are.

What a broker does not tell is no failure of the whole: `missing` hears why, and the rest is shown.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ottla.client.admin.log_dirs import LogDir
from ottla.client.admin.reassignments import Reassignment, list_reassignments
from ottla.client.lookup import EARLIEST, LATEST, ClusterReader
from ottla.client.retrying import Deadline, retried
from ottla.common.errors import ErrorCode, OttlaError
from ottla.common.ids import TopicPartition, by_topic
from ottla.console.cluster.snapshot import Broker, Group, Member, Partition, Snapshot, Topic
from ottla.protocol.messages import (
    ConsumerGroupDescribeRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    DescribeLogDirsRequest,
    ListGroupsRequest,
    ListOffsetsRequest,
    OffsetFetchRequest,
)

_BATCH = 500
_PATIENCE_S = 1.0
_TOPIC = 2
_OF_THE_TOPIC = 1
_BATCHED_OFFSETS_SINCE = 8
# From version 10 on topics are named by id.
_OFFSET_FETCH_VERSION_MAX = 9
_UNTOLD = (OttlaError, OSError)
# As `missing` names what is not told of groups.
GROUPS_OF = "groups of broker"


class Asking:
    """One look at a cluster. `missing`: what could not be found out, and why."""

    def __init__(self, reader: ClusterReader) -> None:
        self._reader = reader
        self.missing: dict[str, str] = {}

    def everything(self, known: Snapshot | None, *, with_slow: bool) -> Snapshot:
        """`known`: what a look without the slow questions (sizes and settings) takes them from."""
        began_s, at_s = time.monotonic(), time.time()
        # A page is to say soon that nobody answers.
        answer = retried(lambda: self._reader.metadata(None), Deadline(_PATIENCE_S), self._reader.forget)
        topics = _topics(answer)
        topics = self._with_offsets(topics)
        brokers = {
            one.node_id: Broker(one.node_id, one.host, one.port, one.rack, one.node_id == answer.controller_id)
            for one in answer.brokers
        }
        if with_slow or known is None:
            brokers, topics = self._with_log_dirs(brokers, topics)
            topics = self._with_settings(topics)
        else:
            brokers, topics = _remembered(known, brokers, topics)
        groups = self._groups(sorted(brokers), topics, known)
        return Snapshot(
            at_s=at_s,
            took_s=time.monotonic() - began_s,
            cluster_id=answer.cluster_id or "",
            controller=answer.controller_id,
            brokers=_counted(brokers, topics),
            topics=topics,
            groups=groups,
            reassignments=self._reassignments(),
            missing=dict(self.missing),
        )

    # --- offsets

    def _with_offsets(self, topics: Mapping[str, Topic]) -> dict[str, Topic]:
        by_leader: dict[int, list[TopicPartition]] = {}
        for topic in topics.values():
            for partition in topic.partitions:
                if partition.leader >= 0:
                    by_leader.setdefault(partition.leader, []).append(TopicPartition(topic.name, partition.index))
        starts: dict[TopicPartition, int] = {}
        ends: dict[TopicPartition, int] = {}
        for leader, partitions in by_leader.items():
            try:
                ends |= self._list_offsets(leader, partitions, LATEST)
                starts |= self._list_offsets(leader, partitions, EARLIEST)
            except _UNTOLD as error:
                self._untold(f"offsets on broker {leader}", error)
        found: dict[str, Topic] = {}
        for topic in topics.values():
            places = [TopicPartition(topic.name, partition.index) for partition in topic.partitions]
            found[topic.name] = replace(
                topic,
                partitions=tuple(
                    replace(partition, start=starts.get(where), end=ends.get(where))
                    for partition, where in zip(topic.partitions, places, strict=True)
                ),
            )
        return found

    def _list_offsets(
        self, leader: int, partitions: Iterable[TopicPartition], timestamp: int
    ) -> dict[TopicPartition, int]:
        one = ListOffsetsRequest.ListOffsetsPartition
        rows = by_topic(
            (where, one(partition_index=where.partition, current_leader_epoch=-1, timestamp=timestamp))
            for where in partitions
        )
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=0,
            topics=[ListOffsetsRequest.ListOffsetsTopic(name=name, partitions=its) for name, its in rows.items()],
        )
        return {
            TopicPartition(topic.name, row.partition_index): row.offset
            for topic in self._reader.broker(leader).call(request).topics
            for row in topic.partitions
            if not row.error_code and row.offset >= 0
        }

    # --- disks and settings

    def _with_log_dirs(
        self, brokers: Mapping[int, Broker], topics: Mapping[str, Topic]
    ) -> tuple[dict[int, Broker], dict[str, Topic]]:
        sizes: dict[tuple[int, str, int], int] = {}
        told: dict[int, Broker] = {}
        for broker in brokers.values():
            try:
                answer = self._reader.broker(broker.id).call(DescribeLogDirsRequest(topics=None))
                if answer.error_code:
                    raise OttlaError(f"{ErrorCode(answer.error_code).name}.")
            except _UNTOLD as error:
                self._untold(f"log directories of broker {broker.id}", error)
                told[broker.id] = broker
                continue
            mine = 0
            for folder in answer.results:
                for topic in folder.topics:
                    for row in topic.partitions:
                        if not row.is_future_key:
                            sizes[broker.id, topic.name, row.partition_index] = row.partition_size
                            mine += row.partition_size
            log_dirs = tuple(_log_dir(broker.id, row) for row in answer.results)
            told[broker.id] = replace(broker, log_dirs=log_dirs, log_bytes=mine)
        return told, {
            topic.name: replace(
                topic,
                partitions=tuple(
                    replace(partition, log_bytes=_size_of(sizes, topic.name, partition))
                    for partition in topic.partitions
                ),
            )
            for topic in topics.values()
        }

    def _with_settings(self, topics: Mapping[str, Topic]) -> dict[str, Topic]:
        overrides: dict[str, dict[str, str | None]] = {}
        least: dict[str, int] = {}
        names = sorted(topics)
        one = DescribeConfigsRequest.DescribeConfigsResource
        for begin in range(0, len(names), _BATCH):
            resources = [
                one(resource_type=_TOPIC, resource_name=name, configuration_keys=None)
                for name in names[begin : begin + _BATCH]
            ]
            try:
                answer = self._reader.any_broker().call(DescribeConfigsRequest(resources=resources))
            except _UNTOLD as error:
                self._untold("settings of topics", error)
                break
            for result in answer.results:
                overrides[result.resource_name] = {
                    entry.name: entry.value for entry in result.configs if entry.config_source == _OF_THE_TOPIC
                }
                for entry in result.configs:
                    if entry.name == "min.insync.replicas" and (entry.value or "").isdigit():
                        least[result.resource_name] = int(entry.value)
        return {
            name: replace(topic, overrides=overrides.get(name, {}), min_isr=least.get(name, 1))
            for name, topic in topics.items()
        }

    def _reassignments(self) -> tuple[Reassignment, ...]:
        try:
            return tuple(list_reassignments(self._reader))
        except _UNTOLD as error:
            self._untold("reassignments", error)
            return ()

    # --- groups

    def _groups(self, brokers: Sequence[int], topics: Mapping[str, Topic], known: Snapshot | None) -> dict[str, Group]:
        """Of a coordinator that does not answer, those that it had: they are not gone, only not told of. So it is with
        one that has gone, until another has taken over."""
        found: dict[str, Group] = {}
        silent: set[int] = set()
        for broker in brokers:
            try:
                answer = self._reader.broker(broker).call(ListGroupsRequest(states_filter=[], types_filter=[]))
                if answer.error_code:
                    raise OttlaError(f"{ErrorCode(answer.error_code).name}.")
            except _UNTOLD as error:
                self._untold(f"{GROUPS_OF} {broker}", error)
                silent.add(broker)
                continue
            listed = [
                Group(row.group_id, row.group_state, (row.group_type or "classic").lower(), row.protocol_type, broker)
                for row in answer.groups
            ]
            try:
                found |= self._described(broker, listed, topics)
            except _UNTOLD as error:
                self._untold(f"{GROUPS_OF} {broker}", error)
                found |= {group.name: group for group in listed}
        offsets = topics.get("__consumer_offsets")
        is_taken_over = not silent and (offsets is None or not offsets.leaderless)
        for group in known.groups.values() if known is not None else ():
            is_lost = group.coordinator in silent or (group.coordinator not in brokers and not is_taken_over)
            if is_lost and group.name not in found:
                found[group.name] = replace(group, problem="Its coordinator does not answer: this is what was known.")
        return dict(sorted(found.items()))

    def _described(self, broker: int, listed: list[Group], topics: Mapping[str, Topic]) -> dict[str, Group]:
        members = self._members(broker, listed)
        # Share groups have no committed offsets but delivery states of their own.
        committed, problems = self._committed(broker, [group.name for group in listed if group.kind != "share"])
        ends = {
            TopicPartition(topic.name, partition.index): partition
            for topic in topics.values()
            for partition in topic.partitions
        }
        return {
            group.name: replace(
                group,
                state=members.get(group.name, (group.state, ()))[0] or group.state,
                members=members.get(group.name, ("", ()))[1],
                offsets=committed.get(group.name, {}),
                lags=_lags(committed.get(group.name, {}), ends),
                problem=problems.get(group.name),
            )
            for group in listed
        }

    def _members(self, broker: int, listed: list[Group]) -> dict[str, tuple[str, tuple[Member, ...]]]:
        connection = self._reader.broker(broker)
        found: dict[str, tuple[str, tuple[Member, ...]]] = {}
        classic = [group.name for group in listed if group.kind == "classic"]
        for begin in range(0, len(classic), _BATCH):
            for row in connection.call(DescribeGroupsRequest(groups=classic[begin : begin + _BATCH])).groups:
                found[row.group_id] = row.group_state, tuple(_classic_member(member) for member in row.members)
        newer = [group.name for group in listed if group.kind == "consumer"]
        for begin in range(0, len(newer), _BATCH):
            request = ConsumerGroupDescribeRequest(group_ids=newer[begin : begin + _BATCH])
            for row in connection.call(request).groups:
                found[row.group_id] = row.group_state, tuple(_consumer_member(member) for member in row.members)
        return found

    def _committed(self, broker: int, names: list[str]) -> tuple[dict[str, dict[TopicPartition, int]], dict[str, str]]:
        connection = self._reader.broker(broker)
        found: dict[str, dict[TopicPartition, int]] = {}
        problems: dict[str, str] = {}
        is_batched = connection.version_of("OffsetFetchRequest") >= _BATCHED_OFFSETS_SINCE
        step = _BATCH if is_batched else 1
        one = OffsetFetchRequest.OffsetFetchRequestGroup
        for begin in range(0, len(names), step):
            asked = names[begin : begin + step]
            request = OffsetFetchRequest(
                group_id=asked[0], topics=None, groups=[one(group_id=name, topics=None) for name in asked]
            )
            answer = connection.call(request, _OFFSET_FETCH_VERSION_MAX)
            for name, row in zip(asked, answer.groups if is_batched else [answer], strict=True):
                if row.error_code:
                    problems[name] = f"its offsets are not told: {ErrorCode(row.error_code).name}."
                    continue
                found[name] = {
                    TopicPartition(topic.name, partition.partition_index): partition.committed_offset
                    for topic in row.topics
                    for partition in topic.partitions
                    if partition.committed_offset >= 0
                }
        return found, problems

    def _untold(self, what: str, error: Exception) -> None:
        if isinstance(error, OSError):
            self._reader.close()
        self.missing[what] = str(error)


# --- from answers to values


def _topics(answer: Any) -> dict[str, Topic]:
    return {
        topic.name: Topic(
            topic.name,
            bool(topic.is_internal),
            tuple(
                Partition(row.partition_index, row.leader_id, tuple(row.replica_nodes), tuple(row.isr_nodes))
                for row in sorted(topic.partitions, key=lambda row: int(row.partition_index))
            ),
        )
        for topic in sorted(answer.topics, key=lambda topic: str(topic.name))
        if topic.name
    }


def _log_dir(broker: int, row: Any) -> LogDir:
    is_told = row.total_bytes > 0
    total, usable = (row.total_bytes, row.usable_bytes) if is_told else (None, None)
    scarce = is_told and row.usable_bytes < row.total_bytes * 0.05
    problem = "fails" if row.error_code else "nearly full" if scarce else None
    return LogDir(broker, row.log_dir, total, usable, problem)


def _size_of(sizes: Mapping[tuple[int, str, int], int], topic: str, partition: Partition) -> int | None:
    """The leader's, or without one the largest of those who told."""
    if (size := sizes.get((partition.leader, topic, partition.index))) is not None:
        return size
    return max(
        (sizes[node, topic, partition.index] for node in partition.replicas if (node, topic, partition.index) in sizes),
        default=None,
    )


def _remembered(
    known: Snapshot, brokers: Mapping[int, Broker], topics: Mapping[str, Topic]
) -> tuple[dict[int, Broker], dict[str, Topic]]:
    here = {
        broker.id: replace(
            broker, log_dirs=known.brokers[broker.id].log_dirs, log_bytes=known.brokers[broker.id].log_bytes
        )
        if broker.id in known.brokers
        else broker
        for broker in brokers.values()
    }
    found: dict[str, Topic] = {}
    for topic in topics.values():
        before = known.topics.get(topic.name)
        if before is None:
            found[topic.name] = topic
            continue
        sizes = {partition.index: partition.log_bytes for partition in before.partitions}
        found[topic.name] = replace(
            topic,
            overrides=before.overrides,
            min_isr=before.min_isr,
            partitions=tuple(replace(each, log_bytes=sizes.get(each.index)) for each in topic.partitions),
        )
    return here, found


def _counted(brokers: Mapping[int, Broker], topics: Mapping[str, Topic]) -> dict[int, Broker]:
    leaders: dict[int, int] = {}
    replicas: dict[int, int] = {}
    for topic in topics.values():
        for partition in topic.partitions:
            leaders[partition.leader] = leaders.get(partition.leader, 0) + 1
            for node in partition.replicas:
                replicas[node] = replicas.get(node, 0) + 1
    return {
        node: replace(broker, leaders=leaders.get(node, 0), replicas=replicas.get(node, 0))
        for node, broker in sorted(brokers.items())
    }


def _lags(offsets: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, Partition]) -> dict[TopicPartition, int]:
    """In offsets, as Kafka counts it; never below zero: a topic may have been trimmed or made again."""
    found: dict[TopicPartition, int] = {}
    for where, offset in offsets.items():
        partition = ends.get(where)
        if partition is not None and partition.end is not None:
            found[where] = max(0, partition.end - max(offset, partition.start or 0))
    return found


def _classic_member(row: Any) -> Member:
    return Member(
        row.member_id, row.client_id, row.client_host, row.group_instance_id, _assignment(bytes(row.member_assignment))
    )


def _consumer_member(row: Any) -> Member:
    partitions = tuple(
        TopicPartition(topic.topic_name, number)
        for topic in row.assignment.topic_partitions
        for number in topic.partitions
    )
    return Member(row.member_id, row.client_id, row.client_host, row.instance_id, partitions)


def _assignment(data: bytes) -> tuple[TopicPartition, ...]:
    """Of a consumer, as it is written by clients: a version, then topics with their partitions. What is not of this
    form belongs to a group of another protocol."""
    found: list[TopicPartition] = []
    try:
        (count,) = struct.unpack_from(">i", data, 2)
        at = 6
        for _ in range(min(count, 10_000)):
            (length,) = struct.unpack_from(">h", data, at)
            topic = data[at + 2 : at + 2 + length].decode()
            at += 2 + length
            (partitions,) = struct.unpack_from(">i", data, at)
            numbers = struct.unpack_from(f">{max(0, min(partitions, len(data) // 4))}i", data, at + 4)
            at += 4 + 4 * len(numbers)
            found += [TopicPartition(topic, number) for number in numbers]
    except (struct.error, UnicodeDecodeError, ValueError):
        return ()
    return tuple(sorted(found))
