"""How a transactional batch gets into a partition: its coordinator must know that the partition takes part (KIP-890).

Otherwise a late batch would open a transaction that nobody will ever end, and readers of committed records would wait
behind it for ever. From Produce v12 on the partition is added here; before that the client has done so, and it is
checked. Once a transaction is open in the partition's log its further batches pass without a question.

A request for several partitions adds them all with one record (`add_together`), as Kafka does: before any of them is
looked at, so also those whose records are refused. Their part of the transaction is then empty.

The coordinator may be another broker: then it is asked (`transaction_peers.py`, which puts the partitions of a request
together as well), and just before the append it cannot be asked again. Instead the log tells whether a marker, or the
beginning of a transaction of this producer, has come in between (`Guard`, which alone is Kafka's VerificationGuard).
"""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import suppress
from typing import TYPE_CHECKING

from ottla.broker.coordinators.coordinator_shard import promised
from ottla.broker.coordinators.transactions.transaction_errors import for_produce
from ottla.broker.coordinators.transactions.transaction_peers import Question
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicPartition
from ottla.protocol.produce_frames import WITH_TOPIC_IDS, ProduceRequest, Topics
from ottla.records.batch import HEADER, HEADER_SIZE, TRANSACTIONAL_BIT
from ottla.storage.producers.producer_state import Guard

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.coordinators.transactions.transaction_shard import TransactionShard
    from ottla.broker.partitions.partition import Partition

_ADDS_PARTITIONS_SINCE = 12
_V2 = 2


def add_together(broker: Broker, version: int, request: ProduceRequest, topics: Topics) -> None:
    """Write down that the partitions of this request take part. Each still has to be admitted: that tells what is
    wrong, and waits for the disk where that is asked for."""
    if not request.transactional_id or version < _ADDS_PARTITIONS_SINCE:
        return
    found: dict[tuple[int, int], list[TopicPartition]] = {}
    partitions_by = broker.partitions.by_id if version >= WITH_TOPIC_IDS else broker.partitions.by_name
    for key, pieces in topics:
        for index, records in pieces:
            partition = partitions_by.get(key, index)
            if partition is None or partition.is_internal or records is None or len(records) < HEADER_SIZE:
                continue
            header = HEADER.unpack_from(records)
            if header[5] & TRANSACTIONAL_BIT and not _is_open_in_log(partition, header[9], header[10]):
                found.setdefault((header[9], header[10]), []).append(TopicPartition(partition.topic, index))
    if len(found) != 1:
        return
    (((producer_id, epoch), partitions),) = found.items()
    transactions, name = broker.transactions, request.transactional_id
    if len(partitions) > 1:
        with suppress(ApiError):
            if transactions.coordinator_elsewhere(name) is None:
                transactions.add_partitions(name, producer_id, epoch, partitions, _V2)


def _is_open_in_log(partition: Partition, producer_id: int, epoch: int) -> bool:
    entry = partition.log.producers.entries.get(producer_id)
    if entry is None:
        return False
    # An older epoch is for the log to refuse.
    return epoch < entry.epoch or (entry.epoch == epoch and entry.txn_first_offset >= 0)


class VerificationGuard:
    __slots__ = ("_adds", "_broker", "_epoch", "_guard", "_name", "_partition", "_producer_id", "_sequence", "_version")

    def __init__(
        self,
        broker: Broker,
        partition: Partition,
        version: int,
        transactional_id: str | None,
        producer_id: int,
        epoch: int,
        sequence: int,
    ) -> None:
        self._broker = broker
        self._partition = partition
        self._version = version
        self._name = transactional_id
        self._producer_id = producer_id
        self._epoch = epoch
        self._sequence = sequence
        self._adds = version >= _ADDS_PARTITIONS_SINCE
        # Held while a coordinator elsewhere is asked.
        self._guard: Guard | None = None

    def admit(self) -> Awaitable[None] | None:
        """Raises ApiError with the error of a produce. What to wait for, if anything; then `check_again`."""
        name = self._name
        if name is None:
            raise ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        if _is_open_in_log(self._partition, self._producer_id, self._epoch):
            return None
        if not name:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        self._note_sequence()
        try:
            elsewhere = self._broker.transactions.coordinator_elsewhere(name)
            if elsewhere is not None:
                return self._ask(elsewhere, name)
            waiting = self._add(name) if self._adds else self._check(name)
        except ApiError as error:
            raise self._refused(error) from None
        return None if waiting is None else self._wait(waiting)

    def _ask(self, coordinator: int, name: str) -> Awaitable[None] | None:
        if not (self._adds or self._is_verifying):
            return None
        self._guard = self._partition.log.producers.guard(self._producer_id, self._broker.clock.now_ms())
        question = Question(name, self._producer_id, self._epoch, verify_only=not self._adds)
        asking = self._broker.transactions.peers.ask(coordinator, question, self._partition.log.topic_partition)
        return self._wait(asking)

    async def _wait(self, waiting: Awaitable[None]) -> None:
        try:
            await waiting
        except ApiError as error:
            raise self._refused(error) from None

    def check_again(self) -> None:
        """Just before the append, if something was waited for: the transaction may have ended meanwhile."""
        if not self._name or _is_open_in_log(self._partition, self._producer_id, self._epoch):
            return
        if self._guard is not None:
            if not self._partition.log.producers.is_guarded_by(self._producer_id, self._guard):
                raise ApiError(ErrorCode.INVALID_TXN_STATE, "the transaction ended while its coordinator was asked")
            return
        try:
            self._verify(self._name)
        except ApiError as error:
            raise self._refused(error) from None

    def _note_sequence(self) -> None:
        """The log refuses what is not the first batch of a producer that it does not know."""
        producers = self._partition.log.producers
        if self._producer_id not in producers.entries and (self._adds or self._is_verifying):
            now_ms = self._broker.clock.now_ms()
            producers.verify(self._producer_id, self._epoch, self._sequence, self._adds, now_ms)

    @property
    def _is_verifying(self) -> bool:
        return self._broker.config.transaction_partition_verification_enable

    def _add(self, name: str) -> Awaitable[None] | None:
        partition = self._partition.log.topic_partition
        transactions = self._broker.transactions
        return promised(transactions.add_partitions(name, self._producer_id, self._epoch, [partition], _V2))

    def _check(self, name: str) -> Awaitable[None] | None:
        shard = self._verify(name)
        if shard is None or shard.partition.is_all_committed:
            return None
        return promised(shard.read(lambda _: None))

    def _verify(self, name: str) -> TransactionShard | None:
        if not (self._adds or self._is_verifying):
            return None
        partition = self._partition.log.topic_partition
        return self._broker.transactions.verify(name, self._producer_id, self._epoch, partition)

    def _refused(self, error: ApiError) -> ApiError:
        return ApiError(for_produce(error.code, self._version), error.message)
