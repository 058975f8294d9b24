"""A partition this broker leads: its log, the rules for writing to it, when a write is committed, and who waits for it.

Everything that is written goes through `append`: records of producers, of coordinators, and markers of transactions.
When it is committed is said in one place, too, `_commit`: on one node, once it is as much on disk as the topic asks
for. The short cut of both is `append_next`, which spares the calls where a topic `takes_plain_batches`: there nothing
is to be waited for.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable

from ottla.common.errors import ApiError, ErrorCode
from ottla.metadata.image import TopicImage
from ottla.records.compression import Codec
from ottla.records.validate import HeaderFields, Rules
from ottla.storage.log import Log
from ottla.storage.log_config import LONG_MAX, LogConfig
from ottla.storage.results import AppendResult, Origin

logger = logging.getLogger("ottla.broker")

# Called with how many more bytes can be read; EVERYTHING when whoever waits must look again whatever it waits for.
Watcher = Callable[[int], None]
EVERYTHING = 1 << 62
# Called once what was waited for is committed, or with why it cannot be.
Committed = Callable[[Exception | None], None]
Data = memoryview | bytearray | bytes


class Partition:
    __slots__ = (
        "_flushing",
        "_uncommitted_bytes",
        "_waiting",
        "_watchers",
        "config",
        "index",
        "is_internal",
        "leader_epoch",
        "log",
        "rules",
        "takes_plain_batches",
        "topic",
        "topic_id",
    )

    def __init__(self, topic: TopicImage, index: int, log: Log, config: LogConfig) -> None:
        self.topic = topic.name
        self.topic_id = topic.id
        self.index = index
        self.is_internal = topic.is_internal
        self.leader_epoch = topic.partitions[index].leader_epoch
        self.log = log
        # A dict for its order, and because thousands may wait here and all leave at once.
        self._watchers: dict[Watcher, None] = {}
        # Who is told when what is below an offset is committed, in the order in which they came.
        self._waiting: deque[tuple[int, Committed]] = deque()
        self._uncommitted_bytes = 0
        self._flushing: asyncio.Task[None] | None = None
        self.set_config(config)

    def replace_log(self, log: Log) -> None:
        """The same records in another log directory."""
        self.log = log
        log.leader_epochs.assign(self.leader_epoch, log.log_end_offset)
        log.set_config(self.config)

    def set_config(self, config: LogConfig) -> None:
        self.config = config
        self.log.set_config(config)
        self.rules = Rules(
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
        # A usual batch can be written and answered with no further question.
        self.takes_plain_batches = (
            not self.is_internal
            and not self.rules.may_open_records
            and config.min_insync_replicas <= 1
            and config.flush_messages == LONG_MAX
        )

    # --- writing

    def append(self, batch: Data, now_ms: int, origin: Origin = Origin.CLIENT) -> AppendResult:
        """Write a batch that was found to be good. It is committed at once, or when `wait_for_commit` says so. Raises
        ApiError; then nothing was written."""
        result = self.log.append(batch, leader_epoch=self.leader_epoch, now_ms=now_ms, origin=origin)
        # A marker may let readers of committed records go far ahead.
        self._uncommitted_bytes += len(batch) if origin is Origin.CLIENT else EVERYTHING
        if not result.flush_due and not self._waiting:
            self._commit(self.log.log_end_offset)
        return result

    def append_next(self, batch: Data, header: HeaderFields, now_ms: int) -> int:
        """The same for the next batch of its producer where there is nothing to decide and nothing to wait for
        (`takes_plain_batches`). Its offset, or -1: then nothing was done, and `append` must look at it."""
        log = self.log
        base_offset = log.append_next(batch, header, self.leader_epoch, now_ms)
        if base_offset >= 0:
            log.high_watermark = log.log_end_offset
            if self._watchers:
                # There are older ones if the topic has stopped to ask for a flush just now.
                older, self._uncommitted_bytes = self._uncommitted_bytes, 0
                self.notify(len(batch) + older)
        return base_offset

    def check_acks(self, acks: int) -> None:
        """Whether as many replicas can acknowledge a write as its producer asks for. Raises ApiError."""
        if acks not in (-1, 0, 1):
            raise ApiError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks is -1, 0 or 1, not {acks}")
        if acks == -1 and self.config.min_insync_replicas > 1:
            raise ApiError(ErrorCode.NOT_ENOUGH_REPLICAS, "min.insync.replicas asks for more brokers than there are")

    def wait_for_commit(self, end_offset: int | None = None) -> Awaitable[None] | None:
        """None if all that is below this offset (by default: that is in the log) is committed: readers may see it, and
        whoever wrote it may be told. Else what to wait for, which raises ApiError when the disk fails."""
        end_offset = self.log.log_end_offset if end_offset is None else end_offset
        if self.log.high_watermark >= end_offset and not self._waiting:
            return None
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def tell(error: Exception | None) -> None:
            if done.done():
                return  # nobody waits any more
            if error is None:
                done.set_result(None)
            else:
                done.set_exception(error)

        self.when_committed(end_offset, tell)
        return done

    def when_committed(self, end_offset: int, done: Committed) -> None:
        """Call `done`, now or later, each after all that asked before."""
        if self.log.high_watermark >= end_offset and not self._waiting:
            done(None)
            return
        self._waiting.append((end_offset, done))
        if self._flushing is None:
            self._flushing = asyncio.get_running_loop().create_task(self._flush())

    async def _flush(self) -> None:
        """One flush serves all that was appended before it began; what came in meanwhile gets the next."""
        try:
            while self._waiting:
                try:
                    await self.log.flush_async()
                except Exception as error:
                    for _ in range(len(self._waiting)):
                        self._tell(error)
                    continue
                # Not to the log end: what came in during the flush is not on disk yet.
                self._commit(self.log.recovery_point)
                while self._waiting and self._waiting[0][0] > self.log.log_end_offset:
                    self._tell(ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "what was written is not in the log any more"))
        finally:
            self._flushing = None

    def _tell(self, error: Exception | None) -> None:
        """The one who has waited longest."""
        _, done = self._waiting.popleft()
        try:
            done(error)
        except Exception:
            where = {"partition": f"{self.topic}-{self.index}"}
            logger.exception("what was to follow a commit failed", extra=where)

    def _commit(self, end_offset: int) -> None:
        """On one node what is in the log (and flushed, where that was asked for) is committed: readers may see it, and
        those who wait for it are told."""
        log = self.log
        if end_offset > log.high_watermark:
            log.high_watermark = end_offset
        gained = self._uncommitted_bytes
        if log.high_watermark >= log.log_end_offset:
            # Else some of them are told again when they are committed: who looks in vain loses less than who sleeps.
            self._uncommitted_bytes = 0
        if self._watchers:
            self.notify(gained)
        while self._waiting and self._waiting[0][0] <= log.high_watermark:
            self._tell(None)

    # --- who waits for new records

    def watch(self, callback: Watcher) -> None:
        self._watchers[callback] = None

    def unwatch(self, callback: Watcher) -> None:
        self._watchers.pop(callback, None)

    def notify(self, size: int = EVERYTHING) -> None:
        for callback in tuple(self._watchers):
            callback(size)
