"""One look at a cluster: brokers, partitions, ends of logs, groups with their members and commits.

Everything is asked of those who know it, many at a time: a thousand groups of one coordinator are a dozen requests.
What one broker does not answer is missing from the look, and the look says so; the rest is told.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import methodcaller
from typing import Any, TypeVar

from ottla.client.address import ClusterAddress
from ottla.client.cluster import ClusterClient
from ottla.client.connection import BrokerConnection
from ottla.common.errors import ErrorCode, OttlaError
from ottla.common.ids import TopicPartition, partitions_by_topic
from ottla.monitoring.remainder import Remainders
from ottla.protocol import codec
from ottla.protocol.codec import MalformedMessage
from ottla.protocol.messages import (
    ConsumerGroupDescribeRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
    ListOffsetsRequest,
    OffsetFetchRequest,
)

T = TypeVar("T")

# From this version on OffsetFetch takes many groups, until the next one it names topics.
_MANY_GROUPS_SINCE, _NAMES_UNTIL = 8, 9
_GROUPS_AT_ONCE = 100
_PARTITIONS_AT_ONCE = 5_000
_LATEST = -1
_CONSUMER_PROTOCOL_NEWEST = 3


@dataclass(frozen=True, slots=True)
class PartitionLook:
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(slots=True)
class GroupLook:
    state: str
    # classic or consumer; empty where the broker is too old to tell.
    type: str
    coordinator: int
    # How many there are, and which client has which partition.
    members: int = 0
    owners: dict[TopicPartition, str] = field(default_factory=dict)
    committed: dict[TopicPartition, int] = field(default_factory=dict)


@dataclass(slots=True)
class ClusterLook:
    at_ms: int
    brokers: dict[int, tuple[str, int]]
    controller: int
    partitions: dict[TopicPartition, PartitionLook]
    internal_topics: frozenset[str]
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    groups: dict[str, GroupLook] = field(default_factory=dict)
    # Between commit and end of these is nothing that a consumer would be given, for a group each.
    without_records: set[tuple[str, TopicPartition]] = field(default_factory=set)
    # What could not be asked, in sentences.
    troubles: list[str] = field(default_factory=list)

    def lag(self, group: str, partition: TopicPartition) -> int | None:
        """None where the log is not known."""
        end = self.ends.get(partition)
        if end is None:
            return None
        if (group, partition) in self.without_records:
            return 0
        return max(0, end - self.groups[group].committed[partition])


class ClusterSampler:
    """Keeps its connections; not for several threads at a time."""

    def __init__(self, address: ClusterAddress, *, timeout_s: float = 10.0, client_id: str = "ottla-monitor") -> None:
        self._client = ClusterClient(address, timeout_s=timeout_s, client_id=client_id)
        self._remainders = Remainders()

    def close(self) -> None:
        self._client.close()

    def look(self, *, groups: bool = True, all_ends: bool = False, now_ms: int | None = None) -> ClusterLook:
        """Raises OttlaError or OSError when nobody answers at all. With `all_ends` also those of partitions that no
        group reads."""
        try:
            told = self._client.metadata(None)
        except (OttlaError, OSError):
            self._client.close()
            told = self._client.metadata(None)
        look = ClusterLook(
            at_ms=now_ms if now_ms is not None else time.time_ns() // 1_000_000,
            brokers={broker.node_id: (broker.host, broker.port) for broker in told.brokers},
            controller=told.controller_id,
            partitions={
                TopicPartition(topic.name, partition.partition_index): PartitionLook(
                    partition.leader_id, tuple(partition.replica_nodes), tuple(partition.isr_nodes)
                )
                for topic in told.topics
                for partition in topic.partitions
            },
            internal_topics=frozenset(topic.name for topic in told.topics if topic.is_internal),
        )
        if groups:
            self._look_at_groups(look)
        wanted = {partition for group in look.groups.values() for partition in (*group.committed, *group.owners)}
        if all_ends:
            wanted |= look.partitions.keys()
        self._look_at_ends(look, wanted)
        self._remainders.look(look, lambda leader: self._client.broker(leader))
        return look

    def _ask(self, look: ClusterLook, broker: int, ask: Callable[[BrokerConnection], T]) -> T | None:
        """A broker that has gone is asked once more over a new connection: this one may be an old one."""
        for attempt in range(2):
            try:
                return ask(self._client.broker(broker))
            except (OttlaError, OSError) as error:
                self._client.close()
                if attempt:
                    look.troubles.append(f"broker {broker} does not answer: {error}")
        return None

    # --- groups

    def _look_at_groups(self, look: ClusterLook) -> None:
        for broker in look.brokers:
            listed = self._ask(look, broker, lambda connection: connection.call(ListGroupsRequest()))
            if listed is None:
                continue
            if listed.error_code:
                look.troubles.append(
                    f"broker {broker} does not tell all its groups: {ErrorCode(listed.error_code).name}"
                )
            for group in listed.groups:
                if group.protocol_type in ("consumer", ""):
                    look.groups[group.group_id] = GroupLook(group.group_state, group.group_type.lower(), broker)
            own = [name for name, group in look.groups.items() if group.coordinator == broker]
            for names in _pieces(own, _GROUPS_AT_ONCE):
                self._ask(look, broker, partial(_describe, look, names))
                self._ask(look, broker, partial(_committed, look, names))

    # --- logs

    def _look_at_ends(self, look: ClusterLook, wanted: Iterable[TopicPartition]) -> None:
        by_leader: dict[int, list[TopicPartition]] = {}
        for partition in wanted:
            known = look.partitions.get(partition)
            if known is not None and known.leader >= 0:
                by_leader.setdefault(known.leader, []).append(partition)
        for leader, partitions in by_leader.items():
            for piece in _pieces(partitions, _PARTITIONS_AT_ONCE):
                request = _ends_request(piece)
                answer = self._ask(look, leader, methodcaller("call", request))
                if answer is None:
                    break
                for topic in answer.topics:
                    for row in topic.partitions:
                        if not row.error_code:
                            look.ends[TopicPartition(topic.name, row.partition_index)] = row.offset


def _pieces(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _ends_request(partitions: Sequence[TopicPartition]) -> ListOffsetsRequest:
    row = ListOffsetsRequest.ListOffsetsPartition
    return ListOffsetsRequest(
        replica_id=-1,
        topics=[
            ListOffsetsRequest.ListOffsetsTopic(
                name=topic,
                partitions=[
                    row(partition_index=index, current_leader_epoch=-1, timestamp=_LATEST) for index in indexes
                ],
            )
            for topic, indexes in partitions_by_topic(partitions).items()
        ],
    )


def _describe(look: ClusterLook, names: Sequence[str], connection: BrokerConnection) -> None:
    of_protocol = [name for name in names if look.groups[name].type == "consumer"]
    classic = [name for name in names if look.groups[name].type != "consumer"]
    if of_protocol:
        for group in connection.call(ConsumerGroupDescribeRequest(group_ids=of_protocol)).groups:
            if not group.error_code:
                owned = (
                    (member.client_id, topic.topic_name, topic.partitions)
                    for member in group.members
                    for topic in member.assignment.topic_partitions
                )
                _note(look.groups[group.group_id], group, owned)
    if classic:
        for group in connection.call(DescribeGroupsRequest(groups=classic)).groups:
            if not group.error_code:
                owned = (
                    (member.client_id, topic.topic, topic.partitions)
                    for member in group.members
                    for topic in _assigned(bytes(member.member_assignment))
                )
                _note(look.groups[group.group_id], group, owned)


def _note(look: GroupLook, group: Any, owned: Iterable[tuple[str, str, Sequence[int]]]) -> None:
    look.state = group.group_state
    look.members = len(group.members)
    look.owners = {TopicPartition(topic, index): client_id for client_id, topic, indexes in owned for index in indexes}


def _assigned(data: bytes) -> Sequence[Any]:
    """What a classic consumer was assigned; nothing where it is something else than a consumer."""
    if len(data) < 2:
        return ()
    version = min(int.from_bytes(data[:2], "big"), _CONSUMER_PROTOCOL_NEWEST)
    try:
        found: Sequence[Any] = codec.decode("ConsumerProtocolAssignment", version, data, 2).assigned_partitions
    except MalformedMessage:
        return ()
    return found


def _committed(look: ClusterLook, names: Sequence[str], connection: BrokerConnection) -> None:
    if connection.version_of("OffsetFetchRequest") >= _MANY_GROUPS_SINCE:
        wanted = OffsetFetchRequest.OffsetFetchRequestGroup
        request = OffsetFetchRequest(groups=[wanted(group_id=name, topics=None) for name in names])
        answers = connection.call(request, _NAMES_UNTIL).groups
        for answer in answers:
            _note_commits(look.groups[answer.group_id], answer)
    else:
        for name in names:
            _note_commits(look.groups[name], connection.call(OffsetFetchRequest(group_id=name, topics=None)))


def _note_commits(look: GroupLook, answer: Any) -> None:
    look.committed = {
        TopicPartition(topic.name, row.partition_index): row.committed_offset
        for topic in answer.topics
        for row in topic.partitions
        if row.committed_offset >= 0 and not row.error_code
    }
