"""Transactions request by request, over the raw client: what a producer says, and what no proper producer would say."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ottla.common.errors import ErrorCode
from ottla.protocol import messages as m
from ottla.records import batch as v2
from ottla.records.record import Record, build_batch, iterate_batches, read_records
from tests.support.raw_client import NO_ID, RawClient

Partitions = Mapping[str, Sequence[int]]

# The newest version of each request that a client of the classic protocol sends; from the next on it is version 2.
CLASSIC_ADD = 3
CLASSIC_PRODUCE = 11
CLASSIC_OFFSETS = 4
CLASSIC_END = 4
PRODUCE, OFFSETS, END = 12, 5, 5


class Identity(NamedTuple):
    producer_id: int
    epoch: int


NOBODY = Identity(-1, -1)


class Marker(NamedTuple):
    """A control batch as a reader finds it."""

    offset: int
    producer_id: int
    epoch: int
    commit: bool


def init_request(
    transactional_id: str | None, timeout_ms: int = 60_000, expected: Identity = NOBODY
) -> m.InitProducerIdRequest:
    return m.InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout_ms,
        producer_id=expected.producer_id,
        producer_epoch=expected.epoch,
    )


def add_request(
    transactional_id: str, identity: Identity, partitions: Partitions, *, verify: bool = False
) -> m.AddPartitionsToTxnRequest:
    """Fits the client's versions and the batched ones."""
    asked = m.AddPartitionsToTxnRequest
    topics = [asked.AddPartitionsToTxnTopic(name=name, partitions=list(ids)) for name, ids in partitions.items()]
    return asked(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=identity.producer_id,
        v3_and_below_producer_epoch=identity.epoch,
        v3_and_below_topics=topics,
        transactions=[
            asked.AddPartitionsToTxnTransaction(
                transactional_id=transactional_id,
                producer_id=identity.producer_id,
                producer_epoch=identity.epoch,
                verify_only=verify,
                topics=topics,
            )
        ],
    )


def add_codes(answer: m.AddPartitionsToTxnResponse) -> list[ErrorCode]:
    topics = list(answer.results_by_topic_v3_and_below)
    for one in answer.results_by_transaction:
        topics += one.topic_results
    return [ErrorCode(row.partition_error_code) for topic in topics for row in topic.results_by_partition]


def end_request(transactional_id: str, identity: Identity, commit: bool) -> m.EndTxnRequest:
    return m.EndTxnRequest(
        transactional_id=transactional_id,
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
        committed=commit,
    )


def produce_request(
    transactional_id: str | None, records: bytes | bytearray, topic: str | bytes, partition: int = 0, acks: int = -1
) -> m.ProduceRequest:
    data = m.ProduceRequest
    piece = data.PartitionProduceData(index=partition, records=records)
    sent = data.TopicProduceData(
        name=topic if isinstance(topic, str) else "",
        topic_id=topic if isinstance(topic, bytes) else NO_ID,
        partition_data=[piece],
    )
    return data(transactional_id=transactional_id, acks=acks, timeout_ms=30_000, topic_data=[sent])


def add_offsets_request(transactional_id: str, identity: Identity, group: str) -> m.AddOffsetsToTxnRequest:
    return m.AddOffsetsToTxnRequest(
        transactional_id=transactional_id,
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
        group_id=group,
    )


def offsets_request(
    transactional_id: str,
    identity: Identity,
    group: str,
    offsets: Mapping[tuple[str, int], int],
    *,
    generation: int = -1,
    member: str = "",
) -> m.TxnOffsetCommitRequest:
    asked = m.TxnOffsetCommitRequest
    topics: dict[str, list[Any]] = {}
    for (topic, index), offset in offsets.items():
        topics.setdefault(topic, []).append(
            asked.TxnOffsetCommitRequestPartition(
                partition_index=index, committed_offset=offset, committed_leader_epoch=-1, committed_metadata=""
            )
        )
    return asked(
        transactional_id=transactional_id,
        group_id=group,
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
        generation_id=generation,
        member_id=member,
        topics=[asked.TxnOffsetCommitRequestTopic(name=name, partitions=rows) for name, rows in topics.items()],
    )


def offsets_codes(answer: m.TxnOffsetCommitResponse) -> list[ErrorCode]:
    return [ErrorCode(row.error_code) for topic in answer.topics for row in topic.partitions]


def transactional_batch(
    identity: Identity, *values: bytes, sequence: int = 0, key: bytes | None = None, control: bool = False
) -> bytearray:
    now_ms = int(time.time() * 1000)
    return build_batch(
        [Record(number, now_ms, key, value) for number, value in enumerate(values)],
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
        base_sequence=sequence,
        attributes=v2.TRANSACTIONAL_BIT | (v2.CONTROL_BIT if control else 0),
    )


def committed_records(data: bytes, aborted: Sequence[Any], upper: int) -> list[Record]:
    """What a read_committed consumer makes of a fetch answer: it passes over batches of aborted transactions, from the
    first offset that the broker names until their abort marker."""
    starts: dict[int, list[int]] = {}
    for one in aborted:
        starts.setdefault(one.producer_id, []).append(one.first_offset)
    aborting: set[int] = set()
    found: list[Record] = []
    for position, header in iterate_batches(data):
        if header.base_offset >= upper:
            break
        producer = header.producer_id
        if header.is_control:
            aborting.discard(producer)
            continue
        if any(first <= header.last_offset for first in starts.get(producer, ())):
            starts[producer] = [first for first in starts[producer] if first > header.last_offset]
            aborting.add(producer)
        if not (header.is_transactional and producer in aborting):
            found += read_records(data, position)
    return found


def control_batches(data: bytes) -> list[Marker]:
    found = []
    for position, header in iterate_batches(data):
        if header.is_control:
            (record,) = read_records(data, position)
            assert record.key is not None
            found.append(Marker(header.base_offset, header.producer_id, header.producer_epoch, record.key[3] == 1))
    return found


@dataclass
class TransactionalClient:
    """One producer instance. `version` 2 adds partitions by producing and takes a new epoch from each EndTxn."""

    client: RawClient
    transactional_id: str
    version: int = 2
    timeout_ms: int = 60_000
    identity: Identity = NOBODY

    def __post_init__(self) -> None:
        self._sequences: dict[tuple[str, int], int] = {}
        self._added: set[tuple[str, int]] = set()

    def init(self, expected: Identity | None = None) -> Identity:
        answer = self.retried(init_request(self.transactional_id, self.timeout_ms, expected or NOBODY), 5)
        raise_for(answer.error_code)
        self._begin(Identity(answer.producer_id, answer.producer_epoch))
        return self.identity

    def _begin(self, identity: Identity) -> None:
        if identity != self.identity:
            self._sequences.clear()
        self.identity = identity
        self._added.clear()

    def produce(self, topic: str, *values: bytes, partition: int = 0) -> int:
        """The base offset."""
        where = (topic, partition)
        if self.version < 2 and where not in self._added:
            asked = add_request(self.transactional_id, self.identity, {topic: [partition]})
            raise_for(*add_codes(self.retried(asked, CLASSIC_ADD)))
            self._added.add(where)
        sequence = self._sequences.get(where, 0)
        batch = transactional_batch(self.identity, *values, sequence=sequence)
        version = PRODUCE if self.version >= 2 else CLASSIC_PRODUCE
        answer = self.retried(produce_request(self.transactional_id, batch, topic, partition), version)
        line = answer.responses[0].partition_responses[0]
        raise_for(line.error_code)
        self._sequences[where] = sequence + len(values)
        return int(line.base_offset)

    def commit_offsets(self, group: str, offsets: Mapping[tuple[str, int], int], **member: Any) -> None:
        if self.version < 2:
            asked = add_offsets_request(self.transactional_id, self.identity, group)
            raise_for(self.retried(asked, 4).error_code)
        request = offsets_request(self.transactional_id, self.identity, group, offsets, **member)
        raise_for(*offsets_codes(self.retried(request, OFFSETS if self.version >= 2 else CLASSIC_OFFSETS)))

    def end(self, commit: bool) -> None:
        version = END if self.version >= 2 else CLASSIC_END
        answer = self.retried(end_request(self.transactional_id, self.identity, commit), version)
        raise_for(answer.error_code)
        if self.version >= 2:
            self._begin(Identity(answer.producer_id, answer.producer_epoch))
        self._added.clear()

    def commit(self) -> None:
        self.end(True)

    def abort(self) -> None:
        self.end(False)

    def retried(self, request: Any, version: int, timeout_s: float = 60.0) -> Any:
        return retried(self.client, request, version, timeout_s)


def set_transaction_version(client: RawClient, level: int) -> None:
    feature = m.UpdateFeaturesRequest.FeatureUpdateKey
    update = feature(feature="transaction.version", max_version_level=level, upgrade_type=1)
    answer = client.call(m.UpdateFeaturesRequest(feature_updates=[update], timeout_ms=10_000), 2)
    if answer.error_code:
        update.upgrade_type = 2  # it is a downgrade
        answer = client.call(m.UpdateFeaturesRequest(feature_updates=[update], timeout_ms=10_000), 2)
    raise_for(answer.error_code)


class Refused(Exception):
    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.name)
        self.code = code


def raise_for(*codes: int) -> None:
    for code in codes:
        if code:
            raise Refused(ErrorCode(code))


# What a producer answers by asking again.
RETRIABLE = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
    }
)


def retried(client: RawClient, request: Any, version: int, timeout_s: float = 60.0) -> Any:
    deadline = time.monotonic() + timeout_s
    while True:
        answer = client.call(request, version)
        if not any(code in RETRIABLE for code in all_codes(answer)) or time.monotonic() > deadline:
            return answer
        time.sleep(0.01)


def all_codes(answer: Any) -> list[int]:
    """Every error code in an answer, however deep."""
    if isinstance(answer, (list, tuple)):
        return [code for one in answer for code in all_codes(one)]
    if not hasattr(answer, "__slots__"):
        return []
    found: list[int] = []
    for name in answer.__slots__:
        value = getattr(answer, name)
        found += [value] if name.endswith("error_code") else all_codes(value)
    return found
