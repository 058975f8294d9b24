"""How a transactional batch gets into a partition: its coordinator must know that the partition takes part (KIP-890).

Otherwise a late batch would open a transaction that nobody will ever end, and readers of committed records would wait
behind it for ever. From Produce v12 on the partition is added here; before that the client has done so, and it is
checked. Once a transaction is open in the partition's log its further batches pass without a question.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from ottla.broker.steps import run
from ottla.broker.transaction_errors import for_produce
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicPartition

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.partitions import Partition

_ADDS_PARTITIONS_SINCE = 12
_V2 = 2


class Entrance:
    __slots__ = ("_adds", "_broker", "_epoch", "_name", "_partition", "_producer_id", "_version")

    def __init__(
        self,
        broker: Broker,
        partition: Partition,
        version: int,
        transactional_id: str | None,
        producer_id: int,
        epoch: int,
    ) -> None:
        self._broker = broker
        self._partition = partition
        self._version = version
        self._name = transactional_id
        self._producer_id = producer_id
        self._epoch = epoch
        self._adds = version >= _ADDS_PARTITIONS_SINCE

    def join(self) -> Awaitable[None] | None:
        """Raises ApiError with the error of a produce. What to wait for, if anything; then `check_again`."""
        name = self._name
        if name is None:
            raise ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        if self._is_open_in_log():
            return None
        if not name:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        try:
            if not self._adds:
                self._verify(name)
                return None
            return run(
                self._broker.transactions.add_partitions(name, self._producer_id, self._epoch, [self._where()], _V2)
            )
        except ApiError as error:
            raise self._refused(error) from None

    def check_again(self) -> None:
        """Just before the append, if something was waited for: the transaction may have ended meanwhile."""
        if self._name and not self._is_open_in_log():
            try:
                self._verify(self._name)
            except ApiError as error:
                raise self._refused(error) from None

    def _is_open_in_log(self) -> bool:
        entry = self._partition.log.producers.entries.get(self._producer_id)
        if entry is None:
            return False
        # An older epoch is for the log to refuse.
        return self._epoch < entry.epoch or (entry.epoch == self._epoch and entry.txn_first_offset >= 0)

    def _verify(self, name: str) -> None:
        if self._adds or self._broker.config.transaction_partition_verification_enable:
            self._broker.transactions.verify(name, self._producer_id, self._epoch, self._where())

    def _where(self) -> TopicPartition:
        return TopicPartition(self._partition.topic, self._partition.index)

    def _refused(self, error: ApiError) -> ApiError:
        return ApiError(for_produce(error.code, self._version), error.message)
