"""Incremental fetch sessions (KIP-227): a client names its partitions once, then only what changes.

A session remembers for each partition what was asked and what was last told. Partitions that gave data move to the end
of the session's order, so that none starves when an answer is full (KAFKA-12330).
"""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Iterable, Sequence

from ottla.common.clock import Clock
from ottla.common.errors import ApiError, ErrorCode

FINAL_EPOCH = -1
INITIAL_EPOCH = 0

Key = tuple[bytes, int]  # topic (name or id, as the request's version has it) and partition


class FetchPartition:
    """One partition of a fetch: what is asked, and what the client last heard."""

    __slots__ = ("fetch_offset", "key", "leader_epoch", "max_bytes", "told_high_watermark", "told_log_start")

    def __init__(self, key: Key, fetch_offset: int, max_bytes: int, leader_epoch: int) -> None:
        self.key = key
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.leader_epoch = leader_epoch
        self.told_high_watermark = -1
        self.told_log_start = -1


class FetchSession:
    __slots__ = ("by_id", "epoch", "id", "last_used_ms", "partitions")

    def __init__(self, session_id: int, by_id: bool, partitions: OrderedDict[Key, FetchPartition]) -> None:
        self.id = session_id
        self.by_id = by_id
        self.epoch = 1
        self.partitions = partitions
        self.last_used_ms = 0

    def update(self, asked: Iterable[FetchPartition], forgotten: Iterable[Key]) -> None:
        for wanted in asked:
            known = self.partitions.get(wanted.key)
            if known is None:
                self.partitions[wanted.key] = wanted
            else:
                known.fetch_offset = wanted.fetch_offset
                known.max_bytes = wanted.max_bytes
                known.leader_epoch = wanted.leader_epoch
        for key in forgotten:
            self.partitions.pop(key, None)


class FetchSessions:
    """All sessions of a broker, at most `slots` of them; the one longest unused gives way after two minutes.

    A session costs memory by its partitions, and a client may name any: all sessions together have at most
    `PARTITIONS_MAX`. A client whose session would exceed that goes on with full fetches.
    """

    EVICTION_MS = 120_000
    PARTITIONS_MAX = 200_000

    def __init__(self, slots: int, clock: Clock) -> None:
        self._slots = slots
        self._clock = clock
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()
        self._partitions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def resume(self, session_id: int, epoch: int, by_id: bool) -> FetchSession:
        session = self._sessions.get(session_id)
        if session is None:
            raise ApiError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            raise ApiError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.by_id != by_id:
            raise ApiError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.epoch = 1 if epoch == 0x7FFFFFFF else epoch + 1
        session.last_used_ms = self._clock.monotonic_ms()
        self._sessions.move_to_end(session_id)
        return session

    def update(self, session: FetchSession, asked: Sequence[FetchPartition], forgotten: Iterable[Key]) -> None:
        """Take in what an incremental fetch changes. Raises ApiError when the session grows too large."""
        before = len(session.partitions)
        session.update(asked, forgotten)
        self._partitions += len(session.partitions) - before
        if self._partitions > self.PARTITIONS_MAX and len(session.partitions) > before:
            self.close(session.id)
            raise ApiError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)

    def close(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._partitions -= len(session.partitions)

    def open(self, by_id: bool, partitions: Sequence[FetchPartition]) -> FetchSession | None:
        """A new session, or None when there is no room: the client then goes on with full fetches."""
        while len(self._sessions) >= self._slots or self._partitions + len(partitions) > self.PARTITIONS_MAX:
            if not self._evict():
                return None
        while True:
            session_id = random.randint(1, 0x7FFFFFFF)
            if session_id not in self._sessions:
                break
        session = FetchSession(session_id, by_id, OrderedDict((partition.key, partition) for partition in partitions))
        session.last_used_ms = self._clock.monotonic_ms()
        self._sessions[session_id] = session
        self._partitions += len(session.partitions)
        return session

    def _evict(self) -> bool:
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        if self._clock.monotonic_ms() - oldest.last_used_ms < self.EVICTION_MS:
            return False
        self.close(oldest.id)
        return True
