"""What executors encoded comes to the driver: all at once if it is little, else piece by piece.

A few rows come as they are and are encoded on the driver: a process for them, and the function that it is to run, would
take longer than they do.

Spark itself stops a job whose results are larger than `spark.driver.maxResultSize`. Then the batches are computed once
more, kept on the executors' disks, and fetched in pieces of one task after the other.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.common.errors import OttlaError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ottla.spark.sink.encoding import EncodePlan

_TOO_LARGE = "spark.driver.maxResultSize"
_LIMIT_DEFAULT = "1g"
_PART_BYTES_MAX = 64 * 1024 * 1024
# (topic, partition, batch)
EncodedRow = tuple[str, int, Any]


def collect(encoded: DataFrame) -> Iterator[EncodedRow]:
    """The batches in the order of the tasks. Raises OttlaError for the first problem that a task reports."""
    table = _all_at_once(encoded)
    return collect_in_pieces(encoded) if table is None else _of_table(table)


def encode_here(rows: DataFrame, plan: EncodePlan) -> Iterator[EncodedRow] | None:
    """The batches of rows that are few; None if they are not."""
    table = _all_at_once(rows)
    if table is None:
        return None
    return ((topic, partition, data) for topic, partition, _, data in plan.encode(iter(table.to_batches()), task=0))


def _all_at_once(frame: DataFrame) -> Any:
    """An Arrow table, unless it is larger than Spark lets the driver have."""
    try:
        return frame.toArrow()
    except Exception as error:
        if _TOO_LARGE not in str(error):
            raise
        return None


def _of_table(table: Any) -> Iterator[EncodedRow]:
    for chunk in table.to_batches():
        columns = [chunk.column(name) for name in ("topic", "partition", "batch", "problem")]
        for topic, partition, data, problem in zip(*columns, strict=True):
            if problem.is_valid:
                raise OttlaError(problem.as_py())
            yield topic.as_py(), partition.as_py(), data.as_buffer()


def collect_in_pieces(encoded: DataFrame) -> Iterator[EncodedRow]:
    """None larger than a share of what the driver may have. A task is read once more for each of its pieces."""
    from pyspark import StorageLevel

    context = encoded.sparkSession.sparkContext
    limit: int = context._jsc.getConf().getSizeAsBytes(_TOO_LARGE, _LIMIT_DEFAULT)
    kept = encoded.persist(StorageLevel.DISK_ONLY)
    try:
        parts = _parts(_sizes(kept), limit or sys.maxsize)
        rows = kept.select("topic", "partition", "batch").rdd
        for part in parts:
            yield from context.runJob(rows, partial(_some, part), [part.task])
    finally:
        kept.unpersist()


class _Part(NamedTuple):
    """Rows of one task."""

    task: int
    first: int
    end: int


def _some(part: _Part, rows: Iterator[Any]) -> list[tuple[str, int, bytes]]:
    return [(row.topic, row.partition, bytes(row.batch)) for row in islice(rows, part.first, part.end)]


def _sizes(kept: DataFrame) -> list[list[int]]:
    """Of every batch of every task. Computes them: all tasks at once."""
    found = kept.selectExpr("spark_partition_id() task", "octet_length(batch) size", "problem").toArrow()
    for problem in found["problem"].drop_null():
        raise OttlaError(problem.as_py())
    sizes: list[list[int]] = []
    for task, size in zip(found["task"].to_pylist(), found["size"].to_pylist(), strict=True):
        while len(sizes) <= task:
            sizes.append([])
        sizes[task].append(size)
    return sizes


def _parts(sizes: list[list[int]], limit: int) -> Iterator[_Part]:
    # What Spark adds to results is little, but a record batch cannot be cut.
    most = min(_PART_BYTES_MAX, limit // 4)
    largest = max((size for one in sizes for size in one), default=0)
    if largest + most > limit:
        raise OttlaError(
            f"a record batch of {largest:,} bytes is more than the driver may have: set {_TOO_LARGE}, which is "
            f"{limit:,} bytes, to {2 * largest:,} or more."
        )
    for task, its in enumerate(sizes):
        first = size = 0
        for row, more in enumerate(its):
            if size and size + more > most:
                yield _Part(task, first, row)
                first, size = row, 0
            size += more
        if its:
            yield _Part(task, first, len(its))
