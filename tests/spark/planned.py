"""The source without Spark: its readers are asked as Spark asks them, in this process."""

from __future__ import annotations

from typing import Any

from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxBytes
from pyspark.sql.types import StructType

from ottla.spark.source.datasource import COLUMNS
from ottla.spark.source.options import parse_options
from ottla.spark.source.stream import StreamReader

LIMIT: ReadLimit = ReadMaxBytes(1)


def source(servers: str, topic: str, **options: Any) -> StreamReader:
    """As a query that was just started."""
    named = {name.replace("__", "."): str(value) for name, value in options.items()}
    given = {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest", **named}
    return StreamReader(parse_options(given, is_streaming=True), StructType([*COLUMNS]), 2)


def values(reader: StreamReader, splits: Any) -> list[bytes]:
    return [value for one in splits for batch in reader.read(one) for value in batch.column("value").to_pylist()]


def numbers(reader: StreamReader, start: Any, end: Any) -> list[int]:
    """What `tests.spark.topics.produce` wrote, as a batch with these offsets reads it."""
    return sorted(int(value[1:]) for value in values(reader, reader.partitions(start, end)))
