"""The transaction coordinator of this broker: a machine for each `__transaction_state` partition, and time.

The machines in `ottla.transactions` decide; here the decisions are written down, carried out, and finished after a
crash. On one node the markers go straight into the partitions' logs: between the record that decides a transaction and
the one that completes it the event loop does nothing else (unless a topic wants its records on disk), so clients hardly
ever meet CONCURRENT_TRANSACTIONS. Methods that give `Steps` are carried out with `steps.run`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ottla.broker.internal_topics import TRANSACTIONS_TOPIC
from ottla.broker.java_hash import partition_of
from ottla.broker.transaction_log import TransactionLog
from ottla.broker.transaction_markers import MarkerWriter, Shard
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicPartition
from ottla.common.steps import Steps, run
from ottla.metadata.image import ClusterImage
from ottla.transactions.coordinator import Decision, NewProducerId, ProducerIdentity, TransactionCoordinator

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

log = logging.getLogger("ottla.transactions")


class _NeedsProducerId(Exception):
    """The decision wants a new producer id; taking one may have to wait for the metadata store."""


class TransactionService:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._shards: list[Shard] = []
        self._loading: asyncio.Task[None] | None = None
        self.markers = MarkerWriter(broker)
        # Transactions age by a clock that no one can set: wall time at the start, and what has passed since then.
        self._ahead_ms = broker.clock.now_ms() - broker.clock.monotonic_ms()

    def now_ms(self) -> int:
        return self._broker.clock.monotonic_ms() + self._ahead_ms

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
        self.markers.stop()
        for shard in self._shards:
            shard.resign()

    # --- finding the machine of a transactional id

    @property
    def has_topic(self) -> bool:
        return bool(self._shards)

    async def make_topic(self) -> None:
        """Done when the first producer looks for its coordinator."""
        await self._broker.topics.ensure_internal(TRANSACTIONS_TOPIC)

    def shard(self, transactional_id: str) -> Shard:
        """Raises NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS."""
        if not self._shards:
            raise ApiError(ErrorCode.NOT_COORDINATOR)
        found = self._shards[partition_of(transactional_id, len(self._shards))]
        if found.is_loading:
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return found

    def all_shards(self) -> list[Shard]:
        return list(self._shards)

    @property
    def is_loading(self) -> bool:
        return any(shard.is_loading for shard in self._shards)

    # --- requests

    def init_producer(
        self, transactional_id: str, timeout_ms: int, expected: ProducerIdentity | None
    ) -> Steps[ProducerIdentity]:
        shard = self.shard(transactional_id)

        def decide(new_id: NewProducerId) -> Decision:
            return shard.coordinator.init_producer(transactional_id, timeout_ms, expected, new_id, self.now_ms())

        while True:
            decision = yield from self._decide(decide)
            yield from self._perform(shard, decision)
            if decision.reply is not None:
                return decision.reply

    def add_partitions(
        self, transactional_id: str, producer_id: int, epoch: int, partitions: Iterable[TopicPartition], version: int
    ) -> Steps[None]:
        yield from self.durable(self.note_partitions(transactional_id, producer_id, epoch, partitions, version))

    def note_partitions(
        self, transactional_id: str, producer_id: int, epoch: int, partitions: Iterable[TopicPartition], version: int
    ) -> Shard:
        """As `add_partitions`, without waiting for the disk."""
        shard = self.shard(transactional_id)
        decision = shard.coordinator.add_partitions(
            transactional_id, producer_id, epoch, partitions, version, self.now_ms()
        )
        if decision.write is not None:
            shard.write(decision.write)
        return shard

    def verify(self, transactional_id: str, producer_id: int, epoch: int, partition: TopicPartition) -> Shard:
        shard = self.shard(transactional_id)
        shard.coordinator.verify(transactional_id, producer_id, epoch, partition)
        return shard

    def end(
        self, transactional_id: str, producer_id: int, epoch: int, commit: bool, version: int
    ) -> Steps[ProducerIdentity]:
        shard = self.shard(transactional_id)

        def decide(new_id: NewProducerId) -> Decision:
            return shard.coordinator.end(transactional_id, producer_id, epoch, commit, version, new_id, self.now_ms())

        decision = yield from self._decide(decide)
        yield from self._perform(shard, decision)
        assert decision.reply is not None
        return decision.reply

    def _decide(self, decide: Callable[[NewProducerId], Decision]) -> Steps[Decision]:
        taken: list[int] = []

        def new_id() -> int:
            if not taken:
                raise _NeedsProducerId
            return taken.pop()

        while True:
            try:
                return decide(new_id)
            except _NeedsProducerId:
                pass
            taken.append((yield self._broker.producer_ids.take()))

    def _perform(self, shard: Shard, decision: Decision) -> Steps[None]:
        if decision.write is not None:
            shard.write(decision.write)
        if decision.markers is not None:
            yield from self.markers.complete(shard, decision.markers)
        else:
            yield from self.durable(shard)

    def durable(self, shard: Shard) -> Steps[None]:
        """Before an answer goes out, also if nothing was written for it: what it stands on may be on its way."""
        if (waiting := shard.log.committed()) is not None:
            yield waiting

    # --- time

    async def abort_overdue(self) -> None:
        """Also finishes what a failed write left undone."""
        for shard in list(self._shards):
            if shard.is_loading:
                continue
            for transactional_id in shard.coordinator.overdue(self.now_ms()):
                try:
                    waiting = run(self._abort_overdue(shard, transactional_id))
                    if waiting is not None:
                        await waiting
                except ApiError as error:
                    what = {"transactional_id": transactional_id, "why": str(error)}
                    log.error("cannot abort an overdue transaction, will try again", extra=what)
                except Exception:  # of one id; the others must not suffer for it
                    log.exception("aborting failed, will try again", extra={"transactional_id": transactional_id})
            await self.markers.finish(shard)

    def _abort_overdue(self, shard: Shard, transactional_id: str) -> Steps[None]:
        decision = yield from self._decide(
            lambda new_id: shard.coordinator.abort_overdue(transactional_id, new_id, self.now_ms())
        )
        yield from self._perform(shard, decision)
        log.info("aborted a transaction that was open for too long", extra={"transactional_id": transactional_id})

    def forget_unused(self) -> None:
        for shard in self._shards:
            if shard.is_loading:
                continue
            for forgotten in shard.coordinator.unused(self.now_ms()):
                try:
                    shard.write(forgotten)
                except ApiError as error:
                    log.error("cannot forget unused transactional ids, will try again", extra={"why": str(error)})
                    break  # other partitions may be on other disks

    # --- taking over partitions

    def _on_image(self, old: ClusterImage, new: ClusterImage) -> None:
        if old.features != new.features:
            for shard in self._shards:
                shard.coordinator.version = _version(new)
        if TRANSACTIONS_TOPIC in old.topics and TRANSACTIONS_TOPIC not in new.topics:
            self.stop()
            self._shards = []
        elif not self._shards:
            self._take_over(new)

    def _take_over(self, image: ClusterImage) -> None:
        if TRANSACTIONS_TOPIC not in image.topics:
            return
        config, shards = self._broker.config, list[Shard]()
        for partition in self._broker.partitions.of_topic(TRANSACTIONS_TOPIC):
            coordinator = TransactionCoordinator(
                timeout_ms_max=config.transaction_max_timeout_ms,
                id_expiration_ms=config.transactional_id_expiration_ms,
                version=_version(image),
            )
            shard = Shard(coordinator, TransactionLog(partition, self._broker.clock))
            shard.is_loading = partition.log.log_start_offset != partition.log.log_end_offset
            shards.append(shard)
        self._shards = shards
        to_load = [shard for shard in self._shards if shard.is_loading]
        if to_load:
            self._loading = self._broker.loop.create_task(self._load(to_load), name="load transactions")

    async def _load(self, shards: list[Shard]) -> None:
        for shard in shards:
            try:
                await shard.log.load_into(shard.coordinator, self.now_ms())
            except Exception:  # of one partition; the others must not suffer for it
                log.exception("transactions of a partition cannot be loaded and stay unavailable")
                continue
            shard.is_loading = False
            await self.markers.finish(shard)


def _version(image: ClusterImage) -> int:
    return image.features.get("transaction.version", 0)
