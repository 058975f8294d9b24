"""A group shard on a desk: a log in memory, a clock moved by hand, ids that count, and requests in one line each."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from ottla.broker.coordinators.groups.group_shard import GroupShard
from ottla.broker.partitions.partition import Committed
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import ZERO_TOPIC_ID, TopicId
from ottla.common.result import Result
from ottla.groups import records
from ottla.groups.config import ConsumerSettings, GroupConfig
from ottla.groups.offset_requests import CommitTopic, FetchTopic, fetch_offset
from ottla.groups.offsets import CommittedOffset
from ottla.groups.records import Record
from ottla.groups.state import Client, GroupState
from ottla.metadata.image import ClusterImage, PartitionImage, TopicImage
from ottla.protocol.codec import Message
from ottla.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
)
from tests.support.manual_clock import ManualClock
from tests.support.subscriptions import write_subscription

LATEST_JOIN = 9


def topic_id(name: str) -> TopicId:
    return TopicId(name.encode().ljust(16, b"\0")[:16])


def image_of(topics: Mapping[str, int]) -> ClusterImage:
    made = {
        name: TopicImage(name, topic_id(name), tuple(PartitionImage(1, 0, 0, (1,), (1,)) for _ in range(count)))
        for name, count in topics.items()
    }
    return ClusterImage("cluster", made, {one.id: one for one in made.values()})


class NotAnswered(Exception):
    """The records behind the answer are not durable yet."""


class MemoryLog:
    """Keeps bytes, as a real log would. `broken` refuses appends; `slow` makes them durable only at `flush()`."""

    def __init__(self) -> None:
        self.entries: list[tuple[bytes, bytes | None, int]] = []
        self.broken = False
        self.slow = False
        self.durable = 0
        self.waiting: list[Committed] = []

    def append(self, batch: Sequence[Record], producer: tuple[int, int] | None) -> int:
        if self.broken:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR)
        offset = len(self.entries)
        producer_id = -1 if producer is None else producer[0]
        self.entries += [(*records.serialize(one), producer_id) for one in batch]
        if not self.slow:
            self.durable = len(self.entries)
        return offset

    def when_committed(self, done: Committed) -> None:
        if self.durable < len(self.entries):
            self.waiting.append(done)
        else:
            done(None)

    def flush(self) -> None:
        self.durable = len(self.entries)
        waiting, self.waiting = self.waiting, []
        for done in waiting:
            done(None)

    def replay_into(self, state: GroupState) -> None:
        for offset, (key, value, producer_id) in enumerate(self.entries):
            record = records.deserialize(key, value)
            assert record is not None
            state.replay(record, offset, producer_id)


class Desk:
    def __init__(self, config: GroupConfig | None = None, topics: Mapping[str, int] | None = None) -> None:
        self.config = config or GroupConfig(
            initial_rebalance_delay_ms=0, consumer=ConsumerSettings(assignment_interval_ms=0)
        )
        self.topics = dict(topics or {"orders": 4})
        self.clock = ManualClock()
        self.log = MemoryLog()
        self._numbers = itertools.count(1)
        self.answers: dict[int, Message] = {}
        self._tickets = itertools.count(1)
        self.shard = self._make_shard()
        self.shard.loaded()

    def _make_shard(self) -> GroupShard:
        state = GroupState(self.config, lambda: f"id{next(self._numbers)}", image_of(self.topics))
        return GroupShard(state, self.log, self.clock, self._deliver)

    def _deliver(self, ticket: int, message: Message) -> None:
        assert ticket not in self.answers, "answered twice"
        self.answers[ticket] = message

    @property
    def state(self) -> GroupState:
        return self.shard.state

    def group(self, group_id: str = "g") -> Any:
        return self.state.groups[group_id]

    def restart(self, config: GroupConfig | None = None) -> None:
        """Memory is lost, the log is not."""
        self.config = config or self.config
        self.shard = self._make_shard()
        self.log.replay_into(self.state)
        self.shard.loaded()

    def set_topics(self, topics: Mapping[str, int]) -> None:
        has_new = any(name not in self.topics for name in topics)
        self.topics = dict(topics)
        self.state.on_image(image_of(self.topics), has_new_topics=has_new)

    def wait(self, ms: int) -> None:
        self.clock.advance(ms)
        self.shard.fire_timers()

    def replied(self, out: Result) -> Any:
        """The answer, which must be there."""
        if out.error is None:
            raise NotAnswered
        if out.error is not ErrorCode.NONE:
            raise ApiError(out.error)
        return out.reply

    # --- classic

    def send_join(
        self,
        member_id: str = "",
        *,
        group: str = "g",
        instance: str | None = None,
        topics: Sequence[str] = ("orders",),
        protocols: Sequence[tuple[str, bytes]] | None = None,
        protocol_type: str = "consumer",
        version: int = LATEST_JOIN,
        session_ms: int = 10_000,
        rebalance_ms: int = 60_000,
        owned: Mapping[str, Sequence[int]] | None = None,
        client_id: str = "client",
    ) -> int:
        ticket = next(self._tickets)
        if protocols is None:
            protocols = [("range", write_subscription(topics, owned=owned))]
        request = JoinGroupRequest(
            group_id=group,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=data) for name, data in protocols],
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
        )
        self.shard.join(Client(version, client_id, "/127.0.0.1"), request, ticket)
        return ticket

    def join(self, member_id: str = "", **options: Any) -> Any:
        """A join that must be answered at once; asks again with the id it is given."""
        answer = self.answer(self.send_join(member_id, **options))
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            ticket = self.send_join(answer.member_id, **options)
            self.wait(0)
            return self.answer(ticket)
        return answer

    def new_member_id(self, **options: Any) -> str:
        answer = self.answer(self.send_join(**options))
        assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
        member_id: str = answer.member_id
        return member_id

    def answer(self, ticket: int) -> Any:
        self.wait(0)
        return self.answers[ticket]

    def send_sync(
        self,
        member_id: str,
        generation: int,
        assignments: Mapping[str, bytes] | None = None,
        *,
        group: str = "g",
        instance: str | None = None,
        protocol_name: str | None = None,
    ) -> int:
        ticket = next(self._tickets)
        request = SyncGroupRequest(
            group_id=group,
            member_id=member_id,
            generation_id=generation,
            group_instance_id=instance,
            protocol_name=protocol_name,
            assignments=[
                SyncGroupRequest.SyncGroupRequestAssignment(member_id=one, assignment=data)
                for one, data in (assignments or {}).items()
            ],
        )
        self.shard.sync(request, ticket)
        return ticket

    def sync(self, *arguments: Any, **options: Any) -> Any:
        return self.answer(self.send_sync(*arguments, **options))

    def heartbeat(self, member_id: str, generation: int, *, group: str = "g", instance: str | None = None) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=group, member_id=member_id, generation_id=generation, group_instance_id=instance
        )
        try:
            return ErrorCode(self.replied(self.shard.heartbeat(request)).error_code)
        except ApiError as error:
            return error.code

    def leave(self, *members: tuple[str, str | None], group: str = "g") -> list[ErrorCode]:
        request = LeaveGroupRequest(
            group_id=group,
            members=[LeaveGroupRequest.MemberIdentity(member_id=one, group_instance_id=two) for one, two in members],
        )
        reply = self.replied(self.shard.leave(request))
        return [ErrorCode(one.error_code) for one in reply.members]

    def stable_group(self, *names: str, **options: Any) -> tuple[list[str], int]:
        """A group of that many dynamic members, all synced; their ids (the leader first) and the generation."""
        ids = [self.new_member_id(**options) for _ in names]
        tickets = [self.send_join(one, **options) for one in ids]
        self.wait(self.config.initial_rebalance_delay_ms)
        answers = [self.answer(one) for one in tickets]
        generation = answers[0].generation_id
        assert answers[0].leader == ids[0]
        syncs = [self.send_sync(one, generation) for one in ids[1:]]
        self.sync(ids[0], generation, {one: name.encode() for one, name in zip(ids, names, strict=True)})
        for one in syncs:
            assert self.answers[one].error_code == 0  # type: ignore[attr-defined]
        return ids, generation

    # --- consumer

    def beat(
        self,
        member_id: str,
        epoch: int,
        *,
        group: str = "g",
        instance: str | None = None,
        topics: Sequence[str] | None = None,
        regex: str | None = None,
        owned: Mapping[str, Sequence[int]] | None = None,
        rebalance_ms: int | None = None,
        assignor: str | None = None,
        version: int = 1,
    ) -> Any:
        """Raises ApiError."""
        is_join = epoch == 0
        if is_join and topics is None and regex is None:
            topics = ("orders",)
        if is_join and owned is None:
            owned = {}
        partitions = None
        if owned is not None:
            partitions = [
                ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic_id(name), partitions=indexes)
                for name, indexes in owned.items()
            ]
        request = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id=member_id,
            member_epoch=epoch,
            instance_id=instance,
            rebalance_timeout_ms=rebalance_ms if rebalance_ms is not None else (60_000 if is_join else -1),
            subscribed_topic_names=topics,
            subscribed_topic_regex=regex,
            server_assignor=assignor,
            topic_partitions=partitions,
        )
        return self.replied(self.shard.consumer_heartbeat(Client(version, "client", "/127.0.0.1"), request))

    # --- offsets

    def commit(
        self,
        offset: int,
        *,
        group: str = "g",
        topic: str = "orders",
        partition: int = 0,
        member_id: str = "",
        epoch: int = -1,
        instance: str | None = None,
        metadata: str | None = "",
        retention_ms: int = -1,
        version: int = 9,
        with_topic_id: bool = False,
    ) -> ErrorCode:
        request = OffsetCommitRequest(
            group_id=group,
            member_id=member_id,
            generation_id_or_member_epoch=epoch,
            group_instance_id=instance,
            retention_time_ms=retention_ms,
        )
        one = OffsetCommitRequest.OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_leader_epoch=0, committed_metadata=metadata
        )
        topics = [CommitTopic(topic, topic_id(topic) if with_topic_id else ZERO_TOPIC_ID, [one])]
        try:
            out: Result = self.shard.commit(request, version, topics)
        except ApiError as error:
            return error.code
        error = out.error if out.error is not None else ErrorCode.NONE
        reply: ErrorCode = error or out.reply[0][0]
        return reply

    def committed(self, *, group: str = "g", topic: str = "orders", partition: int = 0) -> int | None:
        found = fetch_offset(
            self.state, group, FetchTopic(topic, ZERO_TOPIC_ID, [partition]), partition, require_stable=False
        )
        return found.offset if isinstance(found, CommittedOffset) else None


def partitions_of(response: Any) -> dict[str, list[int]]:
    """A heartbeat's assignment by topic name."""
    assert response.assignment is not None
    return {
        bytes(one.topic_id).rstrip(b"\0").decode(): list(one.partitions) for one in response.assignment.topic_partitions
    }
