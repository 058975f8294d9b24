"""One partition of `__transaction_state` as its coordinator sees it: values in, and at start-up values out."""

from __future__ import annotations

import logging
from collections.abc import Awaitable

from ottla.broker.coordinators.enough_replicas import check_replicas
from ottla.broker.partitions.partition import Partition
from ottla.common.clock import Clock
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicPartition
from ottla.protocol.codec import MalformedMessage
from ottla.records.batch import BatchHeader
from ottla.records.compression import DecompressionError
from ottla.records.record import CorruptRecords, Record, build_batch, read_records
from ottla.storage.results import Origin
from ottla.transactions.coordinator import TransactionCoordinator
from ottla.transactions.states import TxnState
from ottla.transactions.transaction import Transaction, decode_key, decode_value, encode_key, encode_value

log = logging.getLogger("ottla.transactions")


# What a failed write means to clients of the coordinator, as Kafka maps it. After a full disk they ask again here: it
# may have room by then.
_FOR_CLIENTS = {
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


class TransactionLog:
    def __init__(self, partition: Partition, clock: Clock, commit_timeout_ms: int | None = None) -> None:
        """Without `commit_timeout_ms` a commit may take its time: nobody else has to take part in it."""
        self._partition = partition
        self._clock = clock
        self._commit_timeout_ms = commit_timeout_ms

    @property
    def topic_partition(self) -> TopicPartition:
        return self._partition.log.topic_partition

    @property
    def coordinator_epoch(self) -> int:
        """Whoever leads the partition is the coordinator, so its epoch is the partition's."""
        return self._partition.leader_epoch

    def append(self, transaction: Transaction, transaction_version: int) -> None:
        """Raises COORDINATOR_NOT_AVAILABLE or NOT_COORDINATOR when it cannot be written; then nothing was."""
        now_ms = self._clock.now_ms()
        value = None if transaction.state is TxnState.DEAD else encode_value(transaction, transaction_version)
        batch = build_batch([Record(0, now_ms, encode_key(transaction.transactional_id), value)])
        try:
            check_replicas(self._partition)
            self._partition.append(batch, now_ms, Origin.COORDINATOR)
        except ApiError as error:
            raise _as_coordinator(error) from error

    def wait_for_commit(self, *, in_time: bool = True) -> Awaitable[None] | None:
        """What to wait for before anybody is told of what was appended, if anything. Raises NOT_COORDINATOR when
        somebody else leads now, COORDINATOR_NOT_AVAILABLE when the disk fails or replicas do not take it in time."""
        waiting = self._partition.wait_for_commit(timeout_ms=self._commit_timeout_ms if in_time else None)
        return None if waiting is None else _as_coordinators(waiting)


async def _as_coordinators(waiting: Awaitable[None]) -> None:
    try:
        await waiting
    except ApiError as error:
        raise _as_coordinator(error) from error


def _as_coordinator(error: ApiError) -> ApiError:
    code = _FOR_CLIENTS.get(error.code)
    return error if code is None else ApiError(code, error.message)


# --- reading


def replay_batch(
    coordinator: TransactionCoordinator, data: bytes, position: int, header: BatchHeader, now_ms: int
) -> int:
    count = 0
    if header.is_control:
        return count
    try:
        for record in read_records(data, position):
            count += 1
            transactional_id = decode_key(record.key or b"")
            if transactional_id is not None:
                value = decode_value(transactional_id, record.value) if record.value is not None else None
                coordinator.load(transactional_id, value, now_ms)
    except (CorruptRecords, DecompressionError, MalformedMessage, ValueError) as error:
        # One record that cannot be read must not keep every transactional id of the partition from being served.
        log.error("transaction record is not readable and was passed over", extra={"why": str(error)})
    return count
