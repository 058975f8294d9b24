"""Completing decided transactions: a marker in each partition, then the record that says so.

A marker that cannot be written (its disk is full or gone) keeps its transaction undone and is tried again; those that
are written are not written twice, or a broken disk would fill the good ones. After a restart all of them are written
again, which does no harm: a marker without an open transaction ends nothing.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from ottla.broker.internal_topics import OFFSETS_TOPIC
from ottla.broker.partitions import Partition
from ottla.broker.steps import Steps, run
from ottla.broker.transaction_log import TransactionLog
from ottla.common.errors import ApiError
from ottla.common.ids import TopicPartition
from ottla.records import batch as v2
from ottla.records.record import Record, build_batch
from ottla.storage.results import Origin
from ottla.transactions.coordinator import Markers, TransactionCoordinator
from ottla.transactions.transaction import Transaction

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

log = logging.getLogger("ottla.transactions")

_KEY = struct.Struct(">hh")  # version, type
_VALUE = struct.Struct(">hi")  # version, coordinator epoch
_ABORT, _COMMIT = 0, 1
_RETRY_MS = 1_000


class Shard:
    """One partition of the coordinator's topic."""

    def __init__(self, coordinator: TransactionCoordinator, log_: TransactionLog) -> None:
        self.coordinator = coordinator
        self.log = log_
        self.is_loading = False
        # Ids whose transaction is being completed now, and of others the partitions that still lack their marker.
        self.completing: dict[str, None] = {}
        self.lacking: dict[str, list[TopicPartition]] = {}

    def write(self, transaction: Transaction) -> None:
        """Raises ApiError when it cannot be written; then nothing has changed."""
        self.log.append(transaction, self.coordinator.version)
        self.coordinator.apply(transaction)


class MarkerWriter:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._background: set[asyncio.Future[None]] = set()

    def stop(self) -> None:
        for task in tuple(self._background):
            task.cancel()

    # --- a decided transaction

    def complete(self, shard: Shard, markers: Markers) -> Steps[None]:
        """The decision is in the log. Raises ApiError if it cannot be made durable; nothing is marked then."""
        name = markers.transactional_id
        if name in shard.completing:
            return
        shard.completing[name] = None
        try:
            if shard.log.is_flush_due:
                yield shard.log.flushed()  # no marker may outlive the decision that it stands for
            yield from self._mark(shard, markers)
        finally:
            del shard.completing[name]

    def _mark(self, shard: Shard, markers: Markers) -> Steps[None]:
        name = markers.transactional_id
        lacking = yield from self._write_all(markers, shard.lacking.get(name), shard.log.coordinator_epoch)
        try:
            if not lacking:
                shard.write(shard.coordinator.markers_written(name, self._broker.transactions.now_ms()))
                shard.lacking.pop(name, None)
                return
        except ApiError as error:
            log.error("cannot complete a transaction", extra={"transactional_id": name, "why": str(error)})
        # Whoever asks meets CONCURRENT_TRANSACTIONS until it is done.
        shard.lacking[name] = lacking
        self._broker.call_later(_RETRY_MS, lambda: self.finish(shard))

    def _write_all(
        self, markers: Markers, partitions: list[TopicPartition] | None, coordinator_epoch: int
    ) -> Steps[list[TopicPartition]]:
        """Gives the partitions that it could not write to."""
        lacking: list[TopicPartition] = []
        flushing: list[tuple[TopicPartition, Awaitable[None]]] = []
        batch = control_batch(
            markers.producer_id, markers.epoch, markers.commit, coordinator_epoch, self._broker.clock.now_ms()
        )
        for one in markers.partitions if partitions is None else partitions:
            try:
                waiting = self.write(one, markers.producer_id, markers.commit, bytearray(batch))
            except ApiError as error:
                lacking.append(one)
                self._complain(markers, one, error)
                continue
            if waiting is not None:
                flushing.append((one, waiting))
        for one, waiting in flushing:
            try:
                yield waiting  # a marker that is lost after the transaction is complete would be missed for ever
            except ApiError as error:
                lacking.append(one)
                self._complain(markers, one, error)
        return lacking

    def _complain(self, markers: Markers, partition: TopicPartition, error: ApiError) -> None:
        what = {"transactional_id": markers.transactional_id, "partition": str(partition), "why": str(error)}
        log.error("cannot write a transaction marker, will try again", extra=what)

    def finish(self, shard: Shard) -> None:
        """Go on with what is decided and not complete."""
        for markers in shard.coordinator.unfinished():
            try:
                waiting = run(self.complete(shard, markers))
            except ApiError as error:
                what = {"transactional_id": markers.transactional_id, "why": str(error)}
                log.error("cannot complete a transaction", extra=what)
                continue
            if waiting is not None:
                task = asyncio.ensure_future(waiting)
                self._background.add(task)
                task.add_done_callback(self._background.discard)

    # --- one marker

    def write(self, where: TopicPartition, producer_id: int, commit: bool, batch: bytearray) -> Awaitable[None] | None:
        """What to wait for if the topic wants its records on disk. Raises ApiError."""
        partition = self._broker.partitions.get(*where)
        if partition is None:
            return None  # the topic was deleted, and its part of the transaction with it
        size = len(batch)
        result = partition.log.append(
            batch, leader_epoch=partition.leader_epoch, now_ms=self._broker.clock.now_ms(), origin=Origin.COORDINATOR
        )
        if where.topic == OFFSETS_TOPIC:
            self._broker.groups.end_transaction(where.partition, producer_id, committed=commit)
        if result.flush_due:
            return asyncio.ensure_future(_publish_flushed(partition))  # begins now, beside those of other partitions
        partition.advance_high_watermark(size)
        partition.notify()  # the last stable offset may have gone far ahead
        return None


async def _publish_flushed(partition: Partition) -> None:
    await partition.publish_when_flushed()
    partition.notify()


def control_batch(producer_id: int, epoch: int, commit: bool, coordinator_epoch: int, now_ms: int) -> bytearray:
    """The marker that ends a transaction in one partition."""
    key = _KEY.pack(0, _COMMIT if commit else _ABORT)
    return build_batch(
        [Record(0, now_ms, key, _VALUE.pack(0, coordinator_epoch))],
        producer_id=producer_id,
        producer_epoch=epoch,
        attributes=v2.TRANSACTIONAL_BIT | v2.CONTROL_BIT,
    )
