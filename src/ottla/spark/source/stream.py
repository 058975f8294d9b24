"""A streaming query: which offsets the next micro-batch covers, and the splits that read it.

`initialOffset`, `latestOffset` and `partitions` run in one process of the driver for as long as the query runs, `read`
in Python workers of the executors. What is asked of the broker per micro-batch is the metadata and the end offsets.
Offsets are Spark's to keep: `commit` does nothing here.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from ottla.client.fetching import OffsetRange
from ottla.client.lookup import EARLIEST, LATEST, ClusterReader
from ottla.client.sampling import look_at
from ottla.common.ids import TopicPartition
from ottla.spark.source.admission import Admission
from ottla.spark.source.batch import SplitPartition, read_partition
from ottla.spark.source.loss import loss_handler
from ottla.spark.source.offsets import from_json, limited, to_json
from ottla.spark.source.options import SourceOptions
from ottla.spark.source.positions import Offsets
from ottla.spark.source.splits import make_splits
from ottla.spark.source.subscription import subscribed

# After a restart a leader may state an end that lies before what it served already, for a moment.
_BEHIND_TRIES = 10
_BEHIND_PAUSE_S = 0.2

JsonOffsets = dict[str, dict[str, int]]


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: SourceOptions, schema: Any, cores: int) -> None:
        self._options = options
        self._schema = schema
        self._cores = cores
        self._connected: ClusterReader | None = None
        self._latest: Offsets = {}
        self._target: Offsets | None = None
        self._last_batch_at: float | None = None
        self._admission: Admission | None = None

    @property
    def _reader(self) -> ClusterReader:
        """Made when first used: Spark also makes readers only to send them to executors."""
        if self._connected is None:
            self._connected = ClusterReader(self._options.client)
        return self._connected

    # --- how far

    def initialOffset(self) -> JsonOffsets:
        partitions = subscribed(self._reader, self._options, must_exist=True)
        return to_json(self._options.starting.resolve(self._reader, partitions))

    def getDefaultReadLimit(self) -> ReadLimit:
        """Spark has no limit of several kinds: any but ReadAllAvailable means that our options count."""
        if self._options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self._options.max_offsets_per_trigger)
        if self._options.min_offsets_per_trigger is not None:
            return ReadMinRows(self._options.min_offsets_per_trigger)
        if self._options.max_bytes_per_trigger is not None:
            return ReadMaxBytes(self._options.max_bytes_per_trigger)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._ends({})

    def latestOffset(self, start: JsonOffsets, limit: ReadLimit) -> JsonOffsets:
        starts = from_json(start)
        ends = self._target if self._target is not None else self._ends(starts)
        self._latest = ends
        if isinstance(limit, ReadAllAvailable):
            return to_json(ends)
        starts |= self._beginnings(set(ends) - set(starts))
        if self._must_wait(starts, ends):
            return start
        if self._options.max_offsets_per_trigger is not None:
            ends = limited(starts, ends, self._options.max_offsets_per_trigger)
        if self._options.max_bytes_per_trigger is not None:
            ends = self._admitted(starts, ends, self._options.max_bytes_per_trigger)
        return to_json(ends)

    def _admitted(self, starts: Offsets, ends: Offsets, bytes_max: int) -> Offsets:
        if self._admission is None:
            self._admission = Admission(bytes_max, partial(look_at, self._reader))
        return self._admission.ends(starts, ends)

    def reportLatestOffset(self) -> JsonOffsets | None:
        return to_json(self._latest) if self._latest else None

    def _must_wait(self, starts: Offsets, ends: Offsets) -> bool:
        least = self._options.min_offsets_per_trigger
        if least is None or self._target is not None:
            return False
        now = time.monotonic()
        there = sum(max(0, end - starts[one]) for one, end in ends.items())
        delay_s = self._options.max_trigger_delay_ms / 1000
        if there < least and self._last_batch_at is not None and now - self._last_batch_at < delay_s:
            return True
        self._last_batch_at = now
        return False

    def _ends(self, starts: Offsets) -> Offsets:
        for _ in range(_BEHIND_TRIES):
            partitions = subscribed(self._reader, self._options, must_exist=False)
            ends = self._reader.offsets(dict.fromkeys(partitions, LATEST))
            if all(end >= starts.get(one, 0) for one, end in ends.items()):
                break
            time.sleep(_BEHIND_PAUSE_S)
        return ends

    def _beginnings(self, partitions: set[TopicPartition]) -> Offsets:
        return self._reader.offsets(dict.fromkeys(sorted(partitions), EARLIEST))

    # --- what is read

    def partitions(self, start: JsonOffsets, end: JsonOffsets) -> Sequence[InputPartition]:
        starts, ends = from_json(start), from_json(end)
        options = self._options
        splits = make_splits(
            self._ranges(starts, ends),
            self._cores,
            at_least=options.min_partitions,
            records_max=options.max_records_per_split,
        )
        return [SplitPartition(split) for split in splits]

    def _ranges(self, starts: Offsets, ends: Offsets) -> list[OffsetRange]:
        on_loss = loss_handler(self._options.fail_on_data_loss)
        there = self._existing(ends)
        gone = sorted((set(starts) - set(ends)) | (set(ends) - there))
        if gone:
            on_loss(f"partition {gone[0]} does not exist any more{_and_more(len(gone) - 1)}.")
        for one, offset in self._beginnings((set(ends) & there) - set(starts)).items():
            starts[one] = offset
            if offset > 0:
                on_loss(f"partition {one} is new, but begins at offset {offset} instead of 0.")
        ranges = [OffsetRange(*one, starts[one], ends[one]) for one in sorted(ends) if one in there]
        for wanted in ranges:
            if wanted.size < 0:
                on_loss(
                    f"partition {wanted.where} ends at offset {wanted.end}, but was read up to {wanted.start} before."
                )
        return ranges

    def _existing(self, ends: Offsets) -> set[TopicPartition]:
        """Without a question for those whose ends were just asked for; a restarted query has asked for none."""
        if set(ends) <= set(self._latest):
            return set(ends)
        found = self._reader.partitions(sorted({one.topic for one in ends}))
        return {one for one in ends if one.partition in found.get(one.topic, ())}

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_partition(partition, self._options, self._schema)

    def commit(self, end: JsonOffsets) -> None:
        pass

    def stop(self) -> None:
        if self._connected is not None:
            self._connected.close()


def _and_more(count: int) -> str:
    return f", nor do {count} others" if count > 0 else ""
