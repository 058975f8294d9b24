"""A blocking transactional producer of ready-made record batches.

    with TransactionalProducer(cluster, "orders", transaction_timeout_ms=60_000) as producer:
        producer.start()                          # shuts out whoever used the name before, settles what they left
        with producer.transaction():              # commits at the end; aborts when something is raised
            producer.produce([(TopicPartition("out", 0), batch), ...])
            producer.commit_offsets("group", {TopicPartition("in", 0): Committed(42, "metadata")})

It speaks both transaction protocols, by what the cluster's `transaction.version` says (KIP-890): with v2 the first
Produce adds a partition and every end of a transaction gives a new epoch; before it, AddPartitionsToTxn and
AddOffsetsToTxn come first. Batches come without producer, epoch and sequence number, which are put in here.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple, NoReturn, Self

from ottla.client.admin.transactions import describe_transactions
from ottla.client.batch_in_file import BatchInFile
from ottla.client.cluster import ClusterClient
from ottla.client.coordinators import Coordinator, coordinator_of_group
from ottla.client.delivery import Delivery, Outgoing
from ottla.client.retrying import Deadline
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.failures import ClientFailure, Failure, failure_of, refusal
from ottla.common.ids import TopicPartition, by_topic, partitions_by_topic
from ottla.kernel.patching import patch, record_count
from ottla.protocol.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
)

_V2 = 2
# The newest versions that clients speak in each protocol. Later ones of AddPartitionsToTxn are for brokers, Produce
# from 13 on names topics by id, InitProducerId 6 prepares transactions for others to decide.
_INIT_MAX, _ADD_PARTITIONS_MAX = 5, 3
_PRODUCE_MAX = {True: 12, False: 11}
_OFFSETS_MAX = {True: 5, False: 4}
_END_MAX = {True: 5, False: 4}
_SEQUENCE_MASK = 0x7FFFFFFF
# What is put into requests at once: bytes in memory, and batches wherever they are.
_READY_BYTES_MAX = 4 * 1024 * 1024
_READY_MAX = 32
# Ten times what a producer waits before it asks for its epoch again, when it found a transaction open.
_TAKEOVER_S = 1.0


Batch = bytes | bytearray | memoryview | BatchInFile


class TransactionRefused(ClientFailure):
    """The cluster refused a step of a transaction: `failure` says of what kind it is."""

    def __init__(self, sentence: str, failure: Failure) -> None:
        super().__init__(sentence)
        self.failure = failure


class ProducerFenced(ClientFailure):
    """Another producer uses the same name now."""

    failure = Failure.FENCED


class Committed(NamedTuple):
    """What a group has read up to in a partition, and a note that goes with it."""

    offset: int
    metadata: str = ""


class TransactionalProducer:
    def __init__(
        self,
        cluster: ClusterClient,
        transactional_id: str,
        *,
        transaction_timeout_ms: int = 60_000,
        retry_timeout_s: float = 60.0,
    ) -> None:
        self._cluster = cluster
        # Records have their own connections: several requests are on their way there.
        self._leaders = cluster.sibling()
        self.transactional_id = transactional_id
        self._transaction_timeout_ms = transaction_timeout_ms
        self._retry_timeout_s = retry_timeout_s
        self._coordinator = Coordinator(
            cluster,
            partial(cluster.transaction_coordinator, transactional_id),
            f"the coordinator of transactions of '{transactional_id}'",
        )
        self._groups: dict[str, Coordinator] = {}
        self._is_v2 = False
        self._producer_id, self._epoch = -1, -1
        self._sequences: dict[TopicPartition, int] = {}
        self._joined: set[TopicPartition] = set()
        self._delivery: Delivery | None = None
        self._has_begun = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # --- the life of a producer

    def start(self) -> None:
        """Become the only producer of this name. An open transaction of it is aborted, a decided one completed."""
        self._initialise(-1, -1)

    def _initialise(self, producer_id: int, epoch: int) -> None:
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self._transaction_timeout_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
        )
        answer = self._ask(request, _INIT_MAX)
        self._producer_id, self._epoch = answer.producer_id, answer.producer_epoch
        self._sequences.clear()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is produced inside, or nothing."""
        self.begin()
        try:
            yield
            self.flush()
        except BaseException:
            # The first error is the one to tell of. What cannot be aborted now is aborted by the next start or by time.
            with suppress(Exception):
                self.abort()
            raise
        # From here on the outcome is the coordinator's: an unclear answer is asked for again, never undone.
        self.commit()

    def begin(self) -> None:
        self._is_v2 = self._coordinator.features.get("transaction.version", 0) >= _V2
        self._joined.clear()
        self._delivery = Delivery(
            self._leaders,
            self.transactional_id,
            produce_version_max=_PRODUCE_MAX[self._is_v2],
            retry_timeout_s=self._retry_timeout_s,
        )
        self._has_begun = False

    def produce(self, batches: Iterable[tuple[TopicPartition, Batch]]) -> None:
        """Write these batches. Some may still be on their way when this returns: `commit` waits for them. A bytearray
        or the header of a BatchInFile is changed in place, so nobody else must change it until then."""
        assert self._delivery is not None, "begin() comes first"
        ready: list[Outgoing] = []
        size = 0
        try:
            for batch in self._outgoing(batches):
                ready.append(batch)
                size += len(batch.data) if isinstance(batch.data, bytearray) else len(batch.data.head)
                # Whole requests at a time, and never all of a large input at once.
                if size >= _READY_BYTES_MAX or len(ready) >= _READY_MAX:
                    self._join(ready)
                    self._delivery.send(ready)
                    ready, size = [], 0
            self._join(ready)
            self._delivery.send(ready)
        except ApiError as error:
            self._refused(error)

    def _outgoing(self, batches: Iterable[tuple[TopicPartition, Batch]]) -> Iterator[Outgoing]:
        for partition, batch in batches:
            data = batch if isinstance(batch, bytearray | BatchInFile) else bytearray(batch)
            head = data.head if isinstance(data, BatchInFile) else data
            first = self._sequences.get(partition, 0)
            patch(head, self._producer_id, self._epoch, first, size=len(data))
            self._sequences[partition] = (first + record_count(head)) & _SEQUENCE_MASK
            yield Outgoing(partition, data)

    def commit_offsets(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> None:
        """Make `offsets` those of the group, if the transaction commits."""
        if not self._is_v2:
            self._ask(
                AddOffsetsToTxnRequest(
                    transactional_id=self.transactional_id,
                    producer_id=self._producer_id,
                    producer_epoch=self._epoch,
                    group_id=group,
                )
            )
        self._has_begun = True
        schema = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition
        rows = by_topic(
            (
                partition,
                schema(
                    partition_index=partition.partition,
                    committed_offset=committed.offset,
                    committed_metadata=committed.metadata,
                ),
            )
            for partition, committed in offsets.items()
        )
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            topics=[
                TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name=name, partitions=its)
                for name, its in rows.items()
            ],
        )
        code, _ = self._group(group).ask(
            lambda connection: connection.call(request, _OFFSETS_MAX[self._is_v2]),
            lambda answer: {row.error_code for topic in answer.topics for row in topic.partitions},
            Deadline(self._retry_timeout_s),
        )
        self._check(code, f"group '{group}'", f"the cluster refused offsets of group '{group}'")

    def commit(self) -> None:
        """When this returns, all of it is decided and stays so."""
        self.flush()
        self._end(committed=True)

    def flush(self) -> None:
        """Until all that was produced is acknowledged."""
        assert self._delivery is not None, "begin() comes first"
        try:
            self._delivery.flush()
        except ApiError as error:
            self._refused(error)

    def abort(self) -> None:
        """Nothing of it becomes visible, unless its commit was decided already; a new transaction may begin.

        Raises ProducerFenced when another producer has taken over. A transaction that timed out, an expired
        transactional id and a commit whose answer was lost are none of that: the coordinator knows our epoch as its
        last one, or knows nobody, and gives us the next (KIP-360, KIP-890).
        """
        self._leaders.close()
        try:
            self._end(committed=False)
        except TransactionRefused:
            pass  # the next question is answered by how things are
        # What was on its way is forgotten, so the sequence numbers are not known: a new epoch starts them afresh.
        try:
            self._initialise(self._producer_id, self._epoch)
        except TransactionRefused as refused:
            if refused.failure is not Failure.EPOCH:
                raise
            if not self._has_timed_out():
                raise ProducerFenced(
                    f"another writer has taken over '{self.transactional_id}': this one must stop."
                ) from None
            self._initialise(-1, -1)

    def _has_timed_out(self) -> bool:
        """Before transactions v2 a coordinator that aborts an overdue transaction shuts its owner out for good. That is
        seen by what it left: one epoch more, and an abort after which nobody came, or nothing, if the id has expired
        since. Another producer comes at once."""
        for is_last in (False, True):
            found = describe_transactions(self._cluster, [self.transactional_id])[self.transactional_id]
            if found is None:
                return True
            if (found.producer_id, found.epoch) != (self._producer_id, self._epoch + 1) or found.state not in (
                "PrepareAbort",
                "CompleteAbort",
            ):
                return False
            if not is_last:
                time.sleep(_TAKEOVER_S)
        return True

    def set_transaction_timeout(self, timeout_ms: int) -> None:
        """From the next `start` or `abort` on."""
        self._transaction_timeout_ms = timeout_ms

    def close(self) -> None:
        self._leaders.close()

    def _end(self, *, committed: bool) -> None:
        self._delivery = None
        if not self._has_begun:
            return
        answer = self._ask(
            EndTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=self._producer_id,
                producer_epoch=self._epoch,
                committed=committed,
            ),
            _END_MAX[self._is_v2],
        )
        self._has_begun = False
        if self._is_v2:
            self._producer_id, self._epoch = answer.producer_id, answer.producer_epoch
            self._sequences.clear()

    # --- what it takes

    def _join(self, batches: list[Outgoing]) -> None:
        """Before v2 a partition has to be added to the transaction before anything is written to it."""
        new = {batch.partition for batch in batches} - self._joined
        if not new:
            return
        self._has_begun = True
        self._joined |= new
        if self._is_v2:
            return
        topics = partitions_by_topic(sorted(new))
        # A coordinator does not tell a topic that is missing from one that it has not heard of yet.
        self._leaders.require(topics)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self._producer_id,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=name, partitions=its)
                for name, its in topics.items()
            ],
        )
        code, _ = self._coordinator.ask(
            lambda connection: connection.call(request, _ADD_PARTITIONS_MAX),
            lambda answer: {
                row.partition_error_code
                for topic in answer.results_by_topic_v3_and_below
                for row in topic.results_by_partition
            },
            Deadline(self._retry_timeout_s),
        )
        what = f"topic {', '.join(topics)}"
        self._check(code, what, f"the cluster refused {what}")

    def _group(self, group: str) -> Coordinator:
        if group not in self._groups:
            self._groups[group] = coordinator_of_group(self._cluster, group)
        return self._groups[group]

    def _ask(self, request: Any, version_max: int | None = None) -> Any:
        code, answer = self._coordinator.ask(
            lambda connection: connection.call(request, version_max),
            lambda answer: {answer.error_code},
            Deadline(self._retry_timeout_s),
        )
        what = type(request).__name__.removesuffix("Request")
        self._check(code, f"the transactional id '{self.transactional_id}'", f"the cluster refused {what}")
        return answer

    def _check(self, code: int, what: str, otherwise: str) -> None:
        if code:
            self._refused(ApiError(ErrorCode(code), refusal(code, what, otherwise)))

    def _refused(self, error: ApiError) -> NoReturn:
        failure = failure_of(error.code)
        if failure is Failure.EPOCH:
            raise TransactionRefused(
                f"the transaction of '{self.transactional_id}' took longer than its time-out of "
                f"{self._transaction_timeout_ms / 1000:g} s, or another writer has taken over ({error.code.name}).",
                failure,
            ) from None
        if error.code == ErrorCode.INVALID_TRANSACTION_TIMEOUT:
            raise TransactionRefused(
                f"transaction.timeout.ms is {self._transaction_timeout_ms}, which is more than the cluster's "
                "transaction.max.timeout.ms: ask for less, or raise that.",
                failure,
            ) from None
        raise TransactionRefused(f"{str(error).rstrip('.')}.", failure) from None
