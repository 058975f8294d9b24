"""What executors encoded comes to the driver: all at once if it is little, else a partition at a time.

Spark itself stops a job whose results are larger than `spark.driver.maxResultSize`. Then the batches are computed once
more, kept on the executors' disks, and fetched partition after partition: the driver never holds more than one or two.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ottla.common.errors import OttlaError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TOO_LARGE = "spark.driver.maxResultSize"
# (topic, partition, batch)
EncodedRow = tuple[str, int, Any]


def collect(encoded: DataFrame) -> Iterator[EncodedRow]:
    """The batches in the order of the tasks. Raises OttlaError for the first problem that a task reports."""
    try:
        table = encoded.toArrow()
    except Exception as error:
        if _TOO_LARGE not in str(error):
            raise
        return collect_by_partition(encoded)
    return _of_table(table)


def _of_table(table: Any) -> Iterator[EncodedRow]:
    for chunk in table.to_batches():
        columns = [chunk.column(name) for name in ("topic", "partition", "batch", "problem")]
        for topic, partition, data, problem in zip(*columns, strict=True):
            if problem.is_valid:
                raise OttlaError(problem.as_py())
            yield topic.as_py(), partition.as_py(), data.as_buffer()


def collect_by_partition(encoded: DataFrame) -> Iterator[EncodedRow]:
    from pyspark import StorageLevel

    kept = encoded.persist(StorageLevel.DISK_ONLY)
    try:
        # All tasks at once; an iterator alone would run them one after the other.
        for row in kept.where("problem is not null").select("problem").take(1):
            raise OttlaError(row.problem)
        for row in kept.toLocalIterator(prefetchPartitions=True):
            yield row.topic, row.partition, row.batch
    finally:
        kept.unpersist()
