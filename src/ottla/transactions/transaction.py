"""The durable value of one transactional id, and its record in `__transaction_state` (Kafka's format)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from ottla.common.ids import TopicPartition, partitions_by_topic
from ottla.protocol import codec
from ottla.protocol.messages import TransactionLogKey, TransactionLogValue
from ottla.transactions.states import TxnState

NO_PRODUCER = -1
NO_EPOCH = -1
EPOCH_MAX = 32767
_KEY_TYPE = 0  # every key starts with its type as an int16


class Transaction(NamedTuple):
    """A tuple, because each step of a transaction makes a new one: dataclasses take four times as long for that."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TxnState = TxnState.EMPTY
    # Sorted, so that records and markers come in one order.
    partitions: tuple[TopicPartition, ...] = ()
    started_ms: int = -1
    updated_ms: int = -1
    # What the client held before the last step: a repeated request is told from a stale one by it (KIP-360).
    last_epoch: int = NO_EPOCH
    previous_producer_id: int = NO_PRODUCER
    # Set while a transaction ends with the last epoch of its producer id (KIP-890).
    next_producer_id: int = NO_PRODUCER
    # The protocol of the client's last step: 2 ends each transaction with a new epoch.
    client_version: int = 0

    @property
    def is_epoch_exhausted(self) -> bool:
        """One epoch is kept back, so that whoever holds the last one can still be fenced."""
        return self.producer_epoch >= EPOCH_MAX - 1

    @property
    def identity_after_end(self) -> tuple[int, int]:
        """Producer id and epoch once the transaction that is being ended is over."""
        if self.next_producer_id != NO_PRODUCER:
            return self.next_producer_id, 0
        return self.producer_id, self.producer_epoch

    def is_successor_of(self, producer_id: int, epoch: int) -> bool:
        """The producer id is new, because this last epoch of the one before was used up."""
        return producer_id == self.previous_producer_id and self.producer_epoch == 0 and epoch >= EPOCH_MAX - 1

    def was_ended_at(self, producer_id: int, epoch: int) -> bool:
        """The last transaction is over and was open under this epoch. Only the end of a v2 transaction leaves the next
        epoch behind; after any other bump whoever held the old one is shut out."""
        if self.client_version < 2 or self.state not in (TxnState.COMPLETE_COMMIT, TxnState.COMPLETE_ABORT):
            return False
        return self.is_successor_of(producer_id, epoch) or (
            self.producer_id == producer_id and self.producer_epoch == epoch + 1
        )

    def with_partitions(self, added: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
        return tuple(sorted({*self.partitions, *added}))


@lru_cache(maxsize=4096)
def encode_key(transactional_id: str) -> bytes:
    key = TransactionLogKey(transactional_id=transactional_id)
    return bytes(codec.encode(key, 0, _KEY_TYPE.to_bytes(2, "big")))


def decode_key(raw: bytes) -> str | None:
    """None for a kind of key that this version does not know."""
    if int.from_bytes(raw[:2], "big") != _KEY_TYPE:
        return None
    key: TransactionLogKey = codec.decode("TransactionLogKey", 0, raw, 2)
    return key.transactional_id


def encode_value(transaction: Transaction, transaction_version: int = 2) -> bytes:
    """Before transaction.version 1 the record has no tagged fields, so that an older broker can read it."""
    version = 0 if transaction_version == 0 else 1
    schema = TransactionLogValue.PartitionsSchema
    topics = partitions_by_topic(transaction.partitions)
    partitions = [schema(topic=topic, partition_ids=ids) for topic, ids in topics.items()]
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        # As Kafka: null, not empty, when no transaction was ever open.
        transaction_partitions=None if transaction.state is TxnState.EMPTY else partitions,
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.started_ms,
        client_transaction_version=transaction.client_version,
    )
    return bytes(codec.encode(value, version, version.to_bytes(2, "big")))


def decode_value(transactional_id: str, raw: bytes) -> Transaction:
    version = int.from_bytes(raw[:2], "big")
    value: TransactionLogValue = codec.decode("TransactionLogValue", version, raw, 2)
    partitions = [
        TopicPartition(topic.topic, partition)
        for topic in value.transaction_partitions or ()
        for partition in topic.partition_ids
    ]
    return Transaction(
        transactional_id=transactional_id,
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=TxnState(value.transaction_status),
        partitions=tuple(sorted(partitions)),
        started_ms=value.transaction_start_timestamp_ms,
        updated_ms=value.transaction_last_update_timestamp_ms,
        last_epoch=_last_epoch(value),
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        client_version=value.client_transaction_version,
    )


def _last_epoch(value: TransactionLogValue) -> int:
    """The record does not carry it. After an ending under transactions v2 it is known; otherwise a retry that spans a
    restart of the broker is fenced and the client begins anew, as with Kafka."""
    if value.client_transaction_version >= 2 and value.transaction_status in (2, 3, 4, 5):
        if value.producer_epoch == 0:
            return EPOCH_MAX - 1
        return value.producer_epoch - 1
    return NO_EPOCH


__all__ = [
    "EPOCH_MAX",
    "NO_EPOCH",
    "NO_PRODUCER",
    "Transaction",
    "decode_key",
    "decode_value",
    "encode_key",
    "encode_value",
]
