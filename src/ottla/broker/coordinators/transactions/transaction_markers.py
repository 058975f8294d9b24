"""Completing decided transactions: a marker in each partition, then the record that says so.

A marker goes straight into the log of a partition that is led here; `marker_channels.py` takes those for others. In a
cluster the client is answered when the decision is committed; it waits a moment longer only to find its transaction
complete, as it mostly is by then.

A marker that cannot be written (its disk is full or gone) keeps its transaction undone. It waits in the queue of its
destination, the partition, and each destination is tried with one marker a second until it takes one; then the rest of
its queue follows. So what a broken disk costs does not depend on how many transactions wait for it, and a destination
that takes long keeps no other waiting. Markers that are written are not written twice, or a broken disk would fill the
good ones. After a restart all of them are written again, which does no harm: a marker without an open transaction ends
nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING

from ottla.broker.coordinators.coordinator_log import check_replicas
from ottla.broker.coordinators.coordinator_shard import give
from ottla.broker.coordinators.internal_topics import OFFSETS_TOPIC
from ottla.broker.coordinators.transactions.marker_channels import PERMANENT, MarkerChannels
from ottla.broker.coordinators.transactions.uncommitted_markers import UncommittedMarkers
from ottla.broker.turns import Pause
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicPartition
from ottla.common.result import Result
from ottla.common.steps import Steps
from ottla.records.marker import control_batch
from ottla.storage.results import Origin
from ottla.transactions.coordinator import Markers

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.coordinators.transactions.transaction_shard import TransactionShard

log = logging.getLogger("ottla.transactions")

# Half a millisecond. Most transactions are narrower, and complete before anybody else is served.
_MARKERS_PER_STEP = 16
_RETRY_MS = 1_000
# The timer of a decision that is not committed yet.
_COMPLETE = "complete"
_FAILED = "completing a transaction failed, will try again"
# Markers take some milliseconds. Who is answered before they are there meets CONCURRENT_TRANSACTIONS with the next
# transaction, and then waits longer than this.
_ANSWER_WITHIN_S = 0.1


class Completion:
    """A decided transaction, and where its marker is still missing."""

    def __init__(self, shard: TransactionShard, markers: Markers) -> None:
        self.shard = shard
        self.markers = markers
        self.name = markers.transactional_id
        self.lacking = dict.fromkeys(markers.partitions)
        # Markers are being written; after that they wait for destinations that did not take them.
        self.is_writing = True
        # Who waits for it.
        self.over: asyncio.Future[None] | None = None

    @property
    def is_current(self) -> bool:
        return self.shard.completing.get(self.name) is self

    def write_end(self, now_ms: int) -> None:
        """All markers are there; raises ApiError if the record that says so cannot be written."""
        self.shard.write(self.shard.coordinator.markers_written(self.name, now_ms)).check()
        self.close()

    def close(self) -> None:
        """It is complete, or somebody else's to complete."""
        if self.is_current:
            del self.shard.completing[self.name]
        self.tell()

    def tell(self) -> None:
        if self.over is not None:
            give(self.over, None)


class MarkerWriter:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._channels = MarkerChannels(broker, self._route, self._arrived, self.in_background)
        # Those that other coordinators have asked us for.
        self.uncommitted = UncommittedMarkers()
        self._background: set[asyncio.Future[None]] = set()
        # By destination, those that wait for it: partitions that did not take a marker, and the coordinator's own
        # partitions that did not take the record of a completion.
        self._queues: dict[TopicPartition, deque[Completion]] = {}
        # Those of them that are being written again: it lasts until their replicas and disks have it.
        self._draining: set[TopicPartition] = set()
        self._is_retrying = False

    def stop(self) -> None:
        self._queues.clear()
        self._channels.stop()
        for task in tuple(self._background):
            task.cancel()

    def in_background(self, work: Awaitable[None], what: str) -> asyncio.Future[None]:
        """Until this broker stops; `what` is logged with the reason when it fails."""
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

    def on_decided(self, shard: TransactionShard, markers: Markers, error: ErrorCode, out: Result) -> None:
        """The decision is committed, and no marker may outlive it; or it cannot be now. Then it stays in the log, and
        is committed when the replicas are back. What has to wait goes on although its client hangs up."""
        name = markers.transactional_id
        if error:
            if shard.coordinator.markers_of(name) is not None:
                out.schedule((_COMPLETE, name, ""), _RETRY_MS)
        elif name not in shard.completing:
            completion = shard.completing[name] = Completion(shard, markers)
            waiting = self._broker.turns.start(self._complete(completion))
            if waiting is not None:
                self.in_background(waiting, _FAILED)

    def until_answer(self, completion: Completion) -> Steps[None]:
        """On one node a client waits until all markers are written that can be."""
        is_clustered = self._broker.is_clustered
        if not (is_clustered or completion.is_writing):
            return
        if completion.over is None:
            completion.over = self._broker.loop.create_future()
        yield asyncio.wait({completion.over}, timeout=_ANSWER_WITHIN_S if is_clustered else None)

    def _complete(self, completion: Completion) -> Steps[None]:
        try:
            yield from self._write_all(completion)
        except BaseException:
            completion.close()  # `finish` begins anew
            raise
        completion.is_writing = False
        if completion.over is not None and not self._broker.is_clustered:
            completion.tell()

    def finish_soon(self, shard: TransactionShard) -> None:
        if shard.coordinator.unfinished():
            self.in_background(self.finish(shard), _FAILED)

    async def finish(self, shard: TransactionShard) -> None:
        """Go on with what is decided and not complete."""
        for markers in shard.coordinator.unfinished():
            shard.complete(markers.transactional_id)
            await asyncio.sleep(0)

    def _write_all(self, completion: Completion) -> Steps[None]:
        flushing: list[tuple[TopicPartition, Awaitable[None]]] = []
        elsewhere: dict[int, list[TopicPartition]] = {}
        absent: list[TopicPartition] = []
        batch = self._batch(completion)
        for number, partition in enumerate(tuple(completion.markers.partitions), 1):
            if number % _MARKERS_PER_STEP == 0:
                yield None
            leader = self._leader_of(partition)
            if leader is None:
                absent.append(partition)
                continue
            if leader != self._broker.node_id:
                elsewhere.setdefault(leader, []).append(partition)
                continue
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
        for leader, partitions in elsewhere.items():
            self._channels.add(leader, completion, partitions)
        self._forgo(completion, absent)
        if flushing:  # each by itself: one that is lost is written again while others are still waited for
            yield asyncio.gather(*(self._wait_for(partition, completion, waiting) for partition, waiting in flushing))
        self._end(completion)

    async def _wait_for(self, where: TopicPartition, completion: Completion, waiting: Awaitable[None]) -> None:
        try:
            await waiting  # a marker that is lost after the transaction is complete would be missed for ever
        except ApiError as error:
            self._not_written(where, completion, error)
        else:
            completion.lacking.pop(where, None)

    def _end(self, completion: Completion) -> None:
        """Once no marker is missing. Until then whoever asks meets CONCURRENT_TRANSACTIONS."""
        if completion.lacking or not completion.is_current:
            return
        try:
            completion.write_end(self._broker.transactions.now_ms())
        except ApiError as error:
            self._put_off(completion.shard.partition.log.topic_partition, completion, error)

    # --- the way of a marker

    def on_image(self) -> None:
        """Leaders may have moved."""
        self._channels.on_image()

    def _leader_of(self, where: TopicPartition) -> int | None:
        """None when there is no such partition."""
        topic = self._broker.image.topics.get(where.topic)
        if topic is not None and where.partition < len(topic.partitions):
            return topic.partitions[where.partition].leader if self._broker.is_clustered else self._broker.node_id
        return None

    def _forgo(self, completion: Completion, absent: Sequence[TopicPartition]) -> None:
        """The topic was deleted, and its part of the transaction with it. In a cluster it may also be one that we have
        not heard of yet, and the transaction one of the coordinator before us."""
        if absent and self._broker.is_clustered:
            self.in_background(self._forgo_for_sure(completion, absent), "looking for deleted topics failed")
        else:
            for where in absent:
                completion.lacking.pop(where, None)

    async def _forgo_for_sure(self, completion: Completion, absent: Sequence[TopicPartition]) -> None:
        while True:
            try:
                await self._broker.catch_up()
                break
            except Exception as error:
                log.warning("cannot tell whether topics were deleted, will try again", extra={"why": str(error)})
                await self._broker.timers.sleep(_RETRY_MS)
        for where in absent:
            if self._leader_of(where) is None:
                self._arrived(completion, where)
            else:
                self._route(completion, where)

    def _route(self, completion: Completion, where: TopicPartition) -> None:
        """Begin again with a marker that is still missing: somebody else may lead its partition now."""
        if not completion.is_current or where not in completion.lacking:
            return
        leader = self._leader_of(where)
        if leader is None:
            self._forgo(completion, [where])
        elif leader != self._broker.node_id:
            self._channels.add(leader, completion, (where,))
        elif where in self._queues:
            self._queues[where].append(completion)
        else:
            self.in_background(self._write_later(completion, where), "writing a marker failed")

    async def _write_later(self, completion: Completion, where: TopicPartition) -> None:
        try:
            if (waiting := self._write(where, completion, self._batch(completion))) is not None:
                await waiting
        except ApiError as error:
            self._not_written(where, completion, error)
        else:
            self._arrived(completion, where)

    def _arrived(self, completion: Completion, where: TopicPartition, code: ErrorCode = ErrorCode.NONE) -> None:
        if code is not ErrorCode.NONE:
            self._refused_for_good(completion, where, code.name)
        completion.lacking.pop(where, None)
        self._end(completion)

    def _refused_for_good(self, completion: Completion, where: TopicPartition, why: str) -> None:
        what = {"transactional_id": completion.name, "partition": str(where), "why": why}
        log.error("a partition refuses the marker of a transaction for good", extra=what)

    def _not_written(self, where: TopicPartition, completion: Completion, error: ApiError) -> None:
        if self._leader_of(where) == self._broker.node_id:
            self._put_off(where, completion, error)
        else:
            self._route(completion, where)

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
            self.in_background(self._retry(), "writing markers again failed")

    async def _retry(self) -> None:
        pause = Pause()
        try:
            while self._queues:
                await self._broker.timers.sleep(_RETRY_MS)
                for destination, queue in list(self._queues.items()):
                    if destination not in self._draining:
                        waiting = self._broker.turns.start(self._drain(destination, queue))
                        if waiting is not None:
                            self.in_background(waiting, "writing markers again failed")
                        await pause.when_due()
        finally:
            self._is_retrying = False

    def _drain(self, destination: TopicPartition, queue: deque[Completion]) -> Steps[None]:
        """The first one that is refused keeps the rest of its destination waiting."""
        self._draining.add(destination)
        try:
            while queue:
                completion = queue[0]
                if completion.is_current:
                    yield from self._write_again(destination, completion)
                queue.popleft()
                yield None
        except ApiError:
            return  # as before
        except Exception:
            log.exception("writing a marker failed, will try again", extra={"partition": str(destination)})
            return
        finally:
            self._draining.discard(destination)
        self._queues.pop(destination, None)
        log.info("ends of transactions can be written again", extra={"partition": str(destination)})

    def _write_again(self, destination: TopicPartition, completion: Completion) -> Steps[None]:
        if destination not in completion.lacking:
            completion.write_end(self._broker.transactions.now_ms())
        elif self._leader_of(destination) != self._broker.node_id:
            self._route(completion, destination)
            self._end(completion)
        else:
            waiting = self._write(destination, completion, self._batch(completion))
            if waiting is not None:
                yield waiting
            self._arrived(completion, destination)

    # --- one marker

    def _batch(self, completion: Completion) -> bytearray:
        markers, epoch = completion.markers, completion.shard.partition.leader_epoch
        return control_batch(markers.producer_id, markers.epoch, markers.commit, epoch, self._broker.clock.now_ms())

    def _write(self, where: TopicPartition, completion: Completion, batch: bytearray) -> Awaitable[None] | None:
        """As `write`. A partition that is past the transaction needs no marker."""
        markers = completion.markers
        try:
            return self.write(where, markers.producer_id, markers.commit, bytearray(batch))
        except ApiError as error:
            if error.code not in PERMANENT:
                raise
            self._refused_for_good(completion, where, str(error))
            return None

    def write(self, where: TopicPartition, producer_id: int, commit: bool, batch: bytearray) -> Awaitable[None] | None:
        """What to wait for until it is committed, if anything. Raises ApiError."""
        partition = self._broker.partitions.get(*where)
        if partition is None:
            raise ApiError(self._broker.partitions.error_for(*where), f"{where} is not here")
        check_replicas(partition)
        result = partition.append(batch, self._broker.clock.now_ms(), Origin.COORDINATOR)
        if where.topic == OFFSETS_TOPIC:
            self._broker.groups.end_transaction(where.partition, producer_id, committed=commit)
        return partition.wait_for_commit(result.last_offset + 1)
