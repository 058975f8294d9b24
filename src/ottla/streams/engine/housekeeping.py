"""What the driver does between batches: records of repartition topics that were processed are deleted, as Kafka Streams
does it (`repartition.purge.interval.ms`), or they would stay for ever.

Only what lies before the last batch that Spark has noted as done: that one never runs again, and the next one reads
from where it ended. It hangs in the query where the tables of a pipeline do.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ottla.client.admin.own_topics import delete_records
from ottla.client.lookup import ClusterReader
from ottla.client.settings import ClientSettings
from ottla.common.ids import TopicPartition
from ottla.spark.sink.checkpoint import Checkpoint
from ottla.spark.sink.manifest import Manifests

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PURGE_S = 30.0
_log = logging.getLogger("ottla.streams")


class Housekeeping:
    """In the form of `ottla.spark.sink.streaming.Tables`."""

    def __init__(self, settings: ClientSettings, topics: list[str], *, purge_s: float | None = None) -> None:
        """`topics`: the repartition topics."""
        self._settings = replace(settings, is_committed_only=False)
        self._topics = topics
        self._purge_s = PURGE_S if purge_s is None else purge_s
        self._purged_s = time.monotonic()
        self._purged: dict[TopicPartition, int] = {}
        self._checkpoint: Checkpoint | None = None

    @property
    def names(self) -> list[str]:
        return []

    def with_lookups(self, frame: DataFrame) -> DataFrame:
        return frame

    def open(self, checkpoint: Checkpoint, manifests: Manifests, on_failure: Callable[[Exception], None]) -> None:
        self._checkpoint = checkpoint

    def dead_letters(self, batch: int) -> list[DataFrame]:
        return []

    def count_letters(self, batch: int) -> int:
        return 0

    def batch_done(self) -> None:
        if time.monotonic() - self._purged_s >= self._purge_s:
            self._purge()

    def close(self) -> None:
        self._purge()
        self._checkpoint = None

    def _purge(self) -> None:
        if self._checkpoint is None or not self._topics:
            return
        self._purged_s = time.monotonic()
        try:
            before = self._processed(self._checkpoint)
            if before:
                with ClusterReader(self._settings) as reader:
                    reader.retried(lambda: delete_records(reader, before))
                self._purged |= before
        except Exception as error:
            # It costs disk, not records: the next turn tries it again. After Spark's JVM is gone anything may be raised
            # here, and what ended the query must be told instead.
            _log.warning("processed records of repartition topics cannot be deleted now: %s", error)

    def _processed(self, checkpoint: Checkpoint) -> Mapping[TopicPartition, int]:
        done = max(checkpoint.numbers("commits"), default=None)
        if done is None:
            return {}
        offsets = checkpoint.end(done).offsets
        found = {
            TopicPartition(topic, int(number)): offset
            for topic in self._topics
            for number, offset in offsets.get(topic, {}).items()
        }
        return {partition: offset for partition, offset in found.items() if offset > self._purged.get(partition, 0)}
