"""Batches to the leaders of their partitions, in order, several requests on their way at once.

Every batch carries its sequence number, so a broker drops what it has already and refuses what comes too early. That
allows the simplest recovery there is: when anything fails, wait for the answers that are still to come, find the
leaders again, and send everything that is not acknowledged once more, in order. A batch is acknowledged by the answer
to the very request that carried it, whatever became of the ones before it, and nothing is done until all are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ottla.client.batch_in_file import BatchInFile
from ottla.client.cluster import ClusterClient
from ottla.client.connection import Sent
from ottla.client.retrying import Deadline
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.failures import RETRIABLE, Retriable, refusal
from ottla.common.ids import TopicPartition, by_topic
from ottla.protocol.messages import ProduceRequest

# A broker remembers the last five batches of a producer in a partition: more on their way could not be told apart.
IN_FLIGHT_MAX = 5
# Of several batches; one alone may be larger. With what is around them it is not more than 2 MB: an Ottla has a buffer
# ready for such a request.
REQUEST_BYTES = 2 * 1024 * 1024 - 16 * 1024
_TIMEOUT_MS = 30_000
_ACKS_ALL = -1


@dataclass(slots=True, eq=False)
class Outgoing:
    """A batch that is ready to be written: producer and sequence number are in it. It equals nothing but itself."""

    partition: TopicPartition
    data: bytearray | BatchInFile


class _OnItsWay(NamedTuple):
    """A request whose answer is still to come, and what it carries."""

    sent: Sent
    batches: dict[TopicPartition, Outgoing]


class Delivery:
    """`send` what there is, as often as you like, then `flush`. Raises ApiError for a refusal that lasts."""

    def __init__(
        self,
        cluster: ClusterClient,
        transactional_id: str | None,
        *,
        produce_version_max: int,
        retry_timeout_s: float,
    ) -> None:
        self._cluster = cluster
        self._transactional_id = transactional_id
        self._produce_version_max = produce_version_max
        self._retry_timeout_s = retry_timeout_s
        self._unacknowledged: dict[TopicPartition, deque[Outgoing]] = {}
        self._on_their_way: dict[int, deque[_OnItsWay]] = {}
        self._failure = ""
        # Where a batch failed since everything was last sent in order: what follows it there comes too early.
        self._failed: set[TopicPartition] = set()

    def send(self, batches: Iterable[Outgoing]) -> None:
        """In order within each partition, and not between them: a request has one batch for each partition, that is the
        protocol, and costs both sides the same whatever is in it."""
        waiting: dict[TopicPartition, deque[Outgoing]] = {}
        for batch in batches:
            waiting.setdefault(batch.partition, deque()).append(batch)
        while waiting:
            self._send_new(_next_request(waiting))

    def flush(self) -> None:
        """Until everything is acknowledged."""
        self._drain()
        self._recover()

    # --- one attempt

    def _send_new(self, batches: list[Outgoing]) -> None:
        for batch in batches:
            self._unacknowledged.setdefault(batch.partition, deque()).append(batch)
        if self._failure:
            self._recover()  # sends these too
        else:
            self._send(batches)

    def _send(self, batches: list[Outgoing]) -> None:
        by_partition = {batch.partition: batch for batch in batches}
        try:
            self._cluster.require(partition.topic for partition in by_partition)
            for leader, led in self._cluster.by_leader(by_partition).items():
                waiting = self._on_their_way.setdefault(leader, deque())
                if len(waiting) >= IN_FLIGHT_MAX:
                    self._receive(leader)
                    if self._failure:
                        return
                its = {partition: by_partition[partition] for partition in led}
                sent = self._cluster.broker(leader).send(self._request(its), self._produce_version_max)
                waiting.append(_OnItsWay(sent, its))
        except (OSError, Retriable) as error:
            self._broken(error)

    def _request(self, batches: dict[TopicPartition, Outgoing]) -> ProduceRequest:
        schema = ProduceRequest.PartitionProduceData
        rows = by_topic(
            (partition, schema(index=partition.partition, records=_sendable(batch.data)))
            for partition, batch in batches.items()
        )
        return ProduceRequest(
            transactional_id=self._transactional_id,
            acks=_ACKS_ALL,
            timeout_ms=_TIMEOUT_MS,
            topic_data=[ProduceRequest.TopicProduceData(name=name, partition_data=its) for name, its in rows.items()],
        )

    def _receive(self, leader: int) -> None:
        request = self._on_their_way[leader].popleft()
        answer = self._cluster.broker(leader).receive(request.sent)
        for topic in answer.responses:
            for row in topic.partition_responses:
                batch = request.batches.pop(TopicPartition(topic.name, row.index), None)
                if batch is None:
                    raise ConnectionResetError(f"broker {leader} answered for a partition that it was not asked about")
                self._judge(batch, row)
        if request.batches:
            raise ConnectionResetError(f"broker {leader} did not answer for all partitions")

    def _judge(self, batch: Outgoing, row: Any) -> None:
        code, partition = row.error_code, batch.partition
        if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            self._unacknowledged[partition].remove(batch)
            return
        follows_a_failure = code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and partition in self._failed
        if code not in RETRIABLE and not follows_a_failure:
            told = f" says: {row.error_message.rstrip('.')}" if row.error_message else ""
            otherwise = f"partition {partition.partition} of '{partition.topic}' refused records{told}"
            raise ApiError(ErrorCode(code), refusal(code, f"topic '{partition.topic}'", otherwise))
        self._failure = self._failure or ErrorCode(code).name
        self._failed.add(partition)
        self._cluster.forget_leaders()

    def _drain(self) -> None:
        try:
            for leader, waiting in self._on_their_way.items():
                while waiting:
                    self._receive(leader)
        except (OSError, Retriable) as error:
            self._broken(error)

    def _broken(self, error: Exception) -> None:
        self._failure = self._failure or str(error).rstrip(".") or type(error).__name__
        self._cluster.close()
        self._on_their_way.clear()

    # --- again

    def _recover(self) -> None:
        """Until everything is acknowledged; at once if it is."""
        deadline = Deadline(self._retry_timeout_s)
        while any(self._unacknowledged.values()):
            self._drain()
            if self._failure and not deadline.pause():
                raise Retriable(f"records could not be written for {self._retry_timeout_s:g} s: {self._failure}.")
            self._failure = ""
            self._failed.clear()
            self._send_again()
        self._failure = ""

    def _send_again(self) -> None:
        """One request after the other; stops at the first failure, since what follows would come too early."""
        while not self._failure and any(self._unacknowledged.values()):
            first = [waiting[0] for waiting in self._unacknowledged.values() if waiting]
            size = 0
            chosen: list[Outgoing] = []
            for batch in first:
                size += len(batch.data)
                if chosen and size > REQUEST_BYTES:
                    break
                chosen.append(batch)
            self._send(chosen)
            self._drain()


def _next_request(waiting: dict[TopicPartition, deque[Outgoing]]) -> list[Outgoing]:
    """Taken from there; those that it has no room for come first the next time."""
    request: list[Outgoing] = []
    size = 0
    for partition in list(waiting):
        size += len(waiting[partition][0].data)
        if request and size > REQUEST_BYTES:
            break
        left = waiting.pop(partition)
        request.append(left.popleft())
        if left:
            waiting[partition] = left
    return request


def _sendable(data: bytearray | BatchInFile) -> Any:
    return data if isinstance(data, BatchInFile) else memoryview(data)
