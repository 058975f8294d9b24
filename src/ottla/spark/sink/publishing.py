"""The driver's part of the sink: what executors encoded becomes one transaction.

The order is the whole of exactly once: take the producer over (that settles whatever the last driver left), *then* read
which batch was published last, and only then decide. A batch that was published is not published again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ottla.client.address import ClusterAddress
from ottla.client.cluster import ClusterClient
from ottla.client.idempotent import IdempotentProducer
from ottla.client.lookup import MISSING_TOPIC_TIMEOUT_S
from ottla.client.producing import Committed, TransactionalProducer
from ottla.client.retrying import Deadline, retried
from ottla.common.errors import OttlaError
from ottla.common.ids import TopicPartition
from ottla.spark.sink.checkpoint import Offsets
from ottla.spark.sink.marker import Marker, ensure_marker_topic, marker_batch, read_marker
from ottla.spark.sink.transacting import Transacting

Encoded = tuple[TopicPartition, Any]
_COUNTS_AGE_S = 30.0
# Kafka forgets what a group without members has not said again for `offsets.retention.minutes`, each partition by
# itself: seven days, if nobody has changed it.
_TOLD_AGE_S = 3600.0


class StaleCheckpoint(OttlaError):
    """The cluster has later batches than the checkpoint."""


@dataclass(frozen=True)
class PublisherSettings:
    address: ClusterAddress
    # The transactional id, and the key of the marker.
    name: str
    group: str
    marker_topic: str
    transaction_timeout_ms: int = 60_000
    retry_timeout_s: float = 60.0
    # At least once: all but those of these topics come before the transaction, not in it. None: all are in it.
    transactional_topics: frozenset[str] | None = None


class Publisher:
    def __init__(self, settings: PublisherSettings) -> None:
        self._settings = settings
        self._cluster = ClusterClient(settings.address)
        self._producer = TransactionalProducer(
            self._cluster,
            settings.name,
            transaction_timeout_ms=settings.transaction_timeout_ms,
            retry_timeout_s=settings.retry_timeout_s,
        )
        self._records: IdempotentProducer | None = None
        if settings.transactional_topics is not None:
            self._records = IdempotentProducer(self._cluster, retry_timeout_s=settings.retry_timeout_s)
        self._marker_partition = TopicPartition(settings.marker_topic, 0)
        self._topics_here: set[str] = set()
        self._missing: set[str] = set()
        self._counts: dict[str, int] = {}
        self._counted_s = 0.0
        self._has_started = False
        # When the group has heard of all partitions.
        self._told_s: float | None = None
        self._transacting = Transacting(
            self._producer,
            timeout_ms=settings.transaction_timeout_ms,
            retry_timeout_s=settings.retry_timeout_s,
            too_long="make batches smaller with maxBytesPerTrigger",
        )
        # What was published last, as far as we know.
        self.last: Marker | None = None

    def check_cluster(self, topic: str | None) -> None:
        """Raises OttlaError when nobody answers, or when the topic is not there."""
        try:
            ensure_marker_topic(self._cluster, self._settings.marker_topic)
            if topic is not None:
                self._cluster.leaders([topic])
        finally:
            self._cluster.close()

    def partition_counts(self, topics: Iterable[str]) -> dict[str, int]:
        """Of those that are there. New partitions are noticed within seconds, not at once."""
        wanted = set(topics)
        if wanted - self._counts.keys() or time.monotonic() > self._counted_s + _COUNTS_AGE_S:
            self._counts = {topic.name: len(topic.partitions) for topic in self._topics(wanted)}
            self._counted_s = time.monotonic()
        return {topic: count for topic, count in self._counts.items() if topic in wanted}

    def _topics(self, names: Iterable[str]) -> list[Any]:
        """Those that are there. A connection that nobody used for long may be gone: that is no failure. A broker that
        has just started may deny a topic for a moment: it is asked again, and believed at once the next time."""
        cluster, wanted = self._cluster, sorted(names)
        deadline = Deadline(MISSING_TOPIC_TIMEOUT_S)
        while True:
            answer = retried(lambda: cluster.metadata(wanted), Deadline(self._settings.retry_timeout_s), cluster.forget)
            found = [topic for topic in answer.topics if not topic.error_code]
            missing = set(wanted) - {topic.name for topic in found}
            if missing <= self._missing or not deadline.pause():
                self._missing = (self._missing - set(wanted)) | missing
                return found

    def is_published(self, query: str, batch: int, offsets: Offsets) -> bool:
        """Whether this batch is there already. Raises OttlaError when what is there does not go with the checkpoint."""
        if not self._has_started:
            self._producer.start()
            self.last = self._read_marker()
            self._has_started = True
        return is_published_already(self._settings.name, self.last, Marker(query, batch, offsets))

    def _read_marker(self) -> Marker | None:
        """What the last transaction that was committed says: ours are decided once the producer is initialised."""
        settings = self._settings
        return read_marker(
            self._cluster, settings.marker_topic, settings.name, retry_timeout_s=settings.retry_timeout_s
        )

    def publish(self, marker: Marker, batches: Iterable[Encoded]) -> None:
        """All of these batches, the source's offsets and the marker, or nothing. At least once: first the batches of
        results, and when all of them are written the rest; if it does not get that far, they are written again.

        `batches` may be read again: a transaction that was lost on its way is aborted, and unless the marker says that
        it was committed after all, everything is published once more. Raises ProducerFenced when another writer has
        taken over, and OttlaError for what trying again does not change.
        """
        outside = self._outside(batches)
        self._transacting.run(lambda: self._transact(marker, batches, outside), lambda: self._has_published(marker))
        self.last = marker

    def _outside(self, batches: Iterable[Encoded]) -> Callable[[], None]:
        """Writes what does not belong into the transaction; once, however often that is begun."""
        within, records = self._settings.transactional_topics, self._records
        is_written = within is None or records is None

        def write() -> None:
            nonlocal is_written
            if not is_written:
                assert within is not None and records is not None
                records.write(batch for batch in batches if batch[0].topic not in within)
                is_written = True

        return write

    def _inside(self, batches: Iterable[Encoded]) -> Iterable[Encoded]:
        within = self._settings.transactional_topics
        return batches if within is None else (batch for batch in batches if batch[0].topic in within)

    def _transact(self, marker: Marker, batches: Iterable[Encoded], write_outside: Callable[[], None]) -> None:
        producer = self._producer
        producer.begin()
        write_outside()
        producer.produce(self._inside(batches))
        producer.produce([(self._marker_partition, marker_batch(self._settings.name, marker))])
        now_s = time.monotonic()
        tells_all = self._told_s is None or now_s > self._told_s + _TOLD_AGE_S
        offsets = dict(self._committed(marker, tells_all=tells_all))
        if offsets:
            producer.commit_offsets(self._settings.group, offsets)
        producer.commit()
        if tells_all:
            self._told_s = now_s

    def _has_published(self, marker: Marker) -> bool:
        self.last = self._read_marker()
        # A topic may have been deleted since: offsets in it would be refused again.
        self._topics_here.clear()
        return is_published_already(self._settings.name, self.last, marker)

    def _committed(self, marker: Marker, *, tells_all: bool) -> Iterator[tuple[TopicPartition, Committed]]:
        """A source may be of another cluster, whose topics have no offsets here: the marker has them all the same. The
        group hears of all partitions now and then, as its offsets expire, and else of those that moved."""
        offsets = marker.offsets or {}
        unknown = sorted(offsets.keys() - self._topics_here)
        if unknown:
            self._topics_here |= {topic.name for topic in self._topics(unknown)}
        before = (self.last.offsets or {}) if self.last is not None and not tells_all else {}
        for topic in offsets.keys() & self._topics_here:
            known = before.get(topic, {})
            for partition, offset in offsets[topic].items():
                if known.get(partition) != offset:
                    yield TopicPartition(topic, int(partition)), Committed(offset, marker.note())

    def close(self) -> None:
        self._producer.close()
        if self._records is not None:
            self._records.close()
        self._cluster.close()


def is_published_already(name: str, last: Marker | None, now: Marker) -> bool:
    """Compare what the checkpoint is about to do with what was done last; refuse what does not go together."""
    if last is None:
        if now.batch == 0:
            return False
        raise OttlaError(
            f"the checkpoint of '{name}' is at batch {now.batch}, but this cluster has no marker of it: it belongs "
            "to another cluster, or its marker was deleted; start with an empty checkpoint to write everything again."
        )
    if last.query != now.query:
        raise OttlaError(
            f"'{name}' was written by another query (id {last.query}, up to batch {last.batch}) than that of this "
            f"checkpoint (id {now.query}): use its checkpoint, or another name, or `ottla.spark.forget` to start over."
        )
    if now.batch == last.batch + 1:
        return False
    if now == last:
        return True
    is_older = now.batch <= last.batch
    older = "older than what was published" if is_older else "ahead of what was published"
    kind = StaleCheckpoint if is_older else OttlaError
    raise kind(
        f"the checkpoint of '{name}' is {older}: it is at batch {now.batch}, the topics at {last.batch}; going on "
        "would lose or double records, so restore the checkpoint that belongs to them, or use `ottla.spark.forget` to "
        "start over."
    )
