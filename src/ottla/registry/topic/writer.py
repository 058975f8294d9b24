"""The one writer of the topic: whoever takes over shuts all earlier ones out, however long they were paused.

Records are written with a producer id and an epoch that belong to one transactional id, but outside of transactions:
the topic has plain records, which any registry reads. `take_over` asks for the next epoch and appends a NOOP with it.
From then on the partition's leader refuses whatever comes with an earlier epoch, so all that earlier writers have
written lies before that NOOP: who has read up to it knows everything.

A coordinator forgets a transactional id that is not used for a week, and a partition a producer that has not written
for a day. So the writer takes over from itself every hour.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

from ottla.client.address import ClusterAddress
from ottla.client.admin.topics import ensure_topic
from ottla.client.cluster import ClusterClient
from ottla.client.coordinators import Coordinator
from ottla.client.retrying import Deadline, retried
from ottla.common.errors import ErrorCode, OttlaError
from ottla.common.failures import check
from ottla.common.ids import TopicPartition
from ottla.protocol.messages import InitProducerIdRequest, ProduceRequest
from ottla.records.record import Record, build_batch
from ottla.registry.records import StoredRecord, noop

_ACKS_ALL = -1
_INIT_MAX, _PRODUCE_MAX = 5, 11
_TRANSACTION_TIMEOUT_MS = 60_000
_FENCED = (
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID,
)
_TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)


class Fenced(Exception):
    """Another writer has taken over: nothing was written."""


class TooLarge(Exception):
    """The topic does not take records of this size: nothing was written."""


class TopicWriter:
    """Used by one thread at a time."""

    def __init__(self, address: ClusterAddress, topic: str, transactional_id: str, *, timeout_s: float = 30.0) -> None:
        self._cluster = ClusterClient(address, timeout_s=timeout_s, client_id="ottla-registry")
        self._partition = TopicPartition(topic, 0)
        self._transactional_id = transactional_id
        self._timeout_s = timeout_s
        self._coordinator = Coordinator(
            self._cluster,
            partial(self._cluster.transaction_coordinator, transactional_id),
            f"the coordinator of '{transactional_id}'",
        )
        self._producer_id, self._epoch, self._sequence = -1, -1, 0

    def close(self) -> None:
        self._cluster.close()

    def create_topic(self) -> None:
        """Raises OttlaError if it cannot be there as it has to be: with one partition, compacted."""
        name = self._partition.topic
        advice = f"create it with one partition and cleanup.policy=compact, as in `ottla topic create {name} -p 1`"
        self._cluster.settled(
            lambda: ensure_topic(
                self._cluster, name, what="the topic of schemas", advice=advice, settings={"cleanup.policy": "compact"}
            )
        )
        count = len(self._cluster.settled(lambda: self._cluster.leaders([name])))
        if count != 1:
            raise OttlaError(
                f"the topic '{name}' has {count} partitions, and a registry needs one: name another topic."
            )

    def take_over(self) -> int:
        """Shut out whoever wrote before. The offset up to which everything has to be read now."""
        request = InitProducerIdRequest(
            transactional_id=self._transactional_id,
            transaction_timeout_ms=_TRANSACTION_TIMEOUT_MS,
            producer_id=-1,
            producer_epoch=-1,
        )
        code, answer = self._coordinator.ask(
            lambda connection: connection.call(request, _INIT_MAX),
            lambda found: {found.error_code},
            Deadline(self._timeout_s),
        )
        check(code, f"the transactional id '{self._transactional_id}'")
        self._producer_id, self._epoch, self._sequence = answer.producer_id, answer.producer_epoch, 0
        return self.append([noop()])

    def append(self, records: Sequence[StoredRecord]) -> int:
        """The offset of the last of them. Raises Fenced and TooLarge, which wrote nothing; OttlaError if it is not
        known whether they were written."""
        now_ms = int(time.time() * 1000)
        encoded = [record.encode() for record in records]
        batch = build_batch(
            [Record(number, now_ms, key, value, ()) for number, (key, value) in enumerate(encoded)],
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=self._sequence,
        )
        # The same batch again after an answer that was lost: its sequence number tells the broker.
        first = retried(lambda: self._produce(batch), Deadline(self._timeout_s), self._cluster.forget)
        self._sequence += len(encoded)
        return first + len(encoded) - 1

    def _produce(self, batch: bytearray) -> int:
        (leader,) = self._cluster.by_leader([self._partition])
        schema = ProduceRequest.PartitionProduceData
        topic = ProduceRequest.TopicProduceData(
            name=self._partition.topic, partition_data=[schema(index=0, records=memoryview(batch))]
        )
        request = ProduceRequest(
            acks=_ACKS_ALL, timeout_ms=int(self._timeout_s * 1000), topic_data=[topic], transactional_id=None
        )
        answer = self._cluster.broker(leader).call(request, _PRODUCE_MAX)
        row = answer.responses[0].partition_responses[0]
        if row.error_code in _FENCED:
            raise Fenced(ErrorCode(row.error_code).name)
        if row.error_code in _TOO_LARGE:
            raise TooLarge(f"{len(batch)} bytes")
        check(row.error_code, f"the topic '{self._partition.topic}'")
        return int(row.base_offset)
