"""The transaction coordinator of this broker: a shard for each `__transaction_state` partition, and time.

The machines in `ottla.transactions` decide; here the decisions are written down, carried out, and finished after a
crash. On one node the markers go straight into the partitions' logs: between the record that decides a transaction and
the one that completes it the event loop does nothing else (unless a topic wants its records on disk), so clients hardly
ever meet CONCURRENT_TRANSACTIONS. In a cluster a shard moves with the leader of its partition, and `peers` asks those
on other brokers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from ottla.broker.coordinators.coordinator_shard import answered
from ottla.broker.coordinators.internal_topics import TRANSACTIONS_TOPIC
from ottla.broker.coordinators.runtime import CoordinatorRuntime
from ottla.broker.coordinators.transactions.transaction_markers import MarkerWriter
from ottla.broker.coordinators.transactions.transaction_peers import TransactionPeers
from ottla.broker.coordinators.transactions.transaction_shard import TransactionShard
from ottla.broker.partitions.partition import Partition
from ottla.broker.turns import Pause
from ottla.common.errors import ApiError
from ottla.common.ids import TopicPartition
from ottla.common.result import Result
from ottla.common.steps import Steps
from ottla.metadata.image import ClusterImage
from ottla.transactions.coordinator import Decision, NewProducerId, ProducerIdentity, TransactionCoordinator
from ottla.transactions.states import TxnState
from ottla.transactions.transaction import Transaction, encode_key, encode_value

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

log = logging.getLogger("ottla.transactions")


class _NeedsProducerId(Exception):
    """The decision wants a new producer id; taking one may have to wait for the metadata store."""


class TransactionService:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.runtime = CoordinatorRuntime(broker, TRANSACTIONS_TOPIC, log, self._make_shard)
        self.shard = self.runtime.shard
        self.now_ms = self.runtime.now_ms
        self.markers = MarkerWriter(broker)
        self.peers = TransactionPeers(broker)

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
        self.runtime.follow(broker.image)

    def stop(self) -> None:
        self.runtime.stop()
        self.markers.stop()
        self.peers.stop()

    # --- requests

    def init_producer(
        self, transactional_id: str, timeout_ms: int, expected: ProducerIdentity | None
    ) -> Steps[ProducerIdentity]:
        shard = self.shard(transactional_id)

        def decide(new_id: NewProducerId) -> Decision:
            return shard.coordinator.init_producer(transactional_id, timeout_ms, expected, new_id, self.now_ms())

        while True:
            reply = yield from self._decided(shard, transactional_id, decide)
            if reply is not None:
                return reply

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Iterable[TopicPartition],
        transaction_version: int,
    ) -> Result:
        shard = self.shard(transactional_id)
        return shard.carry_out(
            shard.coordinator.add_partitions(
                transactional_id, producer_id, epoch, partitions, transaction_version, self.now_ms()
            )
        )

    def verify(
        self, transactional_id: str, producer_id: int, epoch: int, partition: TopicPartition
    ) -> TransactionShard:
        shard = self.shard(transactional_id)
        shard.coordinator.verify(transactional_id, producer_id, epoch, partition)
        return shard

    def coordinator_elsewhere(self, transactional_id: str) -> int | None:
        """The broker that coordinates this id, unless it is we who do. Raises COORDINATOR_NOT_AVAILABLE when nobody
        does now."""
        if not self._broker.is_clustered:
            return None
        leader = self.runtime.leader_of(transactional_id)
        return None if leader == self._broker.node_id else leader

    def end(
        self, transactional_id: str, producer_id: int, epoch: int, commit: bool, transaction_version: int
    ) -> Steps[ProducerIdentity]:
        shard = self.shard(transactional_id)

        def decide(new_id: NewProducerId) -> Decision:
            return shard.coordinator.end(
                transactional_id, producer_id, epoch, commit, transaction_version, new_id, self.now_ms()
            )

        reply = yield from self._decided(shard, transactional_id, decide)
        assert reply is not None
        return reply

    def _decided(
        self, shard: TransactionShard, transactional_id: str, decide: Callable[[NewProducerId], Decision]
    ) -> Steps[ProducerIdentity | None]:
        """The reply, when what was decided is committed and its markers have had their time."""
        taken: list[int] = []

        def new_id() -> int:
            if not taken:
                raise _NeedsProducerId
            return taken.pop()

        while True:
            try:
                out = shard.carry_out(decide(new_id))
                break
            except _NeedsProducerId:
                pass
            taken.append((yield self._broker.producer_ids.take()))
        reply: ProducerIdentity | None = yield from answered(out)
        if transactional_id in shard.completing:
            yield from self.markers.until_answer(shard.completing[transactional_id])
        return reply

    # --- time

    async def abort_overdue(self) -> None:
        """Also finishes what a failed write left undone. What has to wait, for replicas, disks or a producer id, goes
        on by itself: neither the others nor the next time wait for it."""
        pause = Pause()
        for shard in self.runtime.loaded():
            for transactional_id in shard.coordinator.overdue(self.now_ms()):
                if transactional_id in shard.aborting:
                    continue
                waiting = self._broker.turns.start(self._abort_overdue(shard, transactional_id))
                if waiting is not None:
                    self.markers.in_background(waiting, "aborting an overdue transaction failed")
                await pause.when_due()
            await self.markers.finish(shard)

    def _abort_overdue(self, shard: TransactionShard, transactional_id: str) -> Steps[None]:
        what = {"transactional_id": transactional_id}
        shard.aborting.add(transactional_id)
        try:
            yield from self._decided(
                shard,
                transactional_id,
                lambda new_id: shard.coordinator.abort_overdue(transactional_id, new_id, self.now_ms()),
            )
        except ApiError as error:
            log.error("cannot abort an overdue transaction, will try again", extra={**what, "why": str(error)})
        except Exception:  # of one id; the others must not suffer for it
            log.exception("aborting failed, will try again", extra=what)
        else:
            log.info("aborted a transaction that was open for too long", extra=what)
        finally:
            shard.aborting.discard(transactional_id)

    def forget_unused(self) -> None:
        for shard in self.runtime.loaded():
            for forgotten in shard.coordinator.unused(self.now_ms()):
                out = shard.write(forgotten)
                if out.error:
                    log.error("cannot forget unused transactional ids, will try again", extra={"why": out.message})
                    break  # other partitions may be on other disks

    # --- taking over partitions

    def _on_image(self, old: ClusterImage, new: ClusterImage) -> None:
        if old.features != new.features:
            for shard in self.runtime.all():
                shard.coordinator.version = _version(new)
        self.runtime.follow(new)
        if old.topics is not new.topics:
            self.markers.on_image()
            self.peers.on_image()

    def _make_shard(self, partition: Partition) -> TransactionShard:
        config = self._broker.config
        coordinator = TransactionCoordinator(
            timeout_ms_max=config.transaction_max_timeout_ms,
            id_expiration_ms=config.transactional_id_expiration_ms,
            version=_version(self._broker.image),
        )
        log_ = self.runtime.log_of(partition, partial(_serialize, coordinator))
        broker = self._broker
        return TransactionShard(coordinator, log_, broker.clock, broker.call_later, self.markers, self.now_ms)


def _serialize(coordinator: TransactionCoordinator, transaction: Transaction) -> tuple[bytes, bytes | None]:
    value = None if transaction.state is TxnState.DEAD else encode_value(transaction, coordinator.version)
    return encode_key(transaction.transactional_id), value


def _version(image: ClusterImage) -> int:
    return image.features.get("transaction.version", 0)
