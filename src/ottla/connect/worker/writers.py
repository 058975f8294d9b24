"""Who writes to the topics of a cluster of workers: the leader configurations, and everybody the states of its own.

The leader writes in transactions under one name, as Kafka Connect's does: whoever leads next shuts it out with
its first step, so what an old leader has in its hands when it comes back is refused.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from ottla.client.cluster import ClusterClient
from ottla.client.idempotent import IdempotentProducer
from ottla.client.producing import ProducerFenced, TransactionalProducer, TransactionRefused
from ottla.client.settings import ClientSettings
from ottla.common.errors import OttlaError
from ottla.common.failures import Failure
from ottla.connect.storage.batches import Pair, batches
from ottla.connect.storage.compacted import CompactedTopic


class Fenced(Exception):
    """Another worker leads: nothing was written."""


class LeaderWriter:
    """Of one topic. One request at a time."""

    def __init__(self, client: ClientSettings, topic: CompactedTopic, transactional_id: str) -> None:
        self._topic = topic
        self._cluster = ClusterClient(client.address)
        self._producer = TransactionalProducer(self._cluster, transactional_id)
        self._guard = threading.Lock()
        self._is_ours = False

    def resign(self) -> None:
        self._is_ours = False

    def take_over(self) -> None:
        """Everything that was ever written is read when this returns. Raises OttlaError."""
        with self._guard:
            if not self._is_ours:
                self._producer.start()
                self._topic.read_to_end()
                self._is_ours = True

    def write(self, records: Sequence[Pair]) -> None:
        """All of them, read back when this returns. Raises Fenced, OttlaError."""
        with self._guard:
            try:
                with self._producer.transaction():
                    self._producer.produce(batches(self._topic.name, self._topic.partitions, records))
            except ProducerFenced:
                self._is_ours = False
                raise Fenced from None
            except TransactionRefused as refused:
                self._is_ours = False
                if refused.failure in (Failure.FENCED, Failure.EPOCH):
                    raise Fenced from None
                raise
            self._topic.read_to_end()

    def close(self) -> None:
        self._producer.close()
        self._cluster.close()


class PlainWriter:
    """Any worker's: what it writes is there at once, and read back when `write` returns."""

    def __init__(self, client: ClientSettings, topic: CompactedTopic) -> None:
        self._topic = topic
        self._cluster = ClusterClient(client.address)
        self._producer = IdempotentProducer(self._cluster)
        self._guard = threading.Lock()

    def write(self, records: Sequence[Pair]) -> None:
        with self._guard:
            try:
                self._send(records)
            except OttlaError:
                # Of a producer that has not written for long the cluster may know nothing any more. The records of a
                # compacted topic may be there twice.
                self._send(records)
        self._topic.read_to_end()

    def _send(self, records: Sequence[Pair]) -> None:
        self._producer.write(batches(self._topic.name, self._topic.partitions, records))

    def close(self) -> None:
        self._producer.close()
        self._cluster.close()
