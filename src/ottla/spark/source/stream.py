"""A streaming query: which offsets the next micro-batch covers, and the splits that read it.

`initialOffset`, `latestOffset` and `partitions` run in one process of the driver for as long as the query runs, `read`
in Python workers of the executors. What is asked of the broker per micro-batch is the metadata and the end offsets.
Offsets are Spark's to keep: `commit` does nothing here.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
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

from ottla.client.admin.log_sizes import average_bytes
from ottla.client.fetching import OffsetRange, OnLoss
from ottla.client.lookup import EARLIEST, ClusterReader
from ottla.client.sampling import look_at
from ottla.common.ids import TopicId, TopicPartition
from ottla.spark.source.admission import Admission
from ottla.spark.source.batch import SplitPartition, read_partition
from ottla.spark.source.gate import Knocker
from ottla.spark.source.loss import loss_handler
from ottla.spark.source.offsets import JsonOffsets, SourceOffset, from_json, limited, to_json
from ottla.spark.source.options import SourceOptions
from ottla.spark.source.positions import Offsets
from ottla.spark.source.splits import make_splits, whole_splits
from ottla.spark.source.subscription import subscribed


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: SourceOptions, schema: Any, cores: int, gate: Knocker | None = None) -> None:
        """Without a gate nobody waits for what it reads."""
        self._options = options
        self._schema = schema
        self._cores = cores
        self._gate = gate or Knocker(None)
        self._connected: ClusterReader | None = None
        self._latest = SourceOffset()
        self._target: SourceOffset | None = None
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
        offsets = self._options.starting.resolve(self._reader, partitions)
        return to_json(SourceOffset(offsets, self._topic_ids(offsets)))

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
        self._target = self._ends(SourceOffset())

    def latestOffset(self, start: JsonOffsets, limit: ReadLimit) -> JsonOffsets:
        end = self._next_end(start, limit)
        if end != start:
            self._gate.knock()
        return end

    def _next_end(self, start: JsonOffsets, limit: ReadLimit) -> JsonOffsets:
        before = from_json(start)
        if self._target is None or self._behind(before, self._target):
            latest = self._ends(before)
            self._target = latest if self._target is not None else None
        else:
            latest = self._target
        self._latest = latest
        if isinstance(limit, ReadAllAvailable):
            return to_json(before.moved_to(latest.offsets, latest))
        replaced = before.replaced_by(latest)
        starts = {partition: offset for partition, offset in before.offsets.items() if partition.topic not in replaced}
        starts |= self._beginnings(set(latest.offsets) - set(starts))
        if self._admission is not None and replaced:
            self._admission.forget(replaced)
        if self._must_wait(starts, latest.offsets):
            return start
        ends = latest.offsets
        if self._options.max_bytes_per_trigger is not None:
            ends = self._admitted(starts, ends, self._options.max_bytes_per_trigger)
        if self._options.max_offsets_per_trigger is not None:
            ends = limited(starts, ends, self._options.max_offsets_per_trigger)
        return to_json(before.moved_to(ends, latest))

    def _admitted(self, starts: Offsets, ends: Offsets, bytes_max: int) -> Offsets:
        if self._admission is None:
            reader = self._reader
            self._admission = Admission(bytes_max, partial(look_at, reader), partial(average_bytes, reader))
        return self._admission.ends(starts, ends)

    def reportLatestOffset(self) -> JsonOffsets | None:
        """For lag alone: offsets and nothing else."""
        return to_json(SourceOffset(self._latest.offsets)) if self._latest.offsets else None

    def _must_wait(self, starts: Offsets, ends: Offsets) -> bool:
        least = self._options.min_offsets_per_trigger
        if least is None or self._target is not None:
            return False
        now = time.monotonic()
        there = sum(max(0, end - starts[partition]) for partition, end in ends.items())
        delay_s = self._options.max_trigger_delay_ms / 1000
        if there < least and self._last_batch_at is not None and now - self._last_batch_at < delay_s:
            return True
        self._last_batch_at = now
        return False

    def _ends(self, before: SourceOffset) -> SourceOffset:
        """After a restart a leader may state an end that lies before what it served already, for a moment. It is waited
        for as long as any broker is; then planning finds that the partition has become shorter, and tells."""
        deadline = self._reader.deadline(has_met=True)
        while True:
            partitions = subscribed(self._reader, self._options, must_exist=False)
            found = self._reader.ends(partitions)
            ends = {partition: end.offset for partition, end in found.items()}
            epochs = {partition: end.leader_epoch for partition, end in found.items()}
            latest = SourceOffset(ends, self._topic_ids(ends), epochs)
            behind = self._behind(before, latest)
            if not behind or set(behind) <= set(self._cut(before, behind)) or not deadline.pause():
                return latest

    def _behind(self, before: SourceOffset, latest: SourceOffset) -> list[TopicPartition]:
        """Partitions, not of another topic, that end before what was read of them."""
        replaced = before.replaced_by(latest)
        return [
            partition
            for partition, end in latest.offsets.items()
            if end < before.offsets.get(partition, 0) and partition.topic not in replaced
        ]

    def _cut(self, before: SourceOffset, partitions: Iterable[TopicPartition]) -> Offsets:
        """Those that are known to have lost records that were read, and where: a new leader did not have them."""
        epochs = {partition: before.epochs[partition] for partition in partitions if partition in before.epochs}
        found = self._reader.epoch_ends(epochs)
        return {partition: end for partition, end in found.items() if end < before.offsets[partition]}

    def _topic_ids(self, offsets: Offsets) -> dict[str, TopicId]:
        """Of the metadata that was asked for last."""
        known = self._reader.topic_ids
        return {topic: known[topic] for topic in sorted({partition.topic for partition in offsets}) if topic in known}

    def _beginnings(self, partitions: set[TopicPartition]) -> Offsets:
        return self._reader.offsets(dict.fromkeys(sorted(partitions), EARLIEST))

    # --- what is read

    def partitions(self, start: JsonOffsets, end: JsonOffsets) -> Sequence[InputPartition]:
        options = self._options
        ranges = self._ranges(from_json(start), from_json(end))
        if options.has_whole_partitions:
            return [SplitPartition(split) for split in whole_splits(ranges, self._cores)]
        splits = make_splits(
            ranges,
            self._cores,
            at_least=options.min_partitions,
            records_max=options.max_records_per_split,
            size_bytes=self._admission.size_of(ranges) if self._admission is not None else 0.0,
        )
        return [SplitPartition(split) for split in splits]

    def _ranges(self, before: SourceOffset, after: SourceOffset) -> list[OffsetRange]:
        on_loss = loss_handler(self._options.fail_on_data_loss)
        starts = self._starts(before, after, on_loss)
        there = self._existing(after)
        made_anew = after.replaced_by(there)
        for topic in sorted(made_anew):
            on_loss(f"topic {topic} was deleted and made anew before it was read.")
        wanted = {
            partition for partition in after.offsets if partition in there.offsets and partition.topic not in made_anew
        }
        told = made_anew | before.replaced_by(after)
        gone = sorted(
            partition for partition in {*before.offsets, *after.offsets} - wanted if partition.topic not in told
        )
        if gone:
            on_loss(f"partition {gone[0]} does not exist any more{_and_more(len(gone) - 1)}.")
        for partition, offset in self._beginnings(wanted - set(starts)).items():
            starts[partition] = offset
            if offset > 0:
                on_loss(f"partition {partition} is new, but begins at offset {offset} instead of 0.")
        ids = after.topic_ids
        ranges = [
            OffsetRange(*partition, starts[partition], after.offsets[partition], ids.get(partition.topic))
            for partition in sorted(wanted)
        ]
        for each in ranges:
            if each.size < 0:
                on_loss(f"partition {each.where} ends at offset {each.end}, but was read up to {each.start} before.")
        return ranges

    def _starts(self, before: SourceOffset, after: SourceOffset, on_loss: OnLoss) -> Offsets:
        """Where reading goes on: not where another topic of the same name was read up to."""
        replaced = before.replaced_by(after)
        for topic in sorted(replaced):
            on_loss(f"topic {topic} was deleted and made anew since it was read.")
        starts = {partition: offset for partition, offset in before.offsets.items() if partition.topic not in replaced}
        led_anew = [
            partition
            for partition in starts
            if partition in before.epochs and after.epochs.get(partition, -1) > before.epochs[partition]
        ]
        for partition, end in self._cut(before, led_anew).items():
            read = starts[partition]
            on_loss(f"partition {partition} was read up to {read}, but its leader had only what lies before {end}.")
            starts[partition] = end
        return starts

    def _existing(self, after: SourceOffset) -> SourceOffset:
        """What there is now, without a question where it was just asked for; a restarted query has asked nothing."""
        if set(after.offsets) <= set(self._latest.offsets):
            return self._latest
        found = self._reader.partitions(sorted({partition.topic for partition in after.offsets}))
        offsets = {TopicPartition(topic, number): 0 for topic, numbers in found.items() for number in numbers}
        return SourceOffset(offsets, self._topic_ids(offsets))

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_partition(partition, self._options, self._schema)

    def commit(self, end: JsonOffsets) -> None:
        pass

    def stop(self) -> None:
        self._gate.close()
        if self._connected is not None:
            self._connected.close()


def _and_more(count: int) -> str:
    return f", nor do {count} others" if count > 0 else ""
