"""The transaction coordinator of this broker: a machine for each `__transaction_state` partition, markers, time.

The machines in `ottla.transactions` decide; here the decisions are written down, carried out, and finished after a
crash. On one node the markers go straight into the partitions' logs: between the record that decides a transaction and
the one that completes it the event loop does nothing else, so clients hardly ever meet CONCURRENT_TRANSACTIONS.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from ottla.broker.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from ottla.broker.java_hash import partition_of
from ottla.broker.transaction_log import TransactionLog, control_batch
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicPartition
from ottla.metadata.image import ClusterImage
from ottla.storage.results import Origin
from ottla.transactions.coordinator import Decision, Markers, ProducerIdentity, TransactionCoordinator
from ottla.transactions.states import TxnState
from ottla.transactions.transaction import Transaction

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

log = logging.getLogger("ottla.transactions")


class _NeedsProducerId(Exception):
    """The decision wants a new producer id; taking one may have to wait for the metadata store."""


class Shard:
    """One partition of the coordinator's topic."""

    def __init__(self, coordinator: TransactionCoordinator, log_: TransactionLog) -> None:
        self.coordinator = coordinator
        self.log = log_
        self.is_loading = False


class TransactionService:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._shards: list[Shard] = []
        self._loading: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Call when partitions are there and follow the image."""
        broker, config = self._broker, self._broker.config
        broker.topics.subscribe(self._on_image)
        every = broker.timers.every
        every(
            lambda: config.transaction_abort_timed_out_transaction_cleanup_interval_ms,
            self.abort_overdue,
            "abort overdue transactions",
        )
        every(
            lambda: config.transaction_remove_expired_transaction_cleanup_interval_ms,
            self.forget_unused,
            "forget transactional ids",
        )
        self._take_over(broker.image)

    def stop(self) -> None:
        if self._loading is not None:
            self._loading.cancel()

    # --- finding the machine of a transactional id

    @property
    def has_topic(self) -> bool:
        return bool(self._shards)

    async def make_topic(self) -> None:
        """Done when the first producer looks for its coordinator."""
        if not self._shards:
            await self._broker.topics.ensure_internal(TRANSACTIONS_TOPIC)

    def shard(self, transactional_id: str) -> Shard:
        """Raises NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS."""
        if not self._shards:
            raise ApiError(ErrorCode.NOT_COORDINATOR)
        found = self._shards[partition_of(transactional_id, len(self._shards))]
        if found.is_loading:
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return found

    def all(self) -> Iterator[Transaction]:
        for shard in self._shards:
            yield from shard.coordinator

    @property
    def is_loading(self) -> bool:
        return any(shard.is_loading for shard in self._shards)

    # --- requests

    async def init_producer(
        self, transactional_id: str, timeout_ms: int, expected: ProducerIdentity | None
    ) -> ProducerIdentity:
        shard = self.shard(transactional_id)

        def decide(new_id: Callable[[], int]) -> Decision:
            return shard.coordinator.init_producer(
                transactional_id, timeout_ms, expected, new_id, self._broker.clock.now_ms()
            )

        while True:
            decision = await self._decide(decide)
            reply = self._perform(shard, decision)
            if decision.markers is None:
                break
        await shard.log.durable()
        assert reply is not None
        return reply

    def add_partitions(
        self, transactional_id: str, producer_id: int, epoch: int, partitions: Iterable[TopicPartition], version: int
    ) -> Shard | None:
        """The shard to wait for if something was written."""
        shard = self.shard(transactional_id)
        decision = shard.coordinator.add_partitions(
            transactional_id, producer_id, epoch, partitions, version, self._broker.clock.now_ms()
        )
        self._perform(shard, decision)
        return shard if decision.write is not None else None

    def verify(self, transactional_id: str, producer_id: int, epoch: int, partition: TopicPartition) -> None:
        self.shard(transactional_id).coordinator.verify(transactional_id, producer_id, epoch, partition)

    async def end(
        self, transactional_id: str, producer_id: int, epoch: int, commit: bool, version: int
    ) -> ProducerIdentity:
        shard = self.shard(transactional_id)

        def decide(new_id: Callable[[], int]) -> Decision:
            return shard.coordinator.end(
                transactional_id, producer_id, epoch, commit, version, new_id, self._broker.clock.now_ms()
            )

        reply = self._perform(shard, await self._decide(decide))
        await shard.log.durable()
        assert reply is not None
        return reply

    async def _decide(self, decide: Callable[[Callable[[], int]], Decision]) -> Decision:
        taken: list[int] = []

        def new_id() -> int:
            if not taken:
                raise _NeedsProducerId
            return taken.pop()

        while True:
            try:
                return decide(new_id)
            except _NeedsProducerId:
                taken.append(await self._broker.producer_ids.take())

    # --- carrying out

    def _perform(self, shard: Shard, decision: Decision) -> ProducerIdentity | None:
        if decision.write is None:
            return decision.reply
        shard.log.append(decision.write)
        shard.coordinator.apply(decision.write)
        if decision.markers is None:
            return decision.reply
        return self._complete(shard, decision.markers)

    def _complete(self, shard: Shard, markers: Markers) -> ProducerIdentity | None:
        """Write what is missing of a decided transaction. Fails as a whole: the next tick tries again, and a marker
        that is there twice does no harm."""
        for topic, index in markers.partitions:
            self.write_marker(
                topic, index, markers.producer_id, markers.epoch, markers.commit, shard.log.coordinator_epoch
            )
        done = shard.coordinator.markers_written(markers.transactional_id, self._broker.clock.now_ms())
        return self._perform(shard, done)

    def write_marker(
        self, topic: str, index: int, producer_id: int, epoch: int, commit: bool, coordinator_epoch: int
    ) -> None:
        partition = self._broker.partitions.get(topic, index)
        if partition is None:
            return  # the topic was deleted, and its part of the transaction with it
        now_ms = self._broker.clock.now_ms()
        batch = control_batch(producer_id, epoch, commit, coordinator_epoch, now_ms)
        result = partition.log.append(
            batch, leader_epoch=partition.leader_epoch, now_ms=now_ms, origin=Origin.COORDINATOR
        )
        # A marker repeats what `__transaction_state` says already: nobody has to wait for the disk.
        del result
        partition.advance_high_watermark(0)
        partition.notify()  # the last stable offset may have gone far ahead
        if topic == OFFSETS_TOPIC:
            self._broker.groups.end_transaction(index, producer_id, committed=commit)

    # --- time

    def abort_overdue(self) -> None:
        """Also finishes what a failed write left undone."""
        now_ms = self._broker.clock.now_ms()
        for shard in self._shards:
            if not shard.is_loading:
                for decision in shard.coordinator.abort_overdue(now_ms):
                    self._try(shard, decision)
                self._finish(shard)

    def forget_unused(self) -> None:
        now_ms = self._broker.clock.now_ms()
        for shard in self._shards:
            if not shard.is_loading:
                for decision in shard.coordinator.forget_unused(now_ms):
                    self._try(shard, decision)

    def _try(self, shard: Shard, decision: Decision) -> None:
        assert decision.write is not None
        what = {"transactional_id": decision.write.transactional_id, "state": decision.write.state.text}
        try:
            self._perform(shard, decision)
        except ApiError as error:
            log.error("cannot expire, will try again", extra={**what, "why": str(error)})
        else:
            if decision.write.state is TxnState.PREPARE_ABORT:
                log.info("aborted a transaction that was open for too long", extra=what)

    def _finish(self, shard: Shard) -> None:
        for markers in shard.coordinator.unfinished():
            try:
                self._complete(shard, markers)
            except ApiError as error:
                what = {"transactional_id": markers.transactional_id, "why": str(error)}
                log.error("cannot complete a transaction, will try again", extra=what)

    # --- taking over partitions

    def _on_image(self, old: ClusterImage, new: ClusterImage) -> None:
        if TRANSACTIONS_TOPIC in old.topics and TRANSACTIONS_TOPIC not in new.topics:
            self.stop()
            self._shards = []
        elif not self._shards:
            self._take_over(new)

    def _take_over(self, image: ClusterImage) -> None:
        if TRANSACTIONS_TOPIC not in image.topics:
            return
        config = self._broker.config
        for partition in self._broker.partitions.of_topic(TRANSACTIONS_TOPIC):
            coordinator = TransactionCoordinator(
                timeout_ms_max=config.transaction_max_timeout_ms,
                id_expiration_ms=config.transactional_id_expiration_ms,
            )
            shard = Shard(coordinator, TransactionLog(partition, self._broker.clock))
            shard.is_loading = partition.log.log_start_offset != partition.log.log_end_offset
            self._shards.append(shard)
        to_load = [shard for shard in self._shards if shard.is_loading]
        if to_load:
            self._loading = self._broker.loop.create_task(self._load(to_load), name="load transactions")

    async def _load(self, shards: list[Shard]) -> None:
        for shard in shards:
            try:
                await shard.log.load_into(shard.coordinator)
            except (ApiError, OSError):
                log.exception("transactions of a partition cannot be loaded and stay unavailable")
                continue
            shard.is_loading = False
            self._finish(shard)
