"""A blocking producer of ready-made record batches without a transaction: what is written is there at once, and a
request that is sent again because its answer was lost writes nothing twice. A program that dies and starts over does.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Self

from ottla.client.batch_in_file import BatchInFile
from ottla.client.cluster import ClusterClient
from ottla.client.delivery import Delivery, Outgoing
from ottla.client.producing import Batch, TransactionRefused
from ottla.client.retrying import Deadline, retried
from ottla.common.errors import ApiError
from ottla.common.failures import check, failure_of
from ottla.common.ids import TopicPartition
from ottla.kernel.patching import patch, record_count, take_out_of_transaction
from ottla.protocol.messages import InitProducerIdRequest

_INIT_MAX, _PRODUCE_MAX = 5, 12
_SEQUENCE_MASK = 0x7FFFFFFF
# What is put into requests at once.
_READY_MAX = 32
_NOBODY = (-1, -1)


class IdempotentProducer:
    def __init__(self, cluster: ClusterClient, *, retry_timeout_s: float = 60.0) -> None:
        self._cluster = cluster.sibling()
        self._retry_timeout_s = retry_timeout_s
        self._producer = _NOBODY
        self._sequences: dict[TopicPartition, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self._cluster.close()

    def write(self, batches: Iterable[tuple[TopicPartition, Batch]]) -> None:
        """All of them, acknowledged by all replicas in sync when this returns. If it raises, some may be written; the
        same again then writes these twice."""
        if self._producer == _NOBODY:
            self._producer = retried(self._initialise, Deadline(self._retry_timeout_s), self._cluster.forget)
        delivery = Delivery(
            self._cluster, None, produce_version_max=_PRODUCE_MAX, retry_timeout_s=self._retry_timeout_s
        )
        outgoing = (self._outgoing(partition, batch) for partition, batch in batches)
        try:
            while ready := list(islice(outgoing, _READY_MAX)):
                delivery.send(ready)
            delivery.flush()
        except BaseException as error:
            # What is on its way is not known any more: nor are the sequence numbers.
            self._producer = _NOBODY
            self._sequences.clear()
            self._cluster.close()
            if isinstance(error, ApiError):
                raise TransactionRefused(f"{str(error).rstrip('.')}.", failure_of(error.code)) from None
            raise

    def _initialise(self) -> tuple[int, int]:
        request = InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1
        )
        answer = self._cluster.any_broker().call(request, _INIT_MAX)
        check(answer.error_code, "an idempotent producer")
        return answer.producer_id, answer.producer_epoch

    def _outgoing(self, partition: TopicPartition, batch: Batch) -> Outgoing:
        data = batch if isinstance(batch, bytearray | BatchInFile) else bytearray(batch)
        head = data.head if isinstance(data, BatchInFile) else data
        first = self._sequences.get(partition, 0)
        take_out_of_transaction(head, size=len(data))
        patch(head, *self._producer, first, size=len(data))
        self._sequences[partition] = (first + record_count(head)) & _SEQUENCE_MASK
        return Outgoing(partition, data)
