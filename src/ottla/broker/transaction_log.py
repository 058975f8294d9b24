"""One partition of `__transaction_state` as its coordinator sees it, and the control batches that end transactions."""

from __future__ import annotations

import asyncio
import logging
import os
import struct

from ottla.broker.partitions import Partition
from ottla.common.clock import Clock
from ottla.protocol.codec import MalformedMessage
from ottla.records import batch as v2
from ottla.records.compression import DecompressionError
from ottla.records.record import CorruptRecords, Record, build_batch, iterate_batches, read_records
from ottla.storage.results import Origin
from ottla.transactions.coordinator import TransactionCoordinator
from ottla.transactions.states import TxnState
from ottla.transactions.transaction import Transaction, decode_key, decode_value, encode_key, encode_value

log = logging.getLogger("ottla.transactions")

_LOAD_BYTES = 256 * 1024
_MARKER_KEY = struct.Struct(">hh")  # version, type
_MARKER_VALUE = struct.Struct(">hi")  # version, coordinator epoch
_ABORT, _COMMIT = 0, 1


def control_batch(producer_id: int, epoch: int, commit: bool, coordinator_epoch: int, now_ms: int) -> bytearray:
    """The marker that ends a transaction in one partition."""
    key = _MARKER_KEY.pack(0, _COMMIT if commit else _ABORT)
    return build_batch(
        [Record(0, now_ms, key, _MARKER_VALUE.pack(0, coordinator_epoch))],
        producer_id=producer_id,
        producer_epoch=epoch,
        attributes=v2.TRANSACTIONAL_BIT | v2.CONTROL_BIT,
    )


class TransactionLog:
    def __init__(self, partition: Partition, clock: Clock) -> None:
        self._partition = partition
        self._clock = clock
        self._flush_due = False

    @property
    def coordinator_epoch(self) -> int:
        """Whoever leads the partition is the coordinator, so its epoch is the partition's."""
        return self._partition.leader_epoch

    def append(self, transaction: Transaction) -> None:
        """Raises ApiError when it cannot be written; then nothing was."""
        now_ms = self._clock.now_ms()
        value = None if transaction.state is TxnState.DEAD else encode_value(transaction)
        batch = build_batch([Record(0, now_ms, encode_key(transaction.transactional_id), value)])
        partition, size = self._partition, len(batch)
        result = partition.log.append(
            batch, leader_epoch=partition.leader_epoch, now_ms=now_ms, origin=Origin.COORDINATOR
        )
        if result.flush_due:
            self._flush_due = True
        else:
            partition.advance_high_watermark(size)

    async def durable(self) -> None:
        """Return when what was appended is as safe as the topic asks for."""
        if self._flush_due:
            self._flush_due = False
            await self._partition.log.flush_async()
            self._partition.advance_high_watermark(0, self._partition.log.recovery_point)

    async def load_into(self, coordinator: TransactionCoordinator) -> int:
        """Replay the whole partition, giving the event loop its turns. How many records there were."""
        partition_log = self._partition.log
        offset, end = partition_log.log_start_offset, partition_log.log_end_offset
        count = 0
        while offset < end:
            part = partition_log.read(offset, _LOAD_BYTES, upper_offset=end, min_one=True)
            data = os.pread(part.file, part.size, part.position) if part.size else b""
            before = offset
            for position, header in iterate_batches(data):
                offset = header.last_offset + 1
                count += _replay_batch(coordinator, data, position)
            if offset == before:
                log.error("cannot read on", extra={"partition": self._partition.index, "offset": offset})
                break
            await asyncio.sleep(0)
        return count


def _replay_batch(coordinator: TransactionCoordinator, data: bytes, position: int) -> int:
    count = 0
    try:
        for record in read_records(data, position):
            count += 1
            transactional_id = decode_key(record.key or b"")
            if transactional_id is not None:
                value = decode_value(transactional_id, record.value) if record.value is not None else None
                coordinator.load(transactional_id, value)
    except (CorruptRecords, DecompressionError, MalformedMessage, ValueError) as error:
        # One record that cannot be read must not keep every transactional id of the partition from being served.
        log.error("transaction record is not readable and was passed over", extra={"why": str(error)})
    return count
