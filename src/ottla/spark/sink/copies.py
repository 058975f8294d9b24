"""The driver's side of a query that only copies (`copy_plan.py`): its batches are encoded by the tasks that read them,
or here if they are small."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from ottla.client.lookup import ClusterReader
from ottla.common.ids import TopicPartition
from ottla.spark.sink.copying import Copy, IntoNothing
from ottla.spark.sink.encoding import EncodePlan
from ottla.spark.sink.in_tasks import Counts, PickledWork, spooled_by_work
from ottla.spark.sink.load import SMALL_BYTES
from ottla.spark.sink.spooling import EncodedFrame
from ottla.spark.spool.server import SpoolServer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# What was judged to be small may not be: so much of it is taken into memory before executors have it all.
_HERE_BYTES_MAX = 16 * SMALL_BYTES


class Copies:
    """Batch after batch, of one query."""

    def __init__(self, copy: Copy, spool: SpoolServer) -> None:
        self._copy = copy
        self._work = PickledWork.of(copy)
        self._counting = PickledWork.of(IntoNothing(self._work))
        self._spool = spool
        self._reader: ClusterReader | None = None

    def encoded(self, ranges: DataFrame, plan: EncodePlan, *, is_small: bool, stack: ExitStack) -> EncodedFrame:
        """All that the batch writes, there until `stack` is left."""
        if is_small and (encoded := self._encoded_here(ranges, plan)) is not None:
            return encoded
        return stack.enter_context(spooled_by_work(ranges, self._work, plan, self._spool))

    def counted(self, ranges: DataFrame, plan: EncodePlan) -> Counts:
        """Of a batch that was published before: nothing is encoded."""
        with spooled_by_work(ranges, self._counting, plan, self._spool) as encoded:
            return encoded.counts or Counts()

    def observed(self, counts: Counts) -> dict[str, dict[str, int]]:
        return self._copy.observed(counts)

    def _encoded_here(self, ranges: DataFrame, plan: EncodePlan) -> EncodedFrame | None:
        """A process that reads a few records takes longer to begin than they do. None when it cannot be done here, for
        whatever reason: the executors then tell what is wrong, if something is."""
        counts, batches, size = Counts(), [], 0
        try:
            self._reader = self._reader or ClusterReader(self._copy.reading.settings)
            rows = self._copy(iter(ranges.toArrow().to_batches()), counts, self._reader)
            for topic, partition, _, data in plan.encode(rows, task=0):
                batches.append((TopicPartition(topic, partition), data))
                size += len(data)
                if size > _HERE_BYTES_MAX:
                    return None
        except Exception:
            return None
        encoded = EncodedFrame(size, lambda: batches)
        encoded.counts = counts
        return encoded

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
