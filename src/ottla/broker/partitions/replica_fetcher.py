"""The follower's side of replication: what is led elsewhere is fetched from there and appended unchanged (Kafka's
ReplicaFetcherThread).

One fetcher for each broker that leads something of ours, with all these partitions in one fetch session (KIP-227): a
fetch names the partitions whose position has changed, and the leader holds it back until one of them has records. The
next fetch acknowledges what the last one brought, so it leaves at once. What an answer means for a log is in
`ottla.replication.follower`.

A partition that cannot be fetched leaves the session for a while, longer each time, and at most for
replica.fetch.backoff.ms: mostly one of the two brokers has not heard of an election yet. A new leader epoch is a new
`FollowedPartition`, and is fetched at once.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ottla.broker.cluster.peers import Channel, PeerUnavailable
from ottla.broker.partitions.fetch_sessions import Key
from ottla.broker.partitions.followed_partition import FollowedPartition
from ottla.broker.partitions.replica_frames import FETCH, VERSION, FetchedPartition, fetch_body, read_answer
from ottla.broker.partitions.replica_throttles import HELD_BACK_MS
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.steps import Steps
from ottla.protocol.codec import MalformedMessage
from ottla.replication.follower import Step, judge, truncation

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.storage.flushing.log_flush import FlushFuture

logger = logging.getLogger("ottla.broker")

_FIRST_BACK_OFF_MS = 10
# Errors of one of two brokers that has not heard of an election yet: nothing to write home about.
_ELECTIONS = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


class ReplicaFetcher:
    def __init__(self, broker: Broker, source: int) -> None:
        self._broker = broker
        self._source = source
        self._session_id = 0
        self._session_epoch = 0
        # All that is fetched, or will be when its time has come; and of these what the next fetch names or forgets.
        self._followed: dict[Key, FollowedPartition] = {}
        self._to_name: dict[Key, FollowedPartition] = {}
        self._to_forget: set[Key] = set()
        # What the leader knows of.
        self._in_session: set[Key] = set()
        # The answer that is worked on has cut a log below what was synced.
        self._is_cut_back = False
        self._failures = 0
        self._sleeping: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def is_idle(self) -> bool:
        return not self._followed

    def add(self, followed: FollowedPartition) -> None:
        """From now on, and at once; also in the place of one of an older epoch."""
        self._followed[followed.key] = followed
        self._name(followed)
        self._failures = 0
        self._wake()
        if self._task is None:
            self._task = self._broker.loop.create_task(self._run(), name=f"fetch from {self._source}")

    def remove(self, followed: FollowedPartition) -> None:
        if self._followed.get(followed.key) is followed:
            del self._followed[followed.key]
            self._leave_session(followed.key)

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    # --- the conversation

    async def _run(self) -> None:
        broker, config = self._broker, self._broker.config
        while True:
            if not self._to_name and not self._to_forget and not self._in_session:
                await self._sleep(None)  # the rest waits for its time; a fetch of nothing would be answered at once
                continue
            timeout_ms = config.replica_socket_timeout_ms
            try:
                await self._cut_at_holes()
                await self._sync_what_is_due()
                if not self._to_name and not self._to_forget and not self._in_session:
                    continue
                body = self._request()
                answer = await broker.peers.exchange(
                    self._source, FETCH, VERSION, body, Channel.REPLICATION, timeout_ms=timeout_ms
                )
                working = broker.turns.start(self._take(answer))
                if working is not None:
                    await working
            except PeerUnavailable as error:
                self._forget_session()
                await self._back_off(str(error))
            except (MalformedMessage, struct.error, IndexError) as error:
                self._forget_session()
                await self._back_off(f"an answer that cannot be read: {error}")
            except Exception:
                logger.exception("fetching from a leader failed, will try again", extra={"leader": self._source})
                self._forget_session()
                await self._back_off("see the error before")

    async def _back_off(self, why: str) -> None:
        delay_ms = min(_FIRST_BACK_OFF_MS << min(self._failures, 16), self._broker.config.replica_fetch_backoff_ms)
        self._failures += 1
        if self._failures == 1:
            logger.info("cannot fetch from a leader", extra={"leader": self._source, "why": why})
        await self._sleep(delay_ms)

    async def _sleep(self, delay_ms: float | None) -> None:
        """Until the time is over, or something is new."""
        self._sleeping = sleeping = self._broker.loop.create_future()
        timer = None if delay_ms is None else self._broker.call_later(delay_ms, self._wake)
        try:
            await sleeping
        finally:
            self._sleeping = None
            if timer is not None:
                timer.cancel()

    def _wake(self) -> None:
        if self._sleeping is not None and not self._sleeping.done():
            self._sleeping.set_result(None)

    # --- the session

    def _name(self, followed: FollowedPartition) -> None:
        self._to_name[followed.key] = followed
        self._to_forget.discard(followed.key)

    def _leave_session(self, key: Key) -> None:
        self._to_name.pop(key, None)
        if key in self._in_session:
            self._to_forget.add(key)

    def _forget_session(self) -> None:
        """Begin anew: all is named again, except what waits for its time."""
        self._session_id = self._session_epoch = 0
        for key in self._in_session:
            followed = self._followed.get(key)
            if followed is not None and key not in self._to_forget:
                self._to_name[key] = followed
        self._in_session.clear()
        self._to_forget.clear()
        for followed in self._followed.values():
            followed.asked_offset = -1

    async def _cut_at_holes(self) -> None:
        """What lies behind records that are missing is fetched again with them."""
        torn = [followed for followed in self._to_name.values() if followed.log.hole is not None]
        for followed in torn:
            try:
                followed.cut_at_hole(self._broker.clock.now_ms())
            except ApiError as failure:
                self._set_aside(followed, failure.code, failure.message or failure.code.name)
        if torn:
            # Or a start after a power cut would miss what was cut off.
            await asyncio.gather(*map(asyncio.wrap_future, self._broker.logs.checkpoint()))

    async def _sync_what_is_due(self) -> None:
        """What a fetch acknowledges is as much on disk as the topic asks for, whichever leader it came from. A
        partition that cannot be synced is not fetched until it can."""
        while due := [followed for followed in self._to_name.values() if followed.log.flush_due]:
            syncing: list[tuple[FollowedPartition, FlushFuture]] = []
            for followed in due:
                try:
                    syncing.append((followed, followed.log.flush_async()))
                except ApiError as failure:
                    self._set_aside(followed, failure.code, failure.message or failure.code.name)
            for followed, synced in syncing:
                try:
                    await synced
                except ApiError as failure:
                    if self._followed.get(followed.key) is followed:
                        self._set_aside(followed, failure.code, failure.message or failure.code.name)

    def _request(self) -> bytearray:
        config = self._broker.config
        named, forgotten = self._to_name, self._to_forget
        self._to_name, self._to_forget = {}, set()
        if self._broker.throttles.follower.is_on:
            self._hold_back(named, forgotten)
        for followed in named.values():
            followed.asked_offset = followed.log.log_end_offset
        body = fetch_body(
            max_wait_ms=config.replica_fetch_wait_max_ms,
            min_bytes=config.replica_fetch_min_bytes,
            max_bytes=config.replica_fetch_response_max_bytes,
            partition_max_bytes=config.replica_fetch_max_bytes,
            session_id=self._session_id,
            session_epoch=self._session_epoch,
            named=named.values(),
            forgotten=forgotten,
            replica=self._broker.node_id,
            replica_epoch=self._broker.broker_epoch,
        )
        self._in_session -= forgotten
        self._in_session |= named.keys()
        return body

    def _hold_back(self, named: dict[Key, FollowedPartition], forgotten: set[Key]) -> None:
        """Throttled replicas that are not in sync are left out while there is no room for them."""
        throttle = self._broker.throttles.follower
        if not throttle.is_exceeded():
            return
        for key, followed in list(named.items()):
            if not followed.is_caught_up and throttle.concerns(followed.topic, followed.index):
                del named[key]
                if key in self._in_session:
                    forgotten.add(key)
                self._name_later(followed, HELD_BACK_MS)

    # --- an answer

    def _take(self, body: memoryview) -> Steps[None]:
        error, session_id, fetched = read_answer(body)
        if error:
            # Another session is begun at once; anything else is no session's fault.
            self._forget_session()
            if error not in (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH):
                raise PeerUnavailable(f"the leader answers with {ErrorCode(error).name}")
            return
        if session_id == 0:
            # It does not know our registration yet.
            raise PeerUnavailable("the leader gives us no session")
        self._failures = 0
        self._session_id = session_id
        self._session_epoch = 1 if self._session_epoch == 0x7FFFFFFF else self._session_epoch + 1
        self._is_cut_back = False
        for partition in fetched:
            followed = self._followed.get(partition.key)
            if followed is None or followed.asked_offset < 0:
                continue  # it was stopped meanwhile, or is of a later epoch than the fetch
            try:
                yield from self._take_one(followed, partition)
            except ApiError as failure:
                self._set_aside(followed, failure.code, failure.message or failure.code.name)
        if self._is_cut_back:
            # Or a start after a power cut would take what was cut off for what was synced.
            for written in self._broker.logs.checkpoint():
                yield asyncio.wrap_future(written)

    def _take_one(self, followed: FollowedPartition, fetched: FetchedPartition) -> Steps[None]:
        log = followed.log
        if fetched.error:
            self._on_error(followed, ErrorCode(fetched.error), fetched.log_start_offset)
            return
        if log.log_end_offset != followed.asked_offset:
            self._name(followed)  # cut meanwhile
            return
        if fetched.diverging is not None:
            epochs = log.leader_epochs
            verdict = truncation(
                *fetched.diverging, lambda epoch: epochs.end_offset_for(epoch, log.log_end_offset), log.log_end_offset
            )
            if verdict.step is Step.TRUNCATE:
                self._is_cut_back = self._is_cut_back or verdict.offset < log.recovery_point
                followed.truncate_to(verdict.offset, self._broker.clock.now_ms())
                self._name(followed)
            else:
                self._set_aside(followed, ErrorCode.UNKNOWN_SERVER_ERROR, "the leader's epochs make no sense")
            return
        records = fetched.records
        if records is not None:
            throttle = self._broker.throttles.follower
            if throttle.is_on and throttle.concerns(followed.topic, followed.index):
                throttle.record(len(records))
            now_ms = self._broker.clock.now_ms()
            followed.begin_with(records, now_ms)
            at, size = 0, len(records)
            while True:
                taken = log.append_fetched(records[at:] if at else records, now_ms)
                at += taken
                if taken == 0 or at >= size:
                    break
                yield None
                if not followed.is_current or followed.log is not log:
                    return
            self._name(followed)
        followed.failures = 0
        if followed.learn(fetched.high_watermark, fetched.log_start_offset):
            self._name(followed)  # the leader waits to hear of it

    def _on_error(self, followed: FollowedPartition, code: ErrorCode, leader_log_start: int) -> None:
        verdict = judge(code, leader_log_start, followed.log.log_end_offset)
        if verdict.step is Step.RESTART:
            followed.restart_at(verdict.offset, self._broker.clock.now_ms())
            self._name(followed)
        else:
            self._set_aside(followed, code, code.name)

    def _set_aside(self, followed: FollowedPartition, code: ErrorCode, why: str) -> None:
        """Out of the session until its time has come."""
        self._leave_session(followed.key)
        delay_ms = min(_FIRST_BACK_OFF_MS << min(followed.failures, 16), self._broker.config.replica_fetch_backoff_ms)
        followed.failures += 1
        if code not in _ELECTIONS and followed.failures == 1:
            what = {"partition": f"{followed.topic}-{followed.index}", "leader": self._source, "why": why}
            logger.warning("a replica cannot be fetched, will try again", extra=what)
        self._name_later(followed, delay_ms)

    def _name_later(self, followed: FollowedPartition, delay_ms: float) -> None:
        followed.asked_offset = -1

        def again() -> None:
            if self._followed.get(followed.key) is followed:
                self._name(followed)
                self._wake()

        self._broker.call_later(delay_ms, again)


class ReplicaFetchers:
    """Of all brokers that lead something of ours."""

    def __init__(self, make: Callable[[int], ReplicaFetcher]) -> None:
        self._make = make
        self._fetchers: dict[int, ReplicaFetcher] = {}

    def follow(self, followed: FollowedPartition) -> None:
        fetcher = self._fetchers.get(followed.leader)
        if fetcher is None:
            fetcher = self._fetchers[followed.leader] = self._make(followed.leader)
        fetcher.add(followed)

    def stop(self, followed: FollowedPartition) -> None:
        followed.stop()
        fetcher = self._fetchers.get(followed.leader)
        if fetcher is not None:
            fetcher.remove(followed)

    async def close(self) -> None:
        fetchers: Iterable[ReplicaFetcher] = list(self._fetchers.values())
        self._fetchers.clear()
        for fetcher in fetchers:
            await fetcher.close()
