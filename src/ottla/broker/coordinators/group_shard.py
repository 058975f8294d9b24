"""One `__consumer_offsets` partition at work: requests and timers in, records to the log, answers out.

Every operation runs the same way. It fills a Result (or raises ApiError and has changed nothing). The records go to the
log as one batch and are replayed at once, so that the next request sees them; when the log says they are durable, the
follow-ups run and the answers go out. On one node that is usually the same moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, cast

from ottla.common.clock import Clock
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import ZERO_TOPIC_ID
from ottla.groups import consumer_heartbeat, describe, offset_requests, requests
from ottla.groups.classic_group import refused_join
from ottla.groups.classic_join import Join
from ottla.groups.offset_requests import CommitTopic
from ottla.groups.offsets import CommittedOffset
from ottla.groups.result import Client, Record, Result, Ticket, TimerKey, TimerOrder
from ottla.groups.state import GroupState
from ottla.groups.timers import FORGET_TOPIC, TimerTable
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

NEVER = 1 << 62
_REPLICAS_AWAY = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.REQUEST_TIMED_OUT,
)
# A timer whose work could not be written is tried again after this long.
RETRY_MS = 500


class RecordLog(Protocol):
    """The log of the partition, as the shard sees it."""

    def append(self, records: Sequence[Record], producer: tuple[int, int] | None) -> int:
        """Write all or none as one batch; the offset of the first. Raises ApiError."""

    def when_committed(self, done: Callable[[ErrorCode], None]) -> None:
        """Call `done`, now or later, when all that has been appended is as durable as the topic asks for."""


def coordinator_error(code: ErrorCode) -> ErrorCode:
    """What a failed append means to a client of the coordinator."""
    if code in _REPLICAS_AWAY:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR):
        return ErrorCode.NOT_COORDINATOR
    if code in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE):
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return code


def _is_of(topic: TopicImage | None, committed: CommittedOffset) -> bool:
    return topic is not None and committed.topic_id in (ZERO_TOPIC_ID, topic.id)


def _refused(message: Any, error: ErrorCode) -> Message:
    """What was answered rests on records that are not committed: it is not shown."""
    if message.error_code:
        return cast(Message, message)
    if isinstance(message, JoinGroupResponse):
        return refused_join(error, message.member_id)
    return cast(Message, type(message)(error_code=error))


class GroupShard:
    def __init__(
        self,
        state: GroupState,
        log: RecordLog,
        clock: Clock,
        deliver: Callable[[Ticket, Message], None],
        set_alarm: Callable[[int], None] = lambda deadline_ms: None,
        *,
        knows_all_topics: bool = True,
        catch_up: Callable[[Callable[[], None]], None] | None = None,
    ) -> None:
        """`set_alarm` is told when to call `fire_timers`, each time that is earlier than it was. With
        `knows_all_topics` offsets of a topic that is not in the image are of a deleted one; where the image may be
        behind that of the coordinator before us, `catch_up` calls back when it is not any more."""
        self.state = state
        self.timers = TimerTable()
        self._log = log
        self._clock = clock
        self._deliver = deliver
        self._set_alarm = set_alarm
        self._alarm_ms = NEVER
        self._has_resigned = False
        self._catch_up = catch_up
        # What there was before anything in the log can have been deleted. None if that cannot be told.
        self._topics_at_first: Mapping[str, TopicImage] | None = state.image.topics if knows_all_topics else None

    # --- how every operation runs

    def begin(self) -> Result:
        return Result(self._clock.now_ms())

    def _run(self, operation: Callable[[Result], Any]) -> Result:
        """`operation` fills a Result, or raises ApiError and has changed nothing. What it gives back is the reply."""
        out = self.begin()
        out.reply = operation(out)
        self.settle(out)
        return out

    def settle(self, out: Result) -> None:
        """Carry out what an operation asked for. `out.error` is set when it has come to its end."""
        if self._has_resigned:
            self._finish(out, ErrorCode.NOT_COORDINATOR)
            return
        if not out.records:
            # The answer may rest on records of another request that are not durable yet.
            self._set_timers(out.timers)
            self._log.when_committed(partial(self._finish, out))
            return
        try:
            offset = self._log.append(out.records, out.producer)
        except ApiError as error:
            # The members that were to go are still there, so their timers must be, too.
            self._set_timers([order for order in out.timers if order.delay_ms is not None])
            self._finish(out, error.code)
            return
        producer_id = -1 if out.producer is None else out.producer[0]
        for number, record in enumerate(out.records):
            self.state.replay(record, offset + number, producer_id)
        self._set_timers(out.timers)
        for step in out.next_steps:
            self._run(step)
        self._log.when_committed(partial(self._finish, out))

    def _set_timers(self, orders: Sequence[TimerOrder]) -> None:
        if orders:
            self.timers.carry_out(orders, self._clock.monotonic_ms())
            self._look_at_clock()

    def _look_at_clock(self) -> None:
        deadline_ms = self.timers.next_deadline()
        if deadline_ms is not None and deadline_ms < self._alarm_ms:
            self._alarm_ms = deadline_ms
            self._set_alarm(deadline_ms)

    def _finish(self, out: Result, error: ErrorCode) -> None:
        out.error = error = coordinator_error(error)
        if self._has_resigned:
            error = ErrorCode.NOT_COORDINATOR  # what would follow a success can be neither written nor timed any more
        try:
            for follow_up in out.follow_ups:
                self._run(partial(follow_up, error))
        except Exception:
            out.error = ErrorCode.UNKNOWN_SERVER_ERROR
            raise
        finally:  # whoever waits is answered whatever happens
            for ticket, message in out.answers:
                self._deliver(ticket, message if out.error is ErrorCode.NONE else _refused(message, out.error))
            if out.on_done is not None:
                out.on_done()

    def read(self, look: Callable[[GroupState], Any]) -> Result:
        """What `look` makes of the groups, as `reply`: an answer like any other, it shows nothing that is not
        durable."""
        return self._run(lambda _: look(self.state))

    # --- classic protocol

    def join(self, client: Client, request: JoinGroupRequest, ticket: Ticket) -> None:
        self._run(partial(requests.join_group, self.state, Join(client, request, ticket)))

    def sync(self, request: SyncGroupRequest, ticket: Ticket) -> None:
        self._run(partial(requests.sync_group, self.state, request, ticket))

    def heartbeat(self, request: HeartbeatRequest) -> Result:
        return self._run(partial(requests.heartbeat, self.state, request))

    def leave(self, request: LeaveGroupRequest) -> Result:
        return self._run(partial(requests.leave_group, self.state, request))

    # --- consumer protocol

    def consumer_heartbeat(self, client: Client, request: ConsumerGroupHeartbeatRequest) -> Result:
        return self._run(partial(consumer_heartbeat.consumer_heartbeat, self.state, client, request))

    # --- offsets

    def commit(self, request: OffsetCommitRequest, version: int, topics: Sequence[CommitTopic]) -> Result:
        """`reply` holds an error for each partition of each topic."""
        if self.state.forgetting:
            self._forget_before_commit(topics)
        return self._run(partial(offset_requests.commit_offsets, self.state, request, version, topics))

    def commit_transactional(self, request: TxnOffsetCommitRequest, topics: Sequence[CommitTopic]) -> Result:
        if self.state.forgetting:
            self._forget_before_commit(topics)
        return self._run(partial(offset_requests.commit_transactional, self.state, request, topics))

    def delete_offsets(self, group_id: str, topics: Sequence[tuple[str, Sequence[int]]]) -> Result:
        """`reply` holds an error for each partition of each topic."""
        return self._run(partial(offset_requests.delete_offsets, self.state, group_id, topics))

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
        return self._run(partial(describe.delete_group, self.state, group_id))

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

    def fire_timers(self) -> None:
        """Everything that is due by the clock."""
        now_ms = self._clock.monotonic_ms()
        self._alarm_ms = -1  # whatever is set meanwhile is looked at below
        try:
            while (due := self.timers.pop_due(now_ms)) is not None:
                self._fire(*due)
        finally:  # one that fails must not stop the clock for the rest
            self._alarm_ms = NEVER
            self._look_at_clock()

    def _fire(self, key: TimerKey, payload: Any) -> None:
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

    @property
    def is_loading(self) -> bool:
        return self.state.is_loading

    def begin_loading(self) -> None:
        self.state.clear()

    def loaded(self) -> None:
        """The log has been read: from now on members are expected to be heard of."""
        self.state.is_loading = False
        topics, before = self._topics_at_first, self.state.next_offset
        if topics is not None and self._catch_up is not None:
            self._catch_up(lambda: self._forget_what_was_deleted(self.state.image.topics, before))
            topics = None
        self._forget_what_was_deleted(topics, before)
        self._run(partial(requests.expect_members, self.state))

    def _forget_what_was_deleted(self, topics: Mapping[str, TopicImage] | None, before: int) -> None:
        """While the log was read, or before: a crash may have come between a deletion and its tombstones. What is below
        `before` and not of one of `topics` goes as well."""
        if self._has_resigned:
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
        """The partition is not ours any more: those who wait are told to look elsewhere."""
        self._has_resigned = True
        out = self.begin()
        requests.send_elsewhere(self.state, out)
        self.timers.clear()
        for ticket, message in out.answers:
            self._deliver(ticket, message)
