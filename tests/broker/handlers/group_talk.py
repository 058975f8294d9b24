"""How a test talks about groups: requests in one line each, and answers as plain values to compare or to keep."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ottla.common.errors import ErrorCode
from ottla.protocol import messages as m
from ottla.protocol.codec import Message
from tests.support.raw_client import RawClient
from tests.support.subscriptions import write_subscription

UNKNOWN_ID = b"u" * 16
_HIDDEN = {"host", "port"}


class Talk:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self.client = RawClient.to(bootstrap)
        self.answers: dict[str, Any] = {}
        self._names: dict[str, str] = {}
        self.topic_id = b""
        self._others: list[RawClient] = []

    def ask(self, label: str, request: Message, version: int) -> Any:
        answer = self.client.call(request, version)
        self.note(label, answer)
        return answer

    def note(self, label: str, answer: Any) -> None:
        assert label not in self.answers, label
        self.answers[label] = json.loads(json.dumps(self._plain(answer)))

    def send(self, request: Message, version: int) -> Callable[[], Any]:
        """On a connection of its own, because the answer may take its time."""
        other = RawClient.to(self._bootstrap)
        self._others.append(other)
        other.send(request, version)
        return lambda: other.receive(type(request).__name__, version)

    def close(self) -> None:
        for one in (self.client, *self._others):
            one.close()

    def name(self, member_id: str, name: str) -> str:
        self._names[member_id] = name
        return member_id

    def _plain(self, value: Any, field: str = "") -> Any:
        if isinstance(value, Message):
            return {
                one: "..." if one in _HIDDEN and getattr(value, one) else self._plain(getattr(value, one), one)
                for one in value.__slots__
            }
        if isinstance(value, (list, tuple)):
            plain = [self._plain(one, field) for one in value]
            return sorted(plain, key=_order) if plain and isinstance(plain[0], dict) else plain
        if isinstance(value, (bytes, bytearray)):
            raw = bytes(value)
            return "the topic's id" if raw == self.topic_id else raw.hex()
        if field == "error_code":
            return ErrorCode(value).name
        if field == "error_message":
            return None if value is None else "..."
        if isinstance(value, str):
            return self._names.get(value, value)
        return value


def _order(plain: dict[str, Any]) -> str:
    return str([plain.get(key) for key in ("group_id", "name", "key", "member_id", "partition_index")])


def commit_request(
    talk: Talk, group: str, offset: int, *, partition: int = 0, topic: str = "orders", metadata: str = "", **more: Any
) -> m.OffsetCommitRequest:
    one = m.OffsetCommitRequest.OffsetCommitRequestPartition(
        partition_index=partition, committed_offset=offset, committed_leader_epoch=0, committed_metadata=metadata
    )
    topic_id = more.pop("topic_id", talk.topic_id)
    return m.OffsetCommitRequest(
        group_id=group,
        topics=[m.OffsetCommitRequest.OffsetCommitRequestTopic(name=topic, topic_id=topic_id, partitions=[one])],
        **more,
    )


def commit(talk: Talk, group: str, offset: int, *, version: int = 9, **more: Any) -> Any:
    return talk.client.call(commit_request(talk, group, offset, **more), version)


def fetch_request(
    talk: Talk, group: str, partitions: Sequence[int] | None = (0,), *, topic_id: bytes | None = None, **more: Any
) -> m.OffsetFetchRequest:
    one = m.OffsetFetchRequest.OffsetFetchRequestTopics
    topics = None
    if partitions is not None:
        topics = [one(name="orders", topic_id=topic_id or talk.topic_id, partition_indexes=partitions)]
    asked = m.OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=topics, **more)
    return m.OffsetFetchRequest(groups=[asked])


def join_request(
    group: str,
    member_id: str = "",
    *,
    protocols: Sequence[tuple[str, bytes]] | None = None,
    instance: str | None = None,
    owned: Mapping[str, Sequence[int]] | None = None,
    **more: Any,
) -> m.JoinGroupRequest:
    chosen = protocols if protocols is not None else [("range", write_subscription(["orders"], owned=owned))]
    fields = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 30_000, "protocol_type": "consumer", **more}
    return m.JoinGroupRequest(
        group_id=group,
        member_id=member_id,
        group_instance_id=instance,
        protocols=[m.JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=data) for name, data in chosen],
        **fields,
    )


def sync_request(
    group: str, member_id: str, generation: int, assignments: Mapping[str, bytes] | None = None, **more: Any
) -> m.SyncGroupRequest:
    one = m.SyncGroupRequest.SyncGroupRequestAssignment
    return m.SyncGroupRequest(
        group_id=group,
        member_id=member_id,
        generation_id=generation,
        assignments=[one(member_id=name, assignment=data) for name, data in (assignments or {}).items()],
        **{"protocol_type": "consumer", "protocol_name": "range", **more},
    )


def heartbeat_request(group: str, member_id: str, generation: int, instance: str | None = None) -> m.HeartbeatRequest:
    return m.HeartbeatRequest(group_id=group, member_id=member_id, generation_id=generation, group_instance_id=instance)


def new_member_id(talk: Talk, group: str, name: str, **more: Any) -> str:
    answer = talk.client.call(join_request(group, **more), 9)
    assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
    return talk.name(answer.member_id, name)


def wait_until(talk: Talk, group: str, state: str) -> None:
    for _ in range(200):
        found = talk.client.call(m.DescribeGroupsRequest(groups=[group]), 5)
        if found.groups[0].group_state == state:
            return
        time.sleep(0.05)
    raise AssertionError(f"{group} is not {state}")


def leave_request(group: str, *members: tuple[str, str | None]) -> m.LeaveGroupRequest:
    one = m.LeaveGroupRequest.MemberIdentity
    return m.LeaveGroupRequest(
        group_id=group, members=[one(member_id=name, group_instance_id=instance) for name, instance in members]
    )


def consumer_heartbeat(
    talk: Talk,
    group: str,
    member_id: str,
    epoch: int,
    *,
    owned: Sequence[int] | None = None,
    topics: Sequence[str] | None = None,
    instance: str | None = None,
    **more: Any,
) -> m.ConsumerGroupHeartbeatRequest:
    one = m.ConsumerGroupHeartbeatRequest.TopicPartitions
    partitions = None
    if owned is not None:
        partitions = [one(topic_id=talk.topic_id, partitions=owned)] if owned else []
    elif epoch == 0:
        partitions = []
    if epoch == 0:
        more = {"rebalance_timeout_ms": 30_000, **more}
        topics = ["orders"] if topics is None else topics
    return m.ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member_id,
        member_epoch=epoch,
        instance_id=instance,
        subscribed_topic_names=topics,
        topic_partitions=partitions,
        **more,
    )
