"""Completing decided transactions: a marker in each partition, then the record that says so.

A marker that cannot be written (its disk is full or gone) keeps its transaction undone. It waits in the queue of its
destination, the partition, and each destination is tried with one marker a second until it takes one; then the rest of
its queue follows. So what a broken disk costs does not depend on how many transactions wait for it. Markers that are
written are not written twice, or a broken disk would fill the good ones. After a restart all of them are written again,
which does no harm: a marker without an open transaction ends nothing.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections import deque
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from ottla.broker.coordinators.internal_topics import OFFSETS_TOPIC
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicPartition
from ottla.common.steps import Steps
from ottla.records.batch import CONTROL_BIT, TRANSACTIONAL_BIT
from ottla.records.record import Record, build_batch
from ottla.storage.results import Origin
from ottla.transactions.coordinator import Markers

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.coordinators.transaction_shard import TransactionShard

log = logging.getLogger("ottla.transactions")

_KEY = struct.Struct(">hh")  # version, type
_VALUE = struct.Struct(">hi")  # version, coordinator epoch
_ABORT, _COMMIT = 0, 1
# Half a millisecond. Most transactions are narrower, and complete before anybody else is served.
_MARKERS_PER_STEP = 16
_RETRY_MS = 1_000
_FAILED = "completing a transaction failed, will try again"
# The partition is past this transaction: somebody else has ended it there. Trying again cannot help.
_PERMANENT = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)


class Completion:
    """A decided transaction, and where its marker is still missing."""

    def __init__(self, shard: TransactionShard, markers: Markers) -> None:
        self.shard = shard
        self.markers = markers
        self.lacking = dict.fromkeys(markers.partitions)

    @property
    def name(self) -> str:
        return self.markers.transactional_id

    @property
    def is_current(self) -> bool:
        return self.shard.completing.get(self.name) is self

    def write_end(self, now_ms: int) -> None:
        """All markers are there; raises ApiError if the record that says so cannot be written."""
        self.shard.write(self.shard.coordinator.markers_written(self.name, now_ms))
        del self.shard.completing[self.name]


class MarkerWriter:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._background: set[asyncio.Future[None]] = set()
        # By destination, those that wait for it: partitions that did not take a marker, and the coordinator's own
        # partitions that did not take the record of a completion.
        self._queues: dict[TopicPartition, deque[Completion]] = {}
        self._is_retrying = False

    def stop(self) -> None:
        self._queues.clear()
        for task in tuple(self._background):
            task.cancel()

    def _in_background(self, work: Awaitable[None], what: str) -> asyncio.Future[None]:
        task = asyncio.ensure_future(work)
        self._background.add(task)

        def ended(task: asyncio.Future[None]) -> None:
            self._background.discard(task)
            failure = None if task.cancelled() else task.exception()
            if isinstance(failure, ApiError):
                log.error(what, extra={"why": str(failure)})
            elif failure is not None:
                log.error(what, exc_info=failure)

        task.add_done_callback(ended)
        return task

    # --- a decided transaction

    def complete(self, shard: TransactionShard, markers: Markers) -> Steps[None]:
        """The decision is in the log. Raises ApiError if it cannot be made durable; nothing is marked then. What has to
        wait goes on although its client hangs up."""
        if markers.transactional_id in shard.completing:
            return
        waiting = self._broker.turns.start(self._complete(shard, markers))
        if waiting is not None:
            yield asyncio.shield(self._in_background(waiting, _FAILED))

    def _complete(self, shard: TransactionShard, markers: Markers) -> Steps[None]:
        completion = shard.completing[markers.transactional_id] = Completion(shard, markers)
        try:
            if (waiting := shard.log.wait_for_commit()) is not None:
                yield waiting  # no marker may outlive the decision that it stands for
            yield from self._write_all(completion)
        except BaseException:
            if completion.is_current:
                del shard.completing[completion.name]  # `finish` begins anew
            raise

    def finish_soon(self, shard: TransactionShard) -> None:
        if shard.coordinator.unfinished():
            self._in_background(self.finish(shard), _FAILED)

    async def finish(self, shard: TransactionShard) -> None:
        """Go on with what is decided and not complete."""
        for name in [transaction.transactional_id for transaction in shard.coordinator.unfinished()]:
            markers = shard.coordinator.markers_of(name)  # it may have been completed since the last turn
            if markers is None or name in shard.completing or shard.has_resigned:
                continue
            try:
                waiting = self._broker.turns.start(self._complete(shard, markers))
                if waiting is not None:
                    self._in_background(waiting, _FAILED)
            except ApiError as error:
                log.error(_FAILED, extra={"transactional_id": name, "why": str(error)})
            await asyncio.sleep(0)

    def _write_all(self, completion: Completion) -> Steps[None]:
        flushing: list[tuple[TopicPartition, Awaitable[None]]] = []
        batch = self._batch(completion)
        for number, partition in enumerate(tuple(completion.markers.partitions), 1):
            if number % _MARKERS_PER_STEP == 0:
                yield None
            if partition in self._queues:
                self._queues[partition].append(completion)  # others wait for this destination already
                continue
            try:
                waiting = self._write(partition, completion, batch)
            except ApiError as error:
                self._put_off(partition, completion, error)
                continue
            if waiting is None:
                completion.lacking.pop(partition, None)
            else:
                flushing.append((partition, waiting))
        for partition, waiting in flushing:
            try:
                yield waiting  # a marker that is lost after the transaction is complete would be missed for ever
                completion.lacking.pop(partition, None)
            except ApiError as error:
                self._put_off(partition, completion, error)
        self._end(completion)

    def _end(self, completion: Completion) -> None:
        """Once no marker is missing. Until then whoever asks meets CONCURRENT_TRANSACTIONS."""
        if completion.lacking or not completion.is_current:
            return
        try:
            completion.write_end(self._broker.transactions.now_ms())
        except ApiError as error:
            self._put_off(completion.shard.log.topic_partition, completion, error)

    # --- what could not be written

    def _put_off(self, destination: TopicPartition, completion: Completion, error: ApiError) -> None:
        queue = self._queues.get(destination)
        if queue is None:
            what = {"partition": str(destination), "transactional_id": completion.name, "why": str(error)}
            log.error("cannot write the end of a transaction, will try again", extra=what)
            queue = self._queues[destination] = deque()
        queue.append(completion)
        if not self._is_retrying:
            self._is_retrying = True
            self._in_background(self._retry(), "writing markers again failed")

    async def _retry(self) -> None:
        try:
            while self._queues:
                await self._broker.timers.sleep(_RETRY_MS)
                for destination, queue in list(self._queues.items()):
                    await self._drain(destination, queue)
        finally:
            self._is_retrying = False

    async def _drain(self, destination: TopicPartition, queue: deque[Completion]) -> None:
        """The first one that is refused keeps the rest waiting."""
        while queue:
            completion = queue[0]
            try:
                if completion.is_current:
                    await self._write_again(destination, completion)
            except ApiError:
                return  # as before
            except Exception:
                log.exception("writing a marker failed, will try again", extra={"partition": str(destination)})
                return
            queue.popleft()
            await asyncio.sleep(0)
        del self._queues[destination]
        log.info("ends of transactions can be written again", extra={"partition": str(destination)})

    async def _write_again(self, destination: TopicPartition, completion: Completion) -> None:
        if destination in completion.lacking:
            waiting = self._write(destination, completion, self._batch(completion))
            if waiting is not None:
                await waiting
            del completion.lacking[destination]
            self._end(completion)
        else:
            completion.write_end(self._broker.transactions.now_ms())

    # --- one marker

    def _batch(self, completion: Completion) -> bytearray:
        markers, epoch = completion.markers, completion.shard.log.coordinator_epoch
        return control_batch(markers.producer_id, markers.epoch, markers.commit, epoch, self._broker.clock.now_ms())

    def _write(self, where: TopicPartition, completion: Completion, batch: bytearray) -> Awaitable[None] | None:
        """As `write`. A partition that is past the transaction, or gone for good, needs no marker."""
        markers = completion.markers
        topic = self._broker.image.topics.get(where.topic)
        if topic is None or where.partition >= len(topic.partitions):
            return None  # the topic was deleted, and its part of the transaction with it
        try:
            return self.write(where, markers.producer_id, markers.commit, bytearray(batch))
        except ApiError as error:
            if error.code not in _PERMANENT:
                raise
            what = {"transactional_id": completion.name, "partition": str(where), "why": str(error)}
            log.error("a partition refuses the marker of a transaction for good", extra=what)
            return None

    def write(self, where: TopicPartition, producer_id: int, commit: bool, batch: bytearray) -> Awaitable[None] | None:
        """What to wait for if the topic wants its records on disk. Raises ApiError."""
        partition = self._broker.partitions.get(*where)
        if partition is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{where} is not here")
        result = partition.append(batch, self._broker.clock.now_ms(), Origin.COORDINATOR)
        if where.topic == OFFSETS_TOPIC:
            self._broker.groups.end_transaction(where.partition, producer_id, committed=commit)
        return partition.wait_for_commit(result.last_offset + 1)


def control_batch(producer_id: int, epoch: int, commit: bool, coordinator_epoch: int, now_ms: int) -> bytearray:
    """The marker that ends a transaction in one partition."""
    key = _KEY.pack(0, _COMMIT if commit else _ABORT)
    return build_batch(
        [Record(0, now_ms, key, _VALUE.pack(0, coordinator_epoch))],
        producer_id=producer_id,
        producer_epoch=epoch,
        attributes=TRANSACTIONAL_BIT | CONTROL_BIT,
    )
