"""The leader's side of replication: what followers fetch, and what their fetches acknowledge.

A follower names its partitions once (KIP-227) and then those whose position has changed. A session remembers which
partitions have something for it (`_ready`) and of which it has not heard the watermark yet (`_stale`), because
partitions tell it (`ReplicaFeed`): a fetch costs by what moves, not by how many partitions there are. An append wakes
the follower that waits in the same turn of the loop; a watermark alone does not, it goes along with the next records or
when the follower has waited long enough. Nor does a fetch wait for long while the follower has not named a partition of
which we are the new leader: it cannot say so before it has its answer, and producers wait for it.

A replica has one session, which is closed by its next one and by nothing else. What a fetch acknowledges counts only if
it comes from the broker's current registration, for the leader epoch in force, and if the logs have not diverged.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Iterable
from typing import TYPE_CHECKING

from ottla.broker.chores.timers import Handle
from ottla.broker.partitions.fetch_answer import FetchAnswer, Line, by_topic, empty_answer
from ottla.broker.partitions.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, FetchPartition, Key
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.replica_throttles import HELD_BACK_MS
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.steps import Steps, pieces
from ottla.protocol.messages import FetchRequest
from ottla.replication.follower import diverging

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.server.client_end import Answer
    from ottla.server.output_queue import Part

_WITH_TOPIC_IDS = 13
_WITH_REPLICA_STATE = 15
# A follower that hears of an election later than we do gets its answers after this time, for so long.
_EXPECTING_WAIT_MS = 10
_EXPECTING_MS = 2_000
# More are taken in, or told, in turns.
_PARTITIONS_AT_ONCE = 256

Named = tuple[Key, FetchRequest.FetchPartition]


class ReplicaPosition(FetchPartition):
    """A follower's place in one partition."""

    __slots__ = ("last_fetched_epoch", "log_start_offset", "partition", "session")

    def __init__(self, session: ReplicaSession, key: Key) -> None:
        super().__init__(key, 0, 0, -1)
        self.session = session
        self.last_fetched_epoch = -1
        self.log_start_offset = -1
        # What it is fed by; None: it is not led here, or not in this epoch.
        self.partition: Partition | None = None

    def on_append(self) -> None:
        self.session.on_append(self)

    def on_watermark(self) -> None:
        self.session.stale[self] = None

    def on_log_start(self) -> None:
        self.session.stale[self] = None
        self.session.finish_soon()

    def on_isr(self) -> None:
        # It may be out of sync now; the next fetch tells, though it does not name a partition where nothing happens.
        self.session.outside[self] = None

    def attach(self, partition: Partition) -> None:
        self.detach()
        self.partition = partition
        partition.feeds[self] = None

    def detach(self) -> None:
        if self.partition is not None:
            self.partition.feeds.pop(self, None)
            self.partition = None
        self.session.ready.pop(self, None)
        self.session.stale.pop(self, None)
        self.session.outside.pop(self, None)


class ReplicaSession:
    __slots__ = (
        "_broker",
        "_correlation_id",
        "_deadline_ms",
        "_errors",
        "_future",
        "_is_held_back",
        "_is_woken",
        "_max_bytes",
        "_min_bytes",
        "_table",
        "_timer",
        "_timer_ms",
        "_version",
        "broker_epoch",
        "by_id",
        "epoch",
        "expected",
        "expected_until_ms",
        "fetched_ms",
        "id",
        "is_counted",
        "outside",
        "positions",
        "ready",
        "replica",
        "stale",
    )

    def __init__(self, broker: Broker, session_id: int, by_id: bool, replica: int, broker_epoch: int) -> None:
        self._broker = broker
        self.id = session_id
        self.by_id = by_id
        self._table = broker.partitions.by_id if by_id else broker.partitions.by_name
        self.epoch = 1
        self.replica = replica
        self.broker_epoch = broker_epoch
        # Whether it is the registration that the cluster knows: else it may read, and acknowledges nothing.
        self.is_counted = False
        self.fetched_ms = 0
        self.positions: dict[Key, ReplicaPosition] = {}
        # Behind the end of our log, in the order in which they are served; and those to be told of a watermark.
        self.ready: dict[ReplicaPosition, None] = {}
        self.stale: dict[ReplicaPosition, None] = {}
        # Where it is not in sync: it may join though it has nothing more to fetch there, and does not name them again.
        self.outside: dict[ReplicaPosition, None] = {}
        # What we lead since a short time and it has not named yet.
        self.expected: set[Key] = set()
        self.expected_until_ms = 0
        # The fetch that is under way.
        self._version = self._correlation_id = 0
        self._min_bytes = self._max_bytes = 0
        self._errors: list[Line] = []
        self._future: asyncio.Future[Answer] | None = None
        self._is_woken = False
        # Something is left out because it is throttled.
        self._is_held_back = False
        self._deadline_ms = 0
        # One for many fetches: due at or before the end of the one that waits.
        self._timer: Handle | None = None
        self._timer_ms = 0

    # --- a fetch begins

    def begin(self, version: int, correlation_id: int, request: FetchRequest) -> None:
        broker = self._broker
        registered = broker.image.brokers.get(self.replica)
        self.is_counted = registered is not None and registered.epoch == self.broker_epoch
        self.fetched_ms = broker.clock.monotonic_ms()
        self._version = version
        self._correlation_id = correlation_id
        self._max_bytes = min(request.max_bytes, broker.fetch_bytes_max)
        self._min_bytes = min(request.min_bytes, self._max_bytes)
        self._errors = []
        for position in list(self.outside):
            self._place(position)

    def take_in(self, named: Iterable[Named]) -> None:
        for key, asked in named:
            position = self.positions.get(key)
            if position is None:
                position = self.positions[key] = ReplicaPosition(self, key)
            position.fetch_offset = asked.fetch_offset
            position.last_fetched_epoch = asked.last_fetched_epoch
            position.log_start_offset = asked.log_start_offset
            position.leader_epoch = asked.current_leader_epoch
            position.max_bytes = asked.partition_max_bytes
            if self.expected:
                self.expected.discard(key)
            self._place(position)

    def expect(self, key: Key, until_ms: int) -> None:
        if key not in self.expected:
            self.expected.add(key)
            self.expected_until_ms = until_ms
            self.finish_soon()

    def forget(self, keys: Iterable[Key]) -> None:
        for key in keys:
            position = self.positions.pop(key, None)
            if position is not None:
                position.detach()

    def close(self) -> None:
        self.forget(list(self.positions))
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.finish()

    def _place(self, position: ReplicaPosition) -> None:
        """Note what the follower has, and whether there is more for it."""
        topic, index = position.key
        partition = self._table.get(topic, index)
        if partition is None:
            self._fail(position, self._table.error_for(topic, index))
            return
        epoch, leader_epoch = position.leader_epoch, partition.leader_epoch
        if epoch != leader_epoch and epoch != -1:
            is_old = epoch < leader_epoch
            self._fail(position, ErrorCode.FENCED_LEADER_EPOCH if is_old else ErrorCode.UNKNOWN_LEADER_EPOCH)
            return
        state = partition.replication
        if state is None or self.replica not in state.followers:
            self._fail(position, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        log, offset = partition.log, position.fetch_offset
        if log.failed is not None:
            self._fail(position, ErrorCode.KAFKA_STORAGE_ERROR)
            return
        if position.last_fetched_epoch != leader_epoch or offset > log.log_end_offset:
            diverged = self._divergence(position, partition)
            if diverged is not None:
                self._fail(position, diverged)
                return
        if not log.log_start_offset <= offset <= log.log_end_offset:
            self._fail(position, ErrorCode.OFFSET_OUT_OF_RANGE, log.log_start_offset)
            return
        if position.partition is not partition:
            position.attach(partition)
        if offset < log.log_end_offset:
            self.ready[position] = None
        else:
            self.ready.pop(position, None)
        if self.is_counted:
            partition.on_replica_fetch(
                self.replica, self.broker_epoch, offset, position.log_start_offset, self.fetched_ms
            )
            if self.replica in state.isr:
                self.outside.pop(position, None)
            else:
                self.outside[position] = None
                self._broker.isr_changes.consider(partition, self.replica)
        log_start = log.log_start_offset
        if position.told_high_watermark != log.high_watermark or position.told_log_start != log_start:
            self.stale[position] = None

    def _divergence(self, position: ReplicaPosition, partition: Partition) -> tuple[int, int] | ErrorCode | None:
        log = partition.log
        found = diverging(
            position.last_fetched_epoch,
            position.fetch_offset,
            lambda epoch: log.leader_epochs.end_offset_for(epoch, log.log_end_offset),
        )
        return ErrorCode.OFFSET_OUT_OF_RANGE if found == (-1, -1) else found

    def _fail(self, position: ReplicaPosition, reason: ErrorCode | tuple[int, int], log_start_offset: int = -1) -> None:
        """Told at once; the follower names the partition again when it has done something about it."""
        position.detach()
        line = Line(position)
        if isinstance(reason, tuple):
            line.diverging = reason
        else:
            line.error = reason
        line.log_start_offset = log_start_offset
        position.told_high_watermark = position.told_log_start = -1
        self._errors.append(line)

    # --- when to answer

    @property
    def is_waiting(self) -> bool:
        return self._future is not None and not self._future.done()

    def answer_now_or_later(self, max_wait_ms: int) -> Answer | Awaitable[Answer]:
        answer = self._answer_if_enough(is_over=max_wait_ms <= 0 or not self.positions)
        if answer is not None:
            return answer
        if self._is_held_back:
            max_wait_ms = min(max_wait_ms, HELD_BACK_MS)
        if self.expected:
            if self.fetched_ms < self.expected_until_ms:
                max_wait_ms = min(max_wait_ms, _EXPECTING_WAIT_MS)
            else:
                self.expected.clear()
        self._future = future = self._broker.loop.create_future()
        deadline_ms = self.fetched_ms + max_wait_ms
        if self._timer is not None and deadline_ms < self._timer_ms:
            self._timer.cancel()
            self._timer = None
        self._deadline_ms = deadline_ms
        if self._timer is None:
            self._timer_ms = deadline_ms
            self._timer = self._broker.call_later(max_wait_ms, self._on_time)
        return future

    def on_append(self, position: ReplicaPosition) -> None:
        if position not in self.ready:
            self.ready[position] = None
            partition = position.partition
            if partition is not None and partition.replication is not None and self.is_counted:
                partition.replication.had_everything(self.replica, self.fetched_ms)
        if self._future is not None and not self._is_woken:
            self._is_woken = True
            self._broker.loop.call_soon(self._on_wake)

    def finish_soon(self) -> None:
        self._broker.loop.call_soon(self.finish)

    def _on_wake(self) -> None:
        self._is_woken = False
        self._look_again()

    def _on_time(self) -> None:
        """One timer serves many fetches: it is set again for what is left of the one that waits now."""
        self._timer = None
        if self._future is None:
            return
        left_ms = self._deadline_ms - self._broker.clock.monotonic_ms()
        if left_ms > 0:
            self._timer_ms = self._deadline_ms
            self._timer = self._broker.call_later(left_ms, self._on_time)
        else:
            self.finish()

    def finish(self) -> None:
        """Answer what is there."""
        self._look_again(is_over=True)

    def _look_again(self, *, is_over: bool = False) -> None:
        future = self._future
        if future is None:
            return
        if future.done():  # the follower has gone
            self._future = None
            return
        try:
            answer = self._answer_if_enough(is_over=is_over)
        except Exception as error:
            self._future = None
            future.set_exception(error)  # else the follower would wait for ever
            return
        if answer is not None:
            self._future = None
            future.set_result(answer)

    # --- what is there

    def _answer_if_enough(self, *, is_over: bool) -> list[Part] | None:
        lines, size = self._errors, 0
        has_failed = bool(lines)
        served: list[ReplicaPosition] = []
        throttle, throttled = self._broker.throttles.leader, 0
        is_throttling = throttle.is_on
        self._is_held_back = False
        for position in list(self.ready):
            left = self._max_bytes - size
            if left <= 0 and size:
                break
            is_throttled = is_throttling and self._is_throttled(position)
            if is_throttled and not self._is_in_sync(position) and throttle.is_exceeded(throttled):
                self._is_held_back = True
                continue
            before = len(lines)
            found = self._read(position, left, lines, is_first=size == 0)
            if found:
                served.append(position)
                size += found
                throttled += found if is_throttled else 0
            elif len(lines) > before:
                has_failed = True
        if not is_over and not has_failed and size < self._min_bytes:
            lines.clear()
            for position in served:  # found, and not told
                self.stale[position] = None
            return None
        if throttled:
            throttle.record(throttled)
        for position in served:
            # Whoever was served goes behind those who were not (KAFKA-12330).
            del self.ready[position]
            self.ready[position] = None
        if self.stale:
            for position in list(self.stale)[:_PARTITIONS_AT_ONCE]:
                if position.partition is not None:
                    lines.append(self._line(position, position.partition))
        self._errors = []
        return self._encode(lines)

    def _is_throttled(self, position: ReplicaPosition) -> bool:
        partition = position.partition
        return partition is not None and self._broker.throttles.leader.concerns(partition.topic, partition.index)

    def _is_in_sync(self, position: ReplicaPosition) -> bool:
        partition = position.partition
        state = None if partition is None else partition.replication
        return state is not None and self.replica in state.isr

    def _read(self, position: ReplicaPosition, budget: int, lines: list[Line], *, is_first: bool) -> int:
        partition = position.partition
        if partition is None or self._table.get(*position.key) is not partition:
            position.detach()
            self._place(position)  # says what is wrong, or goes on in another epoch
            return 0
        log = partition.log
        try:
            if log.failed is not None:
                raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR)
            found = log.read(
                position.fetch_offset,
                max(0, min(position.max_bytes, budget)),
                upper_offset=log.log_end_offset,
                min_one=is_first,
            )
        except ApiError as error:
            self._fail(position, error.code, log.log_start_offset)
            return 0
        if not found.size:
            return 0
        line = self._line(position, partition)
        line.slice = found
        lines.append(line)
        return found.size

    def _line(self, position: ReplicaPosition, partition: Partition) -> Line:
        log, line = partition.log, Line(position)
        line.high_watermark = position.told_high_watermark = log.high_watermark
        line.log_start_offset = position.told_log_start = log.log_start_offset
        self.stale.pop(position, None)
        return line

    def _encode(self, lines: list[Line]) -> list[Part]:
        answer = FetchAnswer(self._version, self.id)
        topics = by_topic(lines)
        answer.begin(len(topics))
        for key, members in topics.items():
            answer.begin_topic(key, len(members))
            answer.add(members)
            answer.end_topic()
        return answer.finish(self._correlation_id)


class ReplicaSessions:
    """By replica: who fetches from us as a follower."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._sessions: dict[int, ReplicaSession] = {}

    def expect(self, partition: Partition) -> None:
        """We lead it from now on: its followers are to name it soon."""
        if partition.replication is None:
            return
        key, until_ms = (partition.topic_id, partition.index), self._broker.clock.monotonic_ms() + _EXPECTING_MS
        for replica in partition.replication.followers:
            session = self._sessions.get(replica)
            if session is not None:
                session.expect(key, until_ms)

    def handle(self, version: int, correlation_id: int, request: FetchRequest) -> Answer | Awaitable[Answer]:
        try:
            session = self._session(version, request)
        except ApiError as error:
            return empty_answer(version, correlation_id, error.code)
        session.begin(version, correlation_id, request)
        by_id = session.by_id
        session.forget(
            (topic.topic_id if by_id else topic.topic.encode(), index)
            for topic in request.forgotten_topics_data
            for index in topic.partitions
        )
        named = _named(request, by_id)
        if len(named) <= _PARTITIONS_AT_ONCE:
            session.take_in(named)
            return self._answer(session, request.max_wait_ms)
        return self._broker.turns.queue(self._handle_in_turns(session, named, request.max_wait_ms))

    def _handle_in_turns(self, session: ReplicaSession, named: list[Named], max_wait_ms: int) -> Steps[Answer]:
        for piece in pieces(named):
            session.take_in(piece)
            yield None
        answer = self._answer(session, max_wait_ms)
        return (yield answer) if isinstance(answer, asyncio.Future) else answer  # type: ignore[return-value]

    def _answer(self, session: ReplicaSession, max_wait_ms: int) -> Answer | Awaitable[Answer]:
        if session.id:
            return session.answer_now_or_later(max_wait_ms)
        # Without a session nobody comes back to what is waited for.
        answer = session.answer_now_or_later(0)
        session.close()
        return answer

    def _session(self, version: int, request: FetchRequest) -> ReplicaSession:
        by_id = version >= _WITH_TOPIC_IDS
        replica, broker_epoch = replica_of(version, request)
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            registered = self._broker.image.brokers.get(replica)
            is_known = registered is not None and registered.epoch == broker_epoch
            if request.session_epoch == FINAL_EPOCH or not is_known:
                return ReplicaSession(self._broker, 0, by_id, replica, broker_epoch)
            self.close(replica)
            session_id = random.randint(1, 0x7FFFFFFF)
            session = ReplicaSession(self._broker, session_id, by_id, replica, broker_epoch)
            self._sessions[replica] = session
            return session
        found = self._sessions.get(replica)
        if found is None or found.id != request.session_id or found.broker_epoch != broker_epoch:
            raise ApiError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if found.epoch != request.session_epoch:
            raise ApiError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if found.by_id != by_id:
            raise ApiError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        found.epoch = 1 if found.epoch == 0x7FFFFFFF else found.epoch + 1
        return found

    def close(self, replica: int) -> None:
        session = self._sessions.pop(replica, None)
        if session is not None:
            session.close()

    @property
    def waiting_count(self) -> int:
        """Fetches of followers that wait for records."""
        return sum(session.is_waiting for session in self._sessions.values())

    def finish_waiting(self) -> None:
        """All that wait are answered with what is there."""
        for session in list(self._sessions.values()):
            session.finish()


def replica_of(version: int, request: FetchRequest) -> tuple[int, int]:
    """The broker that fetches, and its epoch; below 0 it is a consumer."""
    if version >= _WITH_REPLICA_STATE:
        return request.replica_state.replica_id, request.replica_state.replica_epoch
    return request.replica_id, -1


def _named(request: FetchRequest, by_id: bool) -> list[Named]:
    return [
        ((topic.topic_id if by_id else topic.topic.encode(), asked.partition), asked)
        for topic in request.topics
        for asked in topic.partitions
    ]
