"""A batch query: offsets are resolved once, when it is planned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from ottla.client.admin.log_sizes import average_bytes
from ottla.client.fetching import OffsetRange
from ottla.client.lookup import ClusterReader
from ottla.spark.source.loss import loss_handler
from ottla.spark.source.options import SourceOptions
from ottla.spark.source.ranges import rows_of
from ottla.spark.source.reading import read_split
from ottla.spark.source.splits import SPLIT_RECORDS_MIN, Split, make_splits
from ottla.spark.source.subscription import subscribed

# One task reads them soon enough, however large they are.
_FEW_RECORDS = 16


class SplitPartition(InputPartition):
    def __init__(self, ranges: Split) -> None:
        self.ranges = ranges


class BatchReader(DataSourceReader):
    def __init__(self, options: SourceOptions, schema: Any, cores: int) -> None:
        self._options = options
        self._schema = schema
        self._cores = cores

    def partitions(self) -> list[InputPartition]:
        options = self._options
        with ClusterReader(options.client) as reader:
            ranges = plan_ranges(reader, options)
            size_bytes = self._size_of(reader, ranges)
        splits = make_splits(
            ranges,
            self._cores,
            at_least=options.min_partitions,
            records_max=options.max_records_per_split,
            size_bytes=size_bytes,
        )
        # Spark makes a partition of its own, and asks us to read it, when there is none.
        return [SplitPartition(split) for split in splits] or [SplitPartition([])]

    def _size_of(self, reader: ClusterReader, ranges: list[OffsetRange]) -> float:
        """Asked for only where it decides on the number of splits: a few thousand records may be many bytes."""
        records = sum(max(0, offset_range.size) for offset_range in ranges)
        if not _FEW_RECORDS < records < self._cores * SPLIT_RECORDS_MIN:
            return 0.0
        averages = average_bytes(reader, [offset_range.where for offset_range in ranges if offset_range.size > 0])
        return sum(
            offset_range.size * averages.get(offset_range.where, 0.0)
            for offset_range in ranges
            if offset_range.size > 0
        )

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_partition(partition, self._options, self._schema)


def plan_ranges(reader: ClusterReader, options: SourceOptions) -> list[OffsetRange]:
    partitions = subscribed(reader, options, must_exist=True)
    starts = options.starting.resolve(reader, partitions)
    ends = options.ending.resolve(reader, partitions)
    on_loss = loss_handler(options.fail_on_data_loss)
    for partition in partitions:
        if starts[partition] > ends[partition]:
            start, end = starts[partition], ends[partition]
            on_loss(f"partition {partition} ends at {end}, before the offset {start} where reading begins.")
    return [
        OffsetRange(*partition, starts[partition], ends[partition], reader.topic_ids.get(partition.topic))
        for partition in partitions
    ]


def read_partition(partition: InputPartition, options: SourceOptions, schema: Any) -> Iterator[Any]:
    from pyspark.sql.pandas.types import to_arrow_schema

    assert isinstance(partition, SplitPartition)
    if options.ranges_only:
        return iter([rows_of(partition.ranges)])
    return read_split(
        partition.ranges,
        options.client,
        to_arrow_schema(schema, timezone="UTC"),
        with_headers=options.include_headers,
        fail_on_data_loss=options.fail_on_data_loss,
    )
