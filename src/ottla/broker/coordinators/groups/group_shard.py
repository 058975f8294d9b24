"""One `__consumer_offsets` partition at work: the requests, timers and changes of the image that its groups hear of.

How an operation runs is the same for all coordinators (`coordinator_shard.py`). Here is what there is to run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, cast

from ottla.broker.coordinators.coordinator_shard import NEVER, CallLater, CoordinatorShard, RecordLog, give
from ottla.common.clock import Clock
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import ZERO_TOPIC_ID
from ottla.common.result import Result, Ticket, TimerKey
from ottla.groups import consumer_heartbeat, describe, offset_requests, requests
from ottla.groups.classic_group import refused_join
from ottla.groups.classic_join import Join
from ottla.groups.offset_requests import CommitTopic
from ottla.groups.offsets import CommittedOffset
from ottla.groups.records import Record, deserialize
from ottla.groups.state import Client, GroupState
from ottla.groups.timers import FORGET_TOPIC
from ottla.metadata.image import TopicImage
from ottla.protocol.codec import Message
from ottla.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
    TxnOffsetCommitRequest,
)

# A timer whose work could not be written is tried again after this long.
RETRY_MS = 500


def _is_of(topic: TopicImage | None, committed: CommittedOffset) -> bool:
    return topic is not None and committed.topic_id in (ZERO_TOPIC_ID, topic.id)


def _refused(message: Any, error: ErrorCode) -> Message:
    """What was answered rests on records that are not committed: it is not shown."""
    if message.error_code:
        return cast(Message, message)
    if isinstance(message, JoinGroupResponse):
        return refused_join(error, message.member_id)
    return cast(Message, type(message)(error_code=error))


class GroupShard(CoordinatorShard[GroupState]):
    def __init__(
        self,
        state: GroupState,
        log: RecordLog,
        clock: Clock,
        give: Callable[[Ticket, Message], None] = give,
        call_later: CallLater | None = None,
        *,
        knows_all_topics: bool = True,
        catch_up: Callable[[Callable[[], None]], None] | None = None,
    ) -> None:
        """With `knows_all_topics` offsets of a topic that is not in the image are of a deleted one; where the image may
        be behind that of the coordinator before us, `catch_up` calls back when it is not any more."""
        super().__init__(state, log, clock, call_later)
        self.state = state
        self._give = give
        self._catch_up = catch_up
        # What there was before anything in the log can have been deleted. None if that cannot be told.
        self._topics_at_first: Mapping[str, TopicImage] | None = state.image.topics if knows_all_topics else None

    def replay(self, record: Record, offset: int, producer_id: int) -> None:
        self.state.replay(record, offset, producer_id)

    def replay_stored(self, key: bytes, value: bytes | None, offset: int, producer_id: int) -> None:
        record = deserialize(key, value)
        if record is not None:
            self.state.replay(record, offset, producer_id)

    def replay_marker(self, producer_id: int, *, committed: bool) -> None:
        self.state.end_transaction(producer_id, committed=committed)

    def deliver(self, ticket: Ticket, message: Message, error: ErrorCode) -> None:
        self._give(ticket, message if error is ErrorCode.NONE else _refused(message, error))

    # --- classic protocol

    def join(self, client: Client, request: JoinGroupRequest, ticket: Ticket) -> None:
        self.run(partial(requests.join_group, self.state, Join(client, request, ticket)))

    def sync(self, request: SyncGroupRequest, ticket: Ticket) -> None:
        self.run(partial(requests.sync_group, self.state, request, ticket))

    def heartbeat(self, request: HeartbeatRequest) -> Result:
        return self.run(partial(requests.heartbeat, self.state, request))

    def leave(self, request: LeaveGroupRequest) -> Result:
        return self.run(partial(requests.leave_group, self.state, request))

    # --- consumer protocol

    def consumer_heartbeat(self, client: Client, request: ConsumerGroupHeartbeatRequest) -> Result:
        return self.run(partial(consumer_heartbeat.consumer_heartbeat, self.state, client, request))

    # --- offsets

    def commit(self, request: OffsetCommitRequest, version: int, topics: Sequence[CommitTopic]) -> Result:
        """`reply` holds an error for each partition of each topic."""
        if self.state.forgetting:
            self._forget_before_commit(topics)
        return self.run(partial(offset_requests.commit_offsets, self.state, request, version, topics))

    def commit_transactional(self, request: TxnOffsetCommitRequest, topics: Sequence[CommitTopic]) -> Result:
        if self.state.forgetting:
            self._forget_before_commit(topics)
        return self.run(partial(offset_requests.commit_transactional, self.state, request, topics))

    def delete_offsets(self, group_id: str, topics: Sequence[tuple[str, Sequence[int]]]) -> Result:
        """`reply` holds an error for each partition of each topic."""
        return self.run(partial(offset_requests.delete_offsets, self.state, group_id, topics))

    def forget_topics(self, topics: Iterable[str]) -> None:
        """They are deleted: nobody may find their offsets again, least of all in a later topic of the name."""
        for topic in topics:
            if self.state.is_loading:
                self.state.forgetting[topic] = NEVER  # nobody can commit yet: whatever is in the log is older
            else:
                self.state.forgetting[topic] = self.state.next_offset
                self._forget(topic)

    def _forget(self, topic: str) -> Result:
        out = self.begin()
        before = self.state.forgetting[topic]
        offset_requests.forget_topic(self.state, topic, before, out)

        def check(error: ErrorCode, out: Result) -> None:
            if error is not ErrorCode.NONE:
                out.schedule((FORGET_TOPIC, topic, ""), RETRY_MS)
            elif self.state.forgetting.get(topic) == before:
                del self.state.forgetting[topic]

        out.after_commit(check)
        self.settle(out)
        return out

    def _forget_before_commit(self, topics: Sequence[CommitTopic]) -> None:
        """A tombstone that comes late would take the offsets of the new topic of the name with it."""
        for topic in topics:
            if topic.name in self.state.forgetting:
                error = self._forget(topic.name).error
                if error:
                    raise ApiError(error)

    # --- groups as a whole

    def delete_group(self, group_id: str) -> Result:
        return self.run(partial(describe.delete_group, self.state, group_id))

    def expire(self, group_id: str, retention_now_ms: int) -> Result:
        """Offsets past their retention go, and with the last of them a group that has no members."""
        out = self.begin()
        if offset_requests.expire_offsets(self.state, group_id, retention_now_ms, out):
            group = self.state.groups.get(group_id)
            if group is not None and group.is_empty:
                out.records += describe.tombstones(group)
        self.settle(out)
        return out

    # --- time

    def fire(self, key: TimerKey, payload: Any) -> None:
        kind, group_id, _ = key
        if kind == FORGET_TOPIC:
            if group_id in self.state.forgetting:
                self._forget(group_id)
            return
        out = self.begin()
        requests.expire_timer(self.state, key, payload, out)
        if self.state.classic(group_id) is None and out.records:

            def check(error: ErrorCode, out: Result) -> None:
                if error is not ErrorCode.NONE:
                    out.schedule(key, RETRY_MS, payload)

            out.after_commit(check)
        self.settle(out)

    # --- life

    def begin_loading(self) -> None:
        super().begin_loading()
        self.state.clear()

    def loaded(self) -> None:
        """The log has been read: from now on members are expected to be heard of."""
        super().loaded()
        self.state.is_loading = False
        topics, before = self._topics_at_first, self.state.next_offset
        if topics is not None and self._catch_up is not None:
            self._catch_up(lambda: self._forget_what_was_deleted(self.state.image.topics, before))
            topics = None
        self._forget_what_was_deleted(topics, before)
        self.run(partial(requests.expect_members, self.state))

    def _forget_what_was_deleted(self, topics: Mapping[str, TopicImage] | None, before: int) -> None:
        """While the log was read, or before: a crash may have come between a deletion and its tombstones. What is below
        `before` and not of one of `topics` goes as well."""
        if self.has_resigned:
            return
        forgetting = self.state.forgetting
        if topics is not None:
            for topic, committed in self.state.offsets.each():
                if committed.record_offset < before and not _is_of(topics.get(topic), committed):
                    forgetting[topic] = max(forgetting.get(topic, 0), committed.record_offset + 1)
        for topic in list(forgetting):
            forgetting[topic] = min(forgetting[topic], self.state.next_offset)
            self._forget(topic)

    def resign(self) -> None:
        """Those who wait are told to look elsewhere."""
        super().resign()
        out = self.begin()
        requests.send_elsewhere(self.state, out)
        for ticket, message in out.answers:
            self._give(ticket, message)
