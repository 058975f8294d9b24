"""Fetch v4-18. Answers with slices of log files; parks until `min_bytes` are there or `max_wait_ms` have passed.

Readers never see past the high watermark, and with `read_committed` never past the last stable offset. Both are read
once for each partition and answer, or aborted data could leak between two looks (KAFKA-9807). A replica that follows is
read from v11 on, as far as it knows what is committed, and a leader may send a consumer to one in its own rack
(KIP-392). Fetches of other brokers take another way: `partitions/replica_sessions.py`.

One that waits (Kafka's DelayedFetch, in its purgatory) is a `Fetch` that watches its partitions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING

from ottla.broker.access.access import Asker
from ottla.broker.broker import Broker
from ottla.broker.chores.timers import Handle
from ottla.broker.context import RequestContext
from ottla.broker.partitions.fetch_answer import FetchAnswer, Line, by_topic, empty_answer, unheard
from ottla.broker.partitions.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, FetchPartition, FetchSession
from ottla.broker.partitions.followed_partition import FollowedPartition
from ottla.broker.partitions.leader_hints import endpoints_of, leader_hint
from ottla.broker.partitions.partition import EVERYTHING, Partition
from ottla.broker.partitions.replica_selection import preferred_replica
from ottla.broker.partitions.replica_sessions import replica_of
from ottla.broker.quotas.throttling import FetchQuota
from ottla.common.errors import ApiError, CloseConnection, ErrorCode
from ottla.common.steps import Steps, in_pieces, pieces
from ottla.metadata.acls import Operation
from ottla.protocol import codec
from ottla.protocol.codec import MalformedMessage
from ottla.protocol.framing import kept
from ottla.protocol.messages import FetchRequest

if TYPE_CHECKING:
    from ottla.server.client_end import Answer
    from ottla.server.output_queue import Part

# A request of this size, or a session with so many partitions, is worked on in turns.
_LARGE_BYTES = 16 * 1024
_PARTITIONS_AT_ONCE = 1_000

_FETCH = 1
_WITH_SESSIONS = 7
_WITH_TOPIC_IDS = 13
_FROM_FOLLOWERS = 11


def handle_frame(
    broker: Broker, context: RequestContext, frame: memoryview, position: int
) -> Answer | Awaitable[Answer]:
    version = context.version
    ask = None if broker.access is None else broker.access.of(context)
    quota = None if broker.throttling is None else broker.throttling.fetch_quota(context)
    if len(frame) > _LARGE_BYTES:
        return _fetch_in_turns(broker, context, kept(frame), position, ask, quota)
    request: FetchRequest = codec.decode("FetchRequest", version, frame, position)
    if replica_of(version, request)[0] >= 0:
        if ask is not None and not ask.may_cluster(Operation.CLUSTER_ACTION):
            return empty_answer(version, context.correlation_id, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        context.is_of_broker = True
        return broker.replica_sessions.handle(version, context.correlation_id, request)
    try:
        asked = _asked(version, request)
        fetch = Fetch(broker, version, context.correlation_id, context.listener, request, asked, ask, quota)
    except ApiError as error:
        return empty_answer(version, context.correlation_id, error.code)
    return fetch.answer_now_or_later(request.max_wait_ms)


def _fetch_in_turns(
    broker: Broker,
    context: RequestContext,
    frame: memoryview,
    position: int,
    ask: Asker | None,
    quota: FetchQuota | None,
) -> asyncio.Future[Answer]:
    """A fetch that names thousands of partitions. It can be given up at any time, as any that waits."""
    version, correlation_id, listener = context.version, context.correlation_id, context.listener
    outcome: asyncio.Future[Answer] = broker.loop.create_future()

    def begin() -> Steps[None]:
        try:
            request = yield from codec.decode_in_steps("FetchRequest", version, frame, position)
            if replica_of(version, request)[0] >= 0:
                if ask is not None and not ask.may_cluster(Operation.CLUSTER_ACTION):
                    raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
                context.is_of_broker = True
                answer = broker.replica_sessions.handle(version, correlation_id, request)
                _settle(outcome, (yield answer) if isinstance(answer, Awaitable) else answer)
                return
            asked = yield from _asked_in_steps(version, request)
            if not outcome.done():
                fetch = Fetch(broker, version, correlation_id, listener, request, asked, ask, quota)
                fetch.answer_in_turns(outcome, request.max_wait_ms)
        except ApiError as error:
            _settle(outcome, empty_answer(version, correlation_id, error.code))
        except MalformedMessage as error:
            _fail(outcome, CloseConnection(str(error)))
        except Exception as error:
            _fail(outcome, error)

    broker.in_turns(begin())
    return outcome


def _settle(outcome: asyncio.Future[Answer], answer: Answer) -> None:
    if not outcome.done():
        outcome.set_result(answer)


def _fail(outcome: asyncio.Future[Answer], error: Exception) -> None:
    if not outcome.done():
        outcome.set_exception(error)


class _Look:
    """What a look at all partitions found."""

    __slots__ = ("bytes", "counts", "has_failed", "lines")

    def __init__(self) -> None:
        self.lines: list[Line] = []
        # How much would be sent, and how much counts towards `min_bytes`.
        self.bytes = 0
        self.counts = 0
        self.has_failed = False


class Fetch:
    """One fetch request while it lives, from the first look at the logs to the answer."""

    __slots__ = (
        "_appended_meanwhile",
        "_ask",
        "_broker",
        "_correlation_id",
        "_deadline",
        "_future",
        "_is_large",
        "_is_looking",
        "_is_over",
        "_isolated",
        "_listener",
        "_max_bytes",
        "_min_bytes",
        "_missing",
        "_partitions",
        "_quota",
        "_rack",
        "_session",
        "_table",
        "_version",
        "_wake_scheduled",
        "_watched",
    )

    def __init__(
        self,
        broker: Broker,
        version: int,
        correlation_id: int,
        listener: str,
        request: FetchRequest,
        asked: list[FetchPartition],
        ask: Asker | None = None,
        quota: FetchQuota | None = None,
    ) -> None:
        self._broker = broker
        self._ask = ask
        self._quota = quota
        self._version = version
        self._table = broker.partitions.by_id if version >= _WITH_TOPIC_IDS else broker.partitions.by_name
        self._correlation_id = correlation_id
        self._listener = listener
        # Where a consumer is, if it may be sent to somebody nearer.
        self._rack = request.rack_id if broker.config.replica_selector_class else ""
        self._isolated = request.isolation_level == 1
        self._max_bytes = min(request.max_bytes, broker.fetch_bytes_max)
        if quota is not None and quota.bytes_max is not None:
            self._max_bytes = min(self._max_bytes, quota.bytes_max)
        self._min_bytes = min(request.min_bytes, self._max_bytes)
        self._session, self._partitions = _resolve_session(broker, version, request, asked)
        self._missing = 0
        # A look at so many partitions takes turns, and more may be appended meanwhile.
        self._is_large = len(self._partitions) > _PARTITIONS_AT_ONCE
        self._is_looking = False
        self._is_over = False
        self._appended_meanwhile = 0
        self._watched: list[Partition | FollowedPartition] = []
        self._wake_scheduled = False
        self._future: asyncio.Future[Answer] | None = None
        self._deadline: Handle | None = None

    # --- when to answer

    def answer_now_or_later(self, max_wait_ms: int) -> Answer | Awaitable[Answer]:
        if self._is_large:
            promised: asyncio.Future[Answer] = self._broker.loop.create_future()
            self.answer_in_turns(promised, max_wait_ms)
            return promised
        look = self._look()
        if look.counts >= self._min_bytes or look.has_failed or max_wait_ms <= 0 or not self._partitions:
            return self._answer(look)
        self._missing = self._min_bytes - look.counts
        future: asyncio.Future[Answer] = self._broker.loop.create_future()
        self._wait(future, max_wait_ms)
        return future

    def answer_in_turns(self, future: asyncio.Future[Answer], max_wait_ms: int) -> None:
        self._is_large = True
        self._wait(future, max_wait_ms)
        self._look_again(is_over=max_wait_ms <= 0 or not self._partitions)

    def _wait(self, future: asyncio.Future[Answer], max_wait_ms: int) -> None:
        self._future = future
        self._deadline = self._broker.call_later(max_wait_ms, self._finish)
        self._broker.parked_fetches[id(self)] = self._finish
        future.add_done_callback(self._on_done)
        found = (self._replica(*asked.key) for asked in self._partitions)
        # A partition that is named twice is watched once: its size counts once too.
        self._watched = list(dict.fromkeys(replica for replica in found if replica is not None))
        for partition in self._watched:
            partition.watch(self._on_append)

    def _on_append(self, size: int) -> None:
        """Some watched partition has grown by `size` readable bytes (or is gone: then `size` is huge)."""
        if self._is_looking:
            self._appended_meanwhile += size
            return
        self._missing -= size
        if self._missing <= 0 and not self._wake_scheduled:
            self._wake_scheduled = True
            self._broker.loop.call_soon(self._on_wake)

    def _on_wake(self) -> None:
        self._wake_scheduled = False
        self._look_again()

    def _finish(self) -> None:
        self._look_again(is_over=True)

    def _look_again(self, *, is_over: bool = False) -> None:
        """Answer if there is enough now, or if the waiting is over."""
        if self._future is None or self._future.done():
            return
        if self._is_large:
            self._is_over = self._is_over or is_over
            if not self._is_looking:
                self._is_looking = True
                self._broker.in_turns(self._look_and_answer(self._future))
            return
        try:
            look = self._look()
            if is_over or look.has_failed or look.counts >= self._min_bytes:
                self._future.set_result(self._answer(look))
            else:
                self._missing = self._min_bytes - look.counts
        except Exception as error:
            self._future.set_exception(error)  # else its client would wait for ever

    def _look_and_answer(self, future: asyncio.Future[Answer]) -> Steps[None]:
        """As `_look_again`, and again if as much was appended meanwhile as was missing."""
        try:
            while not future.done():
                self._appended_meanwhile = 0
                look = yield from self._look_in_steps()
                if self._is_over or look.has_failed or look.counts >= self._min_bytes:
                    throttled = self._throttled(look)
                    answer = throttled or (yield from self._encode_in_steps(look.lines))
                    _settle(future, answer)
                    return
                self._missing = self._min_bytes - look.counts - self._appended_meanwhile
                if self._missing > 0 and not self._is_over:
                    return
        except Exception as error:
            _fail(future, error)  # else its client would wait for ever
        finally:
            self._is_looking = False

    def _on_done(self, _: asyncio.Future[Answer]) -> None:
        self._broker.parked_fetches.pop(id(self), None)
        if self._deadline is not None:
            self._deadline.cancel()
        for partition in self._watched:
            partition.unwatch(self._on_append)
        self._watched.clear()

    # --- what is there

    def _look(self) -> _Look:
        """Read every partition once."""
        look = _Look()
        self._look_at(self._partitions, look)
        return look

    def _look_in_steps(self) -> Steps[_Look]:
        look = _Look()
        for piece in pieces(self._partitions):
            self._look_at(piece, look)
            yield None
        return look

    def _look_at(self, partitions: Sequence[FetchPartition], look: _Look) -> None:
        for asked in partitions:
            line = self._read(asked, self._max_bytes - look.bytes, look.bytes == 0)
            look.lines.append(line)
            look.counts += line.counts
            if line.slice is not None:
                look.bytes += line.slice.size
            elif line.error:
                look.has_failed = True

    def _read(self, asked: FetchPartition, budget: int, first: bool) -> Line:
        if self._ask is not None:
            name = self._table.name_of(asked.key[0])
            if name is not None and not self._ask.may_topic(Operation.READ, name):
                return Line(asked, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        replica = self._replica(*asked.key)
        if replica is None:
            return self._failed(asked, self._table.error_for(*asked.key))
        epoch = asked.leader_epoch
        if epoch != -1 and epoch != replica.leader_epoch:
            is_old = epoch < replica.leader_epoch
            return self._failed(asked, ErrorCode.FENCED_LEADER_EPOCH if is_old else ErrorCode.UNKNOWN_LEADER_EPOCH)
        log = replica.log
        if log.failed is not None:
            return Line(asked, ErrorCode.KAFKA_STORAGE_ERROR)
        line = Line(asked)
        line.high_watermark = log.high_watermark
        line.last_stable_offset = log.last_stable_offset
        line.log_start_offset = log.log_start_offset
        upper = line.last_stable_offset if self._isolated else line.high_watermark
        offset = asked.fetch_offset
        if self._isolated:
            line.aborted = []
        if self._rack and isinstance(replica, Partition):
            line.preferred_replica = preferred_replica(self._broker, replica, self._rack, offset)
            if line.preferred_replica >= 0:
                line.counts = EVERYTHING  # whoever is to ask somebody else need not wait here
                return line
        if offset == upper:
            return line
        if offset > log.log_end_offset and isinstance(replica, FollowedPartition):
            return Line(asked, ErrorCode.OFFSET_NOT_AVAILABLE)  # it may be here soon
        if offset < line.log_start_offset or offset > log.log_end_offset:
            return Line(asked, ErrorCode.OFFSET_OUT_OF_RANGE)
        if offset > upper or (budget <= 0 and not first):
            return line
        try:
            found = log.read(offset, max(0, min(asked.max_bytes, budget)), upper_offset=upper, min_one=first)
            if found.size and self._isolated:
                line.aborted = log.aborted_transactions(offset, min(upper, log.upper_offset_of(found)))
        except ApiError as error:
            return Line(asked, error.code)
        line.counts = EVERYTHING if found.goes_on else max(found.size, min(found.available, asked.max_bytes))
        if found.size:
            line.slice = found
        return line

    def _replica(self, key: bytes, index: int) -> Partition | FollowedPartition | None:
        found = self._table.get(key, index)
        if found is None and self._version >= _FROM_FOLLOWERS:
            return self._table.get_followed(key, index)
        return found

    def _failed(self, asked: FetchPartition, error: ErrorCode) -> Line:
        line = Line(asked, error)
        line.current_leader = leader_hint(self._table, error, *asked.key)
        return line

    # --- the answer

    def _answer(self, look: _Look) -> Answer:
        return self._throttled(look) or self._encode(look.lines)

    def _throttled(self, look: _Look) -> bytes | None:
        """Instead of records, to a client that has used too much: what it was told before still holds."""
        if self._quota is None:
            return None
        wait_ms = self._quota.wait_ms(look.bytes, len(look.lines))
        if not wait_ms:
            return None
        session_id = self._session.id if self._session is not None else 0
        return empty_answer(self._version, self._correlation_id, ErrorCode.NONE, session_id, wait_ms)

    def _begin(self, lines: list[Line]) -> FetchAnswer:
        answer = FetchAnswer(self._version, self._session.id if self._session is not None else 0)
        leaders = [line.current_leader[0] for line in lines if line.current_leader is not None]
        if leaders:
            answer.endpoints = endpoints_of(self._broker, leaders, self._listener)
        return answer

    def _count(self, lines: Sequence[Line]) -> None:
        broker = self._broker
        for line in lines:
            if line.slice is None and not line.error:
                continue
            replica = self._replica(*line.asked.key)
            if line.error and broker.observer is not None:
                broker.observer.failed(_FETCH, line.error)
            if replica is None:
                continue
            traffic = broker.traffic[replica.topic]
            if line.slice is not None:
                traffic.bytes_out += line.slice.size
            else:
                traffic.fetches_failed += 1

    def _encode(self, lines: list[Line]) -> list[Part]:
        session = self._session
        if session is not None:
            lines = unheard(session, lines)
        answer = self._begin(lines)
        topics = by_topic(lines)
        answer.begin(len(topics))
        for key, members in topics.items():
            answer.begin_topic(key, len(members))
            answer.add(members)
            self._count(members)
            answer.end_topic()
        return answer.finish(self._correlation_id)

    def _encode_in_steps(self, lines: list[Line]) -> Steps[list[Part]]:
        session = self._session
        if session is not None:
            lines = yield from in_pieces(lines, lambda piece: unheard(session, piece))
        answer = self._begin(lines)
        topics = by_topic(lines)
        answer.begin(len(topics))
        for key, members in topics.items():
            answer.begin_topic(key, len(members))
            for piece in pieces(members):
                answer.add(piece)
                self._count(piece)
                yield None
            answer.end_topic()
        return answer.finish(self._correlation_id)


# --- sessions


def _asked(version: int, request: FetchRequest) -> list[FetchPartition]:
    return [asked for topic in request.topics for asked in _asked_of(_key(version, topic), topic.partitions)]


def _asked_in_steps(version: int, request: FetchRequest) -> Steps[list[FetchPartition]]:
    asked: list[FetchPartition] = []
    for topic in request.topics:
        key = _key(version, topic)
        for piece in pieces(topic.partitions):
            asked += _asked_of(key, piece)
            yield None
    return asked


def _key(version: int, topic: FetchRequest.FetchTopic) -> bytes:
    return topic.topic_id if version >= _WITH_TOPIC_IDS else topic.topic.encode()


def _asked_of(key: bytes, partitions: Sequence[FetchRequest.FetchPartition]) -> list[FetchPartition]:
    return [
        FetchPartition(
            (key, partition.partition),
            partition.fetch_offset,
            partition.partition_max_bytes,
            partition.current_leader_epoch,
        )
        for partition in partitions
    ]


def _resolve_session(
    broker: Broker, version: int, request: FetchRequest, asked: list[FetchPartition]
) -> tuple[FetchSession | None, list[FetchPartition]]:
    """The session this fetch belongs to (None: there is none) and the partitions to read, in order."""
    by_id = version >= _WITH_TOPIC_IDS
    sessions = broker.fetch_sessions
    if version < _WITH_SESSIONS:
        return None, asked
    if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
        if request.session_id:
            sessions.close(request.session_id)
        if request.session_epoch == FINAL_EPOCH:
            return None, asked
        return sessions.open(by_id, asked), asked
    session = sessions.resume(request.session_id, request.session_epoch, by_id)
    forgotten = [
        (topic.topic_id if by_id else topic.topic.encode(), index)
        for topic in request.forgotten_topics_data
        for index in topic.partitions
    ]
    sessions.update(session, asked, forgotten)
    return session, list(session.partitions.values())
