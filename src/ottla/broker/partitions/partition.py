"""A partition this broker leads: its log, the rules for writing to it, when a write is committed, and who waits for it.

Everything that is written goes through `append`: records of producers, of coordinators, and markers of transactions.
When it is committed is said in one place, too, `_commit`: with one replica once it is as much on disk as the topic asks
for, else once all in-sync replicas have it (`replication`, the rules are in `ottla.replication.leader`). The short cut
of both is `append_next`, which spares the calls where a topic `takes_plain_batches`: there nothing is to be waited for
but other replicas. Kafka's purgatory of produces is here as well: who waits is in the partition (`when_committed`).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol

from ottla.broker.partitions.readers import EVERYTHING, Readers, Watcher
from ottla.broker.partitions.traffic import TopicTraffic
from ottla.common.errors import ApiError, ErrorCode
from ottla.metadata.image import TopicImage
from ottla.records.compression import Codec
from ottla.records.validate import HeaderFields, Rules
from ottla.replication.leader import UNKNOWN, LeaderState
from ottla.storage.log import Log
from ottla.storage.log_config import LONG_MAX, LogConfig
from ottla.storage.results import AppendResult, Origin

__all__ = ["EVERYTHING", "Committed", "Partition", "ReplicaFeed", "Watcher"]

logger = logging.getLogger("ottla.broker")

# After a flush that failed: the disk is full, or there are no file descriptors.
_FLUSH_AGAIN_S = 0.1

# Called once what was waited for is committed, or with why it cannot be.
Committed = Callable[[Exception | None], None]
Data = memoryview | bytearray | bytes


class ReplicaFeed(Protocol):
    """A follower's place in this partition, of the session through which it fetches."""

    def on_append(self) -> None:
        """The log is longer."""

    def on_watermark(self) -> None:
        """The high watermark has moved."""

    def on_log_start(self) -> None:
        """So has the start of the log, and somebody waits for followers to know."""

    def on_isr(self) -> None:
        """Others are in sync than before."""


class _Waiting(NamedTuple):
    end_offset: int
    done: Committed
    # By the loop's clock; None: however long it takes.
    deadline: float | None


class Partition(Readers):
    __slots__ = (
        "_deadline",
        "_flushing",
        "_own_end",
        "_resigned",
        "_uncommitted_bytes",
        "_waiting",
        "_waiting_for_deletion",
        "_waiting_for_disk",
        "config",
        "feeds",
        "index",
        "is_internal",
        "leader_epoch",
        "log",
        "replication",
        "rules",
        "takes_plain_batches",
        "topic",
        "topic_id",
        "traffic",
    )

    def __init__(
        self,
        topic: TopicImage,
        index: int,
        log: Log,
        config: LogConfig,
        replication: LeaderState | None = None,
        traffic: TopicTraffic | None = None,
        rules: Rules | None = None,
    ) -> None:
        """`replication` is for a partition with more than one replica, `traffic` is that of its topic, and so are
        `rules`, of `config`: thousands of partitions that begin at once share them."""
        super().__init__()
        self.traffic = traffic or TopicTraffic()
        self.topic = topic.name
        self.topic_id = topic.id
        self.index = index
        self.is_internal = topic.is_internal
        self.leader_epoch = topic.partitions[index].leader_epoch
        self.log = log
        self.replication = replication
        # Where followers fetch: told of every append.
        self.feeds: dict[ReplicaFeed, None] = {}
        # Who is told when what is below an offset is committed, in the order in which they came.
        self._waiting: deque[_Waiting] = deque()
        self._deadline: asyncio.TimerHandle | None = None
        self._uncommitted_bytes = 0
        self._flushing: asyncio.Task[None] | None = None
        # With replicas: how far our own log counts, and who waits for no more than that.
        self._own_end = UNKNOWN
        self._waiting_for_disk: list[tuple[int, asyncio.Future[None]]] = []
        # Who waits until no live replica has records below an offset.
        self._waiting_for_deletion: list[tuple[int, Callable[[int], bool], asyncio.Future[int]]] = []
        self._resigned: ApiError | None = None
        self.set_config(config, rules)
        self._own_end = self._synced_end()

    def __repr__(self) -> str:
        return f"Partition({self.topic}-{self.index}, epoch {self.leader_epoch})"

    def replace_log(self, log: Log) -> None:
        """The same records in another log directory."""
        self.log = log
        log.leader_epochs.assign(self.leader_epoch, log.log_end_offset)
        log.set_config(self.config)

    def set_config(self, config: LogConfig, rules: Rules | None = None) -> None:
        self.config = config
        self.log.set_config(config)
        self.rules = rules or rules_of(config)
        state = self.replication
        if state is not None:
            state.min_insync = min(config.min_insync_replicas, len(state.replicas))
        self._look_at_replicas()

    def _look_at_replicas(self) -> None:
        """After a change of the settings or of the in-sync replicas."""
        state, config = self.replication, self.config
        has_enough = config.min_insync_replicas <= 1 if state is None else not state.is_under_min_isr
        # A usual batch can be written with no further question.
        self.takes_plain_batches = (
            not self.is_internal
            and not self.rules.may_open_records
            and has_enough
            and config.flush_messages == LONG_MAX
            and self._resigned is None
        )

    # --- replicas

    def set_replication(self, state: LeaderState | None) -> None:
        """A reassignment has made several replicas of one, or one of several, under the same leader epoch."""
        self.replication = state
        self.set_config(self.config)
        self._own_end = self._synced_end()
        self.isr_changed()
        self.sync_what_is_due()

    def _synced_end(self) -> int:
        """Up to where our log is as much on disk as the topic asks for. As a follower it may not have come to that."""
        return self.log.recovery_point if self.log.flush_due else self.log.log_end_offset

    def sync_what_is_due(self) -> None:
        """What is in the log and does not count yet."""
        if self.replication is not None and self._own_end < self.log.log_end_offset:
            self._flush_soon()

    def isr_changed(self) -> None:
        """The controller has said who is in sync, or a change of it is on its way there."""
        self._look_at_replicas()
        self.advance()
        for feed in self.feeds:
            feed.on_isr()
        state = self.replication
        if state is not None and state.is_under_min_isr and self._waiting:
            few = f"{len(state.isr)} replicas are in sync, and {state.min_insync} have to be"
            self._tell_all(ApiError(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, few))

    def advance(self) -> None:
        """Commit what all in-sync replicas have."""
        if self._resigned is not None:
            return  # the log follows another leader by now
        state = self.replication
        if state is None:
            if not self._waiting and not self.log.flush_due:
                self._commit(self.log.log_end_offset)
            return
        end_offset = state.high_watermark(self._own_end)
        if end_offset > self.log.high_watermark:
            self._commit(end_offset)

    def on_replica_fetch(
        self, replica: int, broker_epoch: int, offset: int, log_start_offset: int, now_ms: int
    ) -> None:
        """A follower has everything below `offset`. Only for a fetch that counts."""
        state = self.replication
        assert state is not None
        if state.on_fetch(replica, broker_epoch, offset, log_start_offset, self.log.log_end_offset, now_ms):
            self.advance()
        if self._waiting_for_deletion:
            self._tell_of_deletions()

    def resign(self, error: ApiError) -> None:
        """Somebody else leads, or a later epoch of ours: nothing is written any more, and nobody waits for it."""
        self._resigned = error
        self.takes_plain_batches = False
        self._tell_all(error)
        waiting, self._waiting_for_disk = self._waiting_for_disk, []
        for _, done in waiting:
            if not done.done():
                done.set_exception(error)
        self._fail_deletions(error)
        for feed in tuple(self.feeds):
            feed.on_append()
        self.feeds.clear()
        self.notify()

    def release_waiting(self) -> None:
        """The broker stops, and could not hand this over: whoever waits for other replicas asks the next leader."""
        if self.replication is not None:
            error = ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"the leader of {self.topic}-{self.index} stops")
            self._tell_all(error)
            self._fail_deletions(error)

    def _fail_deletions(self, error: ApiError) -> None:
        deletions, self._waiting_for_deletion = self._waiting_for_deletion, []
        for _, _, deleted in deletions:
            if not deleted.done():
                deleted.set_exception(error)

    # --- writing

    def append(self, batch: Data, now_ms: int, origin: Origin = Origin.CLIENT) -> AppendResult:
        """Write a batch that was found to be good. It is committed at once, or when `wait_for_commit` says so. Raises
        ApiError; then nothing was written."""
        if self._resigned is not None:
            raise self._resigned
        result = self.log.append(batch, leader_epoch=self.leader_epoch, now_ms=now_ms, origin=origin)
        if not result.duplicate:
            self.traffic.bytes_in += len(batch)
            self.traffic.records_in += result.last_offset - result.base_offset + 1
        # A marker may let readers of committed records go far ahead.
        self._uncommitted_bytes += len(batch) if origin is Origin.CLIENT else EVERYTHING
        if self.replication is not None:
            self._appended(is_flush_due=result.flush_due)
        elif not result.flush_due and not self._waiting:
            self._commit(self.log.log_end_offset)
        return result

    def append_next(self, batch: Data, header: HeaderFields, now_ms: int) -> int:
        """The same for the next batch of its producer where there is nothing to decide (`takes_plain_batches`). Its
        offset, or -1: then nothing was done, and `append` must look at it."""
        log = self.log
        base_offset = log.append_next(batch, header, self.leader_epoch, now_ms)
        if base_offset >= 0:
            traffic = self.traffic
            traffic.bytes_in += len(batch)
            traffic.records_in += header[6] + 1
            if self.replication is not None:
                self._uncommitted_bytes += len(batch)
                self._appended(is_flush_due=False)
                return base_offset
            log.high_watermark = log.log_end_offset
            if self._watchers:
                # There are older ones if the topic has stopped to ask for a flush just now.
                older, self._uncommitted_bytes = self._uncommitted_bytes, 0
                self.notify(len(batch) + older)
        return base_offset

    def _appended(self, *, is_flush_due: bool) -> None:
        """With replicas: followers are told at once, and their next fetch commits it."""
        if is_flush_due:
            # Also if nobody waits for it: what does not count here is never committed.
            self._flush_soon()
        else:
            self._own_end = self.log.log_end_offset
        for feed in self.feeds:
            feed.on_append()
        if self.replication is not None and self.replication.is_alone:
            self.advance()

    @property
    def waiting_count(self) -> int:
        """Requests whose records are not committed yet, or not on our own disk."""
        return len(self._waiting) + len(self._waiting_for_disk)

    def check_acks(self, acks: int) -> None:
        """Whether as many replicas can acknowledge a write as its producer asks for. Raises ApiError."""
        if acks not in (-1, 0, 1):
            raise ApiError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks is -1, 0 or 1, not {acks}")
        if acks != -1:
            return
        state = self.replication
        if state is not None:
            if state.is_under_min_isr:
                few = f"{len(state.isr)} replicas are in sync, and {state.min_insync} have to be"
                raise ApiError(ErrorCode.NOT_ENOUGH_REPLICAS, few)
        elif self.config.min_insync_replicas > 1:
            raise ApiError(ErrorCode.NOT_ENOUGH_REPLICAS, "min.insync.replicas asks for more brokers than there are")

    # --- deleting

    def delete_records(self, offset: int, is_alive: Callable[[int], bool]) -> int | asyncio.Future[int]:
        """Readers no longer see what is below `offset` (-1: the high watermark). Gives the low watermark, or the
        promise of it: that no live replica has such records any more. Raises ApiError."""
        if self._resigned is not None:
            raise self._resigned
        start = self.log.delete_records(offset)
        state = self.replication
        if state is None or (low := state.low_watermark(start, is_alive)) >= start:
            return start if state is None else low
        deleted: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting_for_deletion.append((start, is_alive, deleted))
        for feed in self.feeds:
            feed.on_log_start()
        return deleted

    def _tell_of_deletions(self) -> None:
        state, waiting = self.replication, self._waiting_for_deletion
        self._waiting_for_deletion = []
        for start, is_alive, deleted in waiting:
            low = self.log.log_start_offset if state is None else state.low_watermark(start, is_alive)
            if deleted.done():
                continue
            if low >= start:
                deleted.set_result(low)
            else:
                self._waiting_for_deletion.append((start, is_alive, deleted))

    # --- waiting for what was written

    def wait_for_commit(self, end_offset: int | None = None, timeout_ms: int | None = None) -> Awaitable[None] | None:
        """None if all that is below this offset (by default: that is in the log) is committed: readers may see it, and
        whoever wrote it may be told. Else what to wait for, which raises ApiError when it cannot be, or takes longer
        than `timeout_ms`."""
        end_offset = self.log.log_end_offset if end_offset is None else end_offset
        if self.log.high_watermark >= end_offset and not self._waiting and self._resigned is None:
            return None
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def tell(error: Exception | None) -> None:
            if done.done():
                return  # nobody waits any more
            if error is None:
                done.set_result(None)
            else:
                done.set_exception(error)

        self.when_committed(end_offset, tell, timeout_ms)
        return done

    @property
    def is_all_committed(self) -> bool:
        """Of all that is in the log, nobody has to wait for anything."""
        log = self.log
        return log.high_watermark >= log.log_end_offset and not self._waiting and self._resigned is None

    def when_committed(self, end_offset: int, done: Committed, timeout_ms: int | None = None) -> None:
        """Call `done`, now or later, each after all that asked before; or, when the time is over, with
        REQUEST_TIMED_OUT."""
        if self._resigned is not None:
            # Whatever the log says: it follows another leader by now, who may have cut off what is waited for.
            done(self._resigned)
            return
        if self.log.high_watermark >= end_offset and not self._waiting:
            done(None)
            return
        if timeout_ms is None:
            self._waiting.append(_Waiting(end_offset, done, None))
        else:
            loop = asyncio.get_running_loop()
            deadline = loop.time() + timeout_ms / 1000
            self._waiting.append(_Waiting(end_offset, done, deadline))
            self._watch_time(loop, deadline)
        if self.replication is None or self._own_end < end_offset:
            self._flush_soon()

    def wait_for_own_disk(self, end_offset: int) -> Awaitable[None] | None:
        """The same for acks=1: what is as much on our own disk as the topic asks for, whoever else has it."""
        if self.replication is None:
            return self.wait_for_commit(end_offset)
        if self._own_end >= end_offset:
            return None
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting_for_disk.append((end_offset, done))
        self._flush_soon()
        return done

    def _flush_soon(self) -> None:
        if self._flushing is None:
            self._flushing = asyncio.get_running_loop().create_task(self._flush())

    async def _flush(self) -> None:
        """One flush serves all that was appended before it began; what came in meanwhile gets the next."""
        try:
            while self._is_flush_asked_for():
                try:
                    await self.log.flush_async()
                except Exception as error:
                    self._tell_disk(error)
                    self._tell_all(error)
                    if self.log.failed is not None:
                        return
                    # With replicas it is tried until it can be, because what was written is there; not all the time.
                    if self._is_flush_asked_for():
                        await asyncio.sleep(_FLUSH_AGAIN_S)
                    continue
                # Not to the log end: what came in during the flush is not on disk yet.
                self._own_end = max(self._own_end, self.log.recovery_point)
                self._tell_disk(None)
                if self.replication is None:
                    self._commit(self.log.recovery_point)
                else:
                    self.advance()
                while self._waiting and self._waiting[0].end_offset > self.log.log_end_offset:
                    self._tell(ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "what was written is not in the log any more"))
        finally:
            self._flushing = None

    def _is_flush_asked_for(self) -> bool:
        if self._resigned is not None:
            return False
        if self.replication is None:
            return bool(self._waiting)
        return self._own_end < self.log.log_end_offset

    def _tell_disk(self, error: Exception | None) -> None:
        """Those who wait for our own disk."""
        waiting, self._waiting_for_disk = self._waiting_for_disk, []
        for end_offset, done in waiting:
            if done.done():
                continue
            if error is not None:
                done.set_exception(error)
            elif end_offset <= self._own_end:
                done.set_result(None)
            else:
                self._waiting_for_disk.append((end_offset, done))

    def _tell(self, error: Exception | None) -> None:
        """The one who has waited longest."""
        self._tell_one(self._waiting.popleft(), error)

    def _tell_all(self, error: Exception) -> None:
        """Those who wait now; by being told they may begin to wait for something else."""
        for _ in range(len(self._waiting)):
            self._tell(error)

    def _tell_one(self, waiting: _Waiting, error: Exception | None) -> None:
        try:
            waiting.done(error)
        except Exception:
            where = {"partition": f"{self.topic}-{self.index}"}
            logger.exception("what was to follow a commit failed", extra=where)

    def _watch_time(self, loop: asyncio.AbstractEventLoop, deadline: float) -> None:
        """One timer for all who wait: the next look is when the first of them may be over."""
        if self._deadline is None or deadline < self._deadline.when():
            if self._deadline is not None:
                self._deadline.cancel()
            self._deadline = loop.call_at(deadline, self._on_time)

    def _on_time(self) -> None:
        loop = asyncio.get_running_loop()
        self._deadline = None
        now = loop.time()
        late = [waiting for waiting in self._waiting if waiting.deadline is not None and waiting.deadline <= now]
        if late:
            self._waiting = deque(
                waiting for waiting in self._waiting if waiting.deadline is None or waiting.deadline > now
            )
            for waiting in late:
                self._tell_one(waiting, ApiError(ErrorCode.REQUEST_TIMED_OUT))
            self._tell_committed()
        deadlines = [waiting.deadline for waiting in self._waiting if waiting.deadline is not None]
        if deadlines:
            self._watch_time(loop, min(deadlines))

    def _commit(self, end_offset: int) -> None:
        """What lies below is committed: readers may see it, and those who wait for it are told."""
        log = self.log
        if end_offset > log.high_watermark:
            log.high_watermark = end_offset
        gained = self._uncommitted_bytes
        if log.high_watermark >= log.log_end_offset:
            # Else some of them are told again when they are committed: who looks in vain loses less than who sleeps.
            self._uncommitted_bytes = 0
        for feed in self.feeds:
            feed.on_watermark()
        if self._watchers:
            self.notify(gained)
        if self._waiting:
            self._tell_committed()

    def _tell_committed(self) -> None:
        """Those in front whose records are there, with nobody before them who still waits."""
        while self._waiting and self._waiting[0].end_offset <= self.log.high_watermark:
            self._tell(None)


def rules_of(config: LogConfig) -> Rules:
    return Rules(
        max_message_bytes=config.max_message_bytes,
        segment_bytes=config.segment_bytes,
        log_append_time=config.message_timestamp_type == "LogAppendTime",
        timestamp_before_max_ms=config.message_timestamp_before_max_ms,
        timestamp_after_max_ms=config.message_timestamp_after_max_ms,
        keys_required=config.cleanup_compact,
        codec_name=config.compression_type,
        codec_levels={
            Codec.GZIP: config.compression_gzip_level,
            Codec.LZ4: config.compression_lz4_level,
            Codec.ZSTD: config.compression_zstd_level,
        },
    )
