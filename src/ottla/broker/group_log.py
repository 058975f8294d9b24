"""One partition of `__consumer_offsets` as its group shard sees it: records in, and at start-up records out.

Coordinator records are ours alone to write; while the partition is read only markers of transactions are added to it.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Callable, Sequence
from typing import Any

from ottla.broker.coordinator_load import all_batches
from ottla.broker.partitions import Partition
from ottla.common.clock import Clock
from ottla.common.errors import ApiError, ErrorCode
from ottla.groups import records as group_records
from ottla.groups.result import Record
from ottla.groups.state import GroupState
from ottla.protocol.codec import MalformedMessage
from ottla.records import batch as v2
from ottla.records.compression import Codec, DecompressionError
from ottla.records.record import CorruptRecords, build_batch, read_records
from ottla.records.record import Record as LogRecord
from ottla.storage.results import Origin

log = logging.getLogger("ottla.groups")

_MARKER_KEY = struct.Struct(">hh")
_COMMIT_MARKER = 1


class GroupLog:
    def __init__(self, partition: Partition, clock: Clock, codec: Callable[[], int]) -> None:
        self._partition = partition
        self._clock = clock
        self._codec = codec
        self._flushing: asyncio.Task[None] | None = None
        self._waiting: list[Callable[[ErrorCode], None]] = []

    # --- writing

    def append(self, records: Sequence[Record], producer: tuple[int, int] | None) -> int:
        now_ms = self._clock.now_ms()
        rows = []
        for number, record in enumerate(records):
            key, value = group_records.serialize(record)
            rows.append(LogRecord(number, now_ms, key, value))
        if producer is None:
            batch = build_batch(rows, codec=Codec(self._codec()))
        else:
            batch = build_batch(
                rows,
                codec=Codec(self._codec()),
                producer_id=producer[0],
                producer_epoch=producer[1],
                attributes=v2.TRANSACTIONAL_BIT,
            )
        partition = self._partition
        size = len(batch)
        result = partition.log.append(
            batch, leader_epoch=partition.leader_epoch, now_ms=now_ms, origin=Origin.COORDINATOR
        )
        if not result.flush_due and self._flushing is None:
            partition.advance_high_watermark(size)
        return result.base_offset

    def when_durable(self, done: Callable[[ErrorCode], None]) -> None:
        # The log is asked: markers of transactions go into it past us.
        if self._flushing is None and not self._partition.log.flush_due:
            done(ErrorCode.NONE)
            return
        self._waiting.append(done)
        if self._flushing is None:
            self._flushing = asyncio.get_running_loop().create_task(self._flush())

    async def _flush(self) -> None:
        """One flush serves all that was appended before it began; what came in meanwhile gets the next."""
        partition = self._partition
        partition_log: Any = partition.log
        try:
            while self._waiting:
                waiting, self._waiting = self._waiting, []
                error = ErrorCode.NONE
                try:
                    await partition_log.flush_async()
                    partition.advance_high_watermark(0, partition_log.recovery_point)
                except ApiError as failed:
                    error = failed.code
                for done in waiting:
                    try:
                        done(error)
                    except Exception:
                        log.exception("what was to follow a flush failed", extra={"partition": partition.index})
        finally:
            self._flushing = None

    # --- reading

    async def load_into(self, state: GroupState) -> int:
        """Replay the whole partition. How many records there were. Raises ApiError or OSError."""
        count = 0
        async for data, position, header in all_batches(self._partition.log):
            count += self._replay_batch(state, data, position, header)
        return count

    def _replay_batch(self, state: GroupState, data: bytes, position: int, header: v2.BatchHeader) -> int:
        producer_id = header.producer_id if header.is_transactional else -1
        count = 0
        try:
            for record in read_records(data, position):
                if header.is_control:
                    _, kind = _MARKER_KEY.unpack_from(record.key or b"")
                    state.end_transaction(header.producer_id, committed=kind == _COMMIT_MARKER)
                else:
                    self._replay(state, record, producer_id)
                count += 1
        except (CorruptRecords, DecompressionError, struct.error) as error:
            self._complain(header.base_offset, error)
        return count

    def _replay(self, state: GroupState, record: LogRecord, producer_id: int) -> None:
        try:
            parsed = group_records.deserialize(record.key or b"", record.value)
            if parsed is not None:
                state.replay(parsed, record.offset, producer_id)
        except MalformedMessage as error:
            self._complain(record.offset, error)

    def _complain(self, offset: int, error: Exception) -> None:
        """One record that cannot be read must not keep all groups of the partition from being served."""
        where = {"partition": self._partition.index, "offset": offset, "why": str(error)}
        log.error("group record is not readable and was passed over", extra=where)
