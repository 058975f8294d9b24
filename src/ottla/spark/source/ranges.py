"""`rangesOnly`: the source gives the ranges of offsets that a batch has, a row for each, and not their records.

Whoever processes records in Python has no use for them as rows of Spark's: they would go from a Python worker to the
JVM, there from columns to rows and back, and to another Python worker. A task that gets its ranges fetches the records
itself (`RangeReading`), with the rules of the source: the same topics by their ids, the same words about what is lost.
Spark keeps the offsets, so a batch that runs again has the same ranges.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from ottla.client.fetching import OffsetRange
from ottla.client.lookup import ClusterReader
from ottla.client.settings import ClientSettings
from ottla.common.ids import topic_id_from_text, topic_id_text
from ottla.spark.source.loss import loss_handler
from ottla.spark.source.options import parse_options
from ottla.spark.source.reading import kept_reader, read_ranges
from ottla.spark.source.splits import Split

COLUMNS = (
    StructField("topic", StringType()),
    StructField("partition", IntegerType()),
    StructField("start", LongType()),
    StructField("end", LongType()),
    # Null where the broker knows no ids.
    StructField("topicId", StringType()),
)
_ARROW_SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("topicId", pa.string()),
    ]
)
# Columns of records as `read_ranges` gives them, which are those of the source.
RECORDS = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("timestampType", pa.int32()),
    ]
)
HEADERS = pa.field("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])))


def range_schema() -> StructType:
    return StructType([*COLUMNS])


def rows_of(ranges: Split) -> pa.RecordBatch:
    ids = [None if each.topic_id is None else topic_id_text(each.topic_id) for each in ranges]
    columns = [*zip(*(each[:4] for each in ranges), strict=True)] or [(), (), (), ()]
    arrays = [pa.array(column, kind) for column, kind in zip([*columns, ids], _ARROW_SCHEMA.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW_SCHEMA)


def ranges_in(rows: Iterable[pa.RecordBatch]) -> Split:
    return [
        OffsetRange(topic, partition, start, end, None if text is None else topic_id_from_text(text))
        for batch in rows
        for topic, partition, start, end, text in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    ]


@dataclass(frozen=True)
class RangeReading:
    """What a task has to know to read its ranges; goes to executors with it."""

    settings: ClientSettings
    fail_on_data_loss: bool
    with_headers: bool

    @classmethod
    def of(cls, options: Mapping[str, str]) -> RangeReading:
        """By the options of the source. Raises OttlaError for what is wrong with them."""
        parsed = parse_options(options, is_streaming=True)
        return cls(parsed.client, parsed.fail_on_data_loss, parsed.include_headers)

    def records(
        self, rows: Iterable[pa.RecordBatch], reader: ClusterReader | None = None
    ) -> Generator[Any, None, None]:
        """Record batches of the records in the ranges that `rows` say, those of a partition in their order. `reader`:
        one of the caller's own, where others read in the same process."""
        schema = RECORDS.append(HEADERS) if self.with_headers else RECORDS
        on_loss = loss_handler(self.fail_on_data_loss)
        ranges = ranges_in(rows)
        reader = reader or kept_reader(self.settings)
        yield from read_ranges(reader, ranges, schema, on_loss, with_headers=self.with_headers)
