"""Batches to brokers that misbehave, against a model: whatever they do, `flush` returns only when every batch is there,
once and in order.

The brokers are a few lines in this process, so that hundreds of seeds take a second. They append a batch only if its
sequence number follows, as Kafka does. One kind forgets producers and takes any first batch of one it does not know, as
older brokers did: no client can make records arrive there that were overtaken, but it must say so.
"""

from __future__ import annotations

import random
import struct
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.client import retrying
from ottla.client.cluster import ClusterClient, Unreachable
from ottla.client.delivery import Delivery, Outgoing
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import ZERO_TOPIC_ID, TopicPartition

TOPIC = "out"
BATCHES_KNOWN = 5
FAILURES = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
)
FAILURES_AFTER_APPEND = (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
SEEDS = 400


class ModelPartition:
    """A log as a list of sequence numbers."""

    def __init__(self) -> None:
        self.log: list[int] = []
        self.knows_producer = False

    def append(self, sequence: int, *, takes_any_first: bool) -> ErrorCode:
        if sequence in self.log[-BATCHES_KNOWN:] and self.knows_producer:
            return ErrorCode.NONE
        follows = sequence == (self.log[-1] + 1 if self.log else 0)
        if not follows and not (takes_any_first and not self.knows_producer):
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        self.log.append(sequence)
        self.knows_producer = True
        return ErrorCode.NONE


class ModelCluster(ClusterClient):
    """Its brokers fail, and lose, swap, double and cut answers."""

    def __init__(self, seed: int, *, brokers: int, partitions: int, takes_any_first: bool, mischief: float) -> None:
        super().__init__("model")
        self._rng = random.Random(seed)
        self._broker_count = brokers
        self._takes_any_first = takes_any_first
        self._mischief = mischief
        self.logs = {TopicPartition(TOPIC, number): ModelPartition() for number in range(partitions)}
        self._models: dict[int, ModelConnection] = {}

    def happens(self) -> bool:
        return self._rng.random() < self._mischief

    def metadata(self, topics: Any) -> Any:
        leaders = [self._rng.randrange(self._broker_count) if self.happens() else 0 for _ in self.logs]
        rows = [
            SimpleNamespace(partition_index=partition.partition, leader_id=leader)
            for partition, leader in zip(self.logs, leaders, strict=True)
        ]
        return SimpleNamespace(
            topics=[SimpleNamespace(name=TOPIC, error_code=0, topic_id=ZERO_TOPIC_ID, partitions=rows)]
        )

    def broker(self, leader: int) -> Any:
        if leader not in self._models:
            if self.happens():
                raise Unreachable(f"broker {leader} cannot be reached.")
            self._models[leader] = ModelConnection(self)
        return self._models[leader]

    def close(self) -> None:
        super().close()
        self._models.clear()

    def produce(self, request: Any) -> list[SimpleNamespace]:
        rows = []
        for topic in request.topic_data:
            for data in topic.partition_data:
                code = self._write(TopicPartition(topic.name, data.index), *struct.unpack(">i", data.records))
                rows.append(SimpleNamespace(index=data.index, error_code=code, error_message=None))
        return rows

    def _write(self, partition: TopicPartition, sequence: int) -> ErrorCode:
        if self.happens():
            return self._rng.choice(FAILURES)
        code = self.logs[partition].append(sequence, takes_any_first=self._takes_any_first)
        if code == ErrorCode.NONE and self.happens():
            return self._rng.choice(FAILURES_AFTER_APPEND)
        return code

    def choice(self, *options: str) -> str:
        return self._rng.choice(options)


class ModelConnection:
    """Answers carry the number of their request, as on the wire, and a wrong one is a broken connection."""

    def __init__(self, cluster: ModelCluster) -> None:
        self._cluster = cluster
        self._number = 0
        self._answers: deque[tuple[int, list[SimpleNamespace]]] = deque()

    def send(self, request: Any, version_max: int) -> int:
        if self._cluster.happens():
            raise BrokenPipeError("the connection is gone")
        self._number += 1
        rows = self._cluster.produce(request)
        if not self._cluster.happens():
            self._answers.append((self._number, rows))
            return self._number
        how = self._cluster.choice("lost", "late", "doubled", "partial", "a stranger's", "a row twice")
        if how == "late" and self._answers:
            self._answers.appendleft((self._number, rows))
        elif how == "doubled":
            self._answers.extend([(self._number, rows)] * 2)
        elif how == "partial":
            self._answers.append((self._number, rows[1:]))
        elif how == "a stranger's":
            self._answers.append((self._number, [*rows, SimpleNamespace(index=99, error_code=0, error_message=None)]))
        elif how == "a row twice":
            self._answers.append((self._number, [*rows, rows[0]]))
        return self._number

    def receive(self, number: int) -> SimpleNamespace:
        if not self._answers:
            raise TimeoutError("no answer in time")
        answered, rows = self._answers.popleft()
        if answered != number:
            raise ConnectionResetError("answered another request")
        return SimpleNamespace(responses=[SimpleNamespace(name=TOPIC, partition_responses=rows)])


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrying, "DEFAULT_BACKOFF", retrying.Backoff(0, 0))


def delivery_to(cluster: ModelCluster) -> Delivery:
    return Delivery(cluster, "writer", produce_version_max=12, retry_timeout_s=60)


def deliver(cluster: ModelCluster, batches: int, seed: int) -> dict[TopicPartition, list[int]]:
    """What was asked for, by partition. Raises what Delivery raises."""
    rng = random.Random(seed)
    delivery = delivery_to(cluster)
    sequences = dict.fromkeys(cluster.logs, 0)
    while batches > 0:
        some = []
        for _ in range(min(batches, rng.randint(1, 12))):
            partition = rng.choice(list(cluster.logs))
            some.append(Outgoing(partition, bytearray(struct.pack(">i", sequences[partition]))))
            sequences[partition] += 1
        delivery.send(some)
        batches -= len(some)
    delivery.flush()
    return {partition: list(range(count)) for partition, count in sequences.items()}


@pytest.mark.parametrize("mischief", [0.02, 0.2])
def test_after_a_flush_every_batch_is_there_once_and_in_order(mischief: float) -> None:
    for seed in range(SEEDS):
        cluster = ModelCluster(seed, brokers=2, partitions=3, takes_any_first=False, mischief=mischief)
        wanted = deliver(cluster, batches=40, seed=seed)
        assert {one: its.log for one, its in cluster.logs.items()} == wanted, f"seed {seed}"


def test_a_request_has_a_batch_of_each_partition_in_whatever_order_they_come() -> None:
    """A task writes many batches of one partition before it goes on to the next."""
    cluster = ModelCluster(0, brokers=1, partitions=3, takes_any_first=False, mischief=0.0)
    requests: list[list[int]] = []
    produce = cluster.produce

    def note(request: Any) -> list[SimpleNamespace]:
        requests.append([data.index for topic in request.topic_data for data in topic.partition_data])
        return produce(request)

    cluster.produce = note  # type: ignore[method-assign]
    delivery = delivery_to(cluster)
    delivery.send(
        Outgoing(partition, bytearray(struct.pack(">i", number))) for partition in cluster.logs for number in range(4)
    )
    delivery.flush()
    assert requests == [[0, 1, 2]] * 4


def test_a_request_has_no_more_batches_than_fit_and_none_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.client.delivery.REQUEST_BYTES", 8)
    for seed in range(50):
        cluster = ModelCluster(seed, brokers=2, partitions=5, takes_any_first=False, mischief=0.05)
        wanted = deliver(cluster, batches=40, seed=seed)
        assert {one: its.log for one, its in cluster.logs.items()} == wanted, f"seed {seed}"


def test_an_answer_strikes_off_the_batch_that_it_answers() -> None:
    """The first of three on their way fails, and the broker takes the second: the first is the one that is missing."""
    cluster = ModelCluster(0, brokers=1, partitions=1, takes_any_first=True, mischief=0.0)
    partition = TopicPartition(TOPIC, 0)
    first_fails = iter([ErrorCode.NOT_LEADER_OR_FOLLOWER])
    write = cluster._write
    cluster._write = lambda *batch: next(first_fails, None) or write(*batch)  # type: ignore[method-assign]
    delivery = delivery_to(cluster)
    delivery.send(Outgoing(partition, bytearray(struct.pack(">i", number))) for number in range(3))
    with pytest.raises(ApiError, match="OUT_OF_ORDER_SEQUENCE_NUMBER"):
        delivery.flush()
    assert cluster.logs[partition].log == [1, 2]


def test_a_batch_that_was_overtaken_is_never_taken_for_written() -> None:
    refused = 0
    for seed in range(SEEDS):
        cluster = ModelCluster(seed, brokers=1, partitions=2, takes_any_first=True, mischief=0.1)
        try:
            wanted = deliver(cluster, batches=12, seed=seed)
        except ApiError as error:
            assert error.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            refused += 1
        else:
            assert {one: its.log for one, its in cluster.logs.items()} == wanted, f"seed {seed}"
    assert 0 < refused < SEEDS


def test_what_was_refused_is_not_forgotten_by_the_flush_after_it() -> None:
    """Somebody may catch the refusal and go on to commit."""
    cluster = ModelCluster(0, brokers=1, partitions=1, takes_any_first=False, mischief=0.0)
    delivery = delivery_to(cluster)
    too_early = Outgoing(TopicPartition(TOPIC, 0), bytearray(struct.pack(">i", 7)))
    delivery.send([too_early])
    for _ in range(2):
        with pytest.raises(ApiError, match="OUT_OF_ORDER_SEQUENCE_NUMBER"):
            delivery.flush()
