"""Rounds of a source: what tasks read becomes one transaction, with the offsets that they have read up to.

The order is the whole of exactly once: take the producer over (which settles whatever the last worker has left, and
shuts it out), then read the offsets, and only then read on from there.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import ExitStack
from functools import partial
from typing import Any

from ottla.client.cluster import ClusterClient
from ottla.client.producing import TransactionalProducer
from ottla.common.ids import TopicPartition
from ottla.connect.api import ConnectorFailure, Offset, Partition, Source
from ottla.connect.rounds.context import ConnectorContext, Progress, sliced
from ottla.connect.rounds.creating import topic_creation
from ottla.connect.rounds.failing import RoundFailed
from ottla.connect.rounds.reading import Item, Reading, ReadPlan, ReadResult, read_task
from ottla.connect.storage.batches import batches
from ottla.connect.storage.offsets import canonical
from ottla.kernel.compressing import NUMBERS
from ottla.spark.sink.driver_spool import driver_spool
from ottla.spark.sink.encoding import EncodePlan
from ottla.spark.sink.spooling import encoded_by
from ottla.spark.sink.transacting import Transacting

# New partitions of a topic are noticed within this time.
_COUNTS_AGE_S = 30.0
_TOO_LONG = "lower ottla.round.max.bytes of the worker"
Encoded = tuple[TopicPartition, Any]


class SourceRounds:
    """Used by the connector's thread."""

    def __init__(self, connector: ConnectorContext, source: type[Source]) -> None:
        self._connector = connector
        self._kind = source
        config, worker = connector.config, connector.worker
        self._source = source(config)
        self._creation = topic_creation(config, is_enabled=worker.creates_topics)
        self._codec = _codec(config.get("producer.override.compression.type", "none"))
        self._cluster = ClusterClient(worker.client.address)
        self._producer = TransactionalProducer(
            self._cluster,
            f"{worker.cluster_group}-{connector.name}",
            transaction_timeout_ms=worker.client.transaction_timeout_ms,
        )
        self._transacting = Transacting(
            self._producer,
            timeout_ms=worker.client.transaction_timeout_ms,
            retry_timeout_s=60.0,
            too_long=_TOO_LONG,
        )
        self._counts: dict[str, int] = {}
        self._counted_s = 0.0
        self._turn = 0
        self.task_count = 0
        self._partitions: list[Partition] = []
        # How far it was published, by canonical partition: nobody else writes that as long as we are not shut out.
        self._offsets: dict[str, Offset] = {}

    def begin(self) -> None:
        """Shut out whoever ran this connector before. Raises OttlaError."""
        self._producer.start()
        self._offsets = self._stored()
        self._look()

    def _stored(self) -> dict[str, Offset]:
        worker = self._connector.worker
        worker.offsets_topic.read_to_end()
        return worker.offsets.of(self._connector.name)

    def _look(self) -> None:
        most = self._connector.tasks_max
        self._partitions = list(self._source.partitions(most))
        self.task_count = max(1, min(most, len(self._partitions)))

    def run(self) -> bool:
        """One round: whether there may be more right now. Raises RoundFailed, OttlaError."""
        began_s = time.monotonic()
        self._look()
        before = self._offsets
        known = ((one, before.get(canonical(one))) for one in self._partitions)
        items: list[Item] = [(one, offset) for one, offset in known if self._source.has_more(one, offset)]
        if not items:
            return False
        # Another one first each time: what always has more than a round takes must not keep others waiting for ever.
        first = self._turn % len(items)
        items = items[first:] + items[:first]
        with ExitStack() as stack:
            encoded: Iterable[Encoded]
            if self._kind.reads_on_driver:
                results, encoded = self._read_here(items)
            else:
                results, encoded = self._read_in_tasks(items, stack)
            offsets = [offset for result in results for offset in result.offsets]
            moved = [(one, offset) for one, offset in offsets if before.get(canonical(one)) != offset]
            if not moved and not any(result.records for result in results):
                return False
            self._publish(encoded, moved)
        for partition, offset in moved:
            self._source.published(partition, offset)
        self._connector.on_progress(Progress(time.monotonic() - began_s, [_counts(result) for result in results]))
        return any(result.has_more for result in results) or any(result.records for result in results)

    # --- reading

    def _plan(self) -> ReadPlan:
        self._turn += 1
        if time.monotonic() > self._counted_s + _COUNTS_AGE_S:
            self._counts, self._counted_s = {}, time.monotonic()
        rounds, connector = self._connector.worker.rounds, self._connector
        encoding = EncodePlan(
            address=connector.worker.client.address,
            topic=None,
            partition_counts=dict(self._counts),
            codec=self._codec,
            turn=self._turn,
        )
        limit = max(1, rounds.bytes_max // self.task_count)
        return ReadPlan(self._kind, dict(connector.config), encoding, self._creation, limit, rounds.seconds_max)

    def _read_here(self, items: list[Item]) -> tuple[list[ReadResult], list[Encoded]]:
        plan = self._plan()
        reading = Reading(plan, self._source)
        found = [
            (TopicPartition(topic, partition), data)
            for topic, partition, _, data in plan.encoding.encode(reading.rows(items), task=0)
        ]
        result = reading.result(None)
        self._learn([result])
        return [result], found

    def _read_in_tasks(self, items: list[Item], stack: ExitStack) -> tuple[list[ReadResult], Iterable[Encoded]]:
        spool = driver_spool(self._connector.worker.session())
        batch = spool.begin()
        stack.callback(batch.close)
        task = partial(read_task, self._plan(), spool.target(batch))
        results = self._connector.job(task, sliced(items, self._connector.tasks_max))
        for result in results:
            if result.problem is not None:
                raise RoundFailed(result.problem)
        self._learn(results)
        return results, encoded_by(batch, [result.report for result in results if result.report is not None])

    def _learn(self, results: list[ReadResult]) -> None:
        new = {topic: count for result in results for topic, count in result.counts.items()}
        if new.keys() - self._counts.keys():
            self._connector.on_topics(sorted(new.keys() - self._counts.keys()))
        self._counts.update(new)

    # --- publishing

    def _publish(self, encoded: Iterable[Encoded], moved: list[tuple[Partition, Offset]]) -> None:
        worker, name = self._connector.worker, self._connector.name
        records = [worker.offsets.record(name, partition, offset) for partition, offset in moved]
        topic = worker.offsets_topic

        def transact() -> None:
            self._producer.begin()
            self._producer.produce(encoded)
            self._producer.produce(batches(topic.name, topic.partitions, records))
            self._producer.commit()

        self._transacting.run(transact, lambda: self._is_published(moved))
        self._offsets |= {canonical(partition): offset for partition, offset in moved}

    def _is_published(self, moved: list[tuple[Partition, Offset]]) -> bool:
        """After a commit whose answer was lost: offsets that moved are there, or they are not."""
        now = self._stored()
        return bool(moved) and all(now.get(canonical(partition)) == offset for partition, offset in moved)

    def close(self) -> None:
        self._source.close()
        self._producer.close()
        self._cluster.close()


def _counts(result: ReadResult) -> dict[str, int]:
    polled = result.records + result.skipped
    return {"polled": polled, "published": result.records, "failed": result.skipped, "skipped": result.skipped}


def _codec(name: str) -> int:
    if name not in NUMBERS:
        raise ConnectorFailure(f"producer.override.compression.type is '{name}', expected one of {', '.join(NUMBERS)}.")
    return NUMBERS[name]
