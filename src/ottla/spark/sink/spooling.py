"""A frame's rows, encoded by its tasks, on the driver's disk: one Spark job, whatever the size.

A task sends what it encodes to the spool and gives Spark one small row: which attempt it was, and how much it sent. A
row that Spark hands to the driver is of an attempt whose result it accepted, so exactly these attempts are published;
those that were lost, ran twice or came too late are left where they are. Nothing is computed or fetched again.

A mistake in the data (a topic that does not exist, a partition out of range) comes back in that row too, since a
sentence in a row reaches the user as it is and an exception arrives wrapped in two stack traces.

A few rows come as they are and are encoded on the driver: a process for them, and the function that it is to run, would
take longer than they do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from ottla.common.errors import OttlaError
from ottla.common.failures import Retriable
from ottla.common.ids import TopicPartition
from ottla.spark.sink.encoding import EncodePlan
from ottla.spark.sink.shape import with_header_lists
from ottla.spark.spool.files import EncodedBatch, SpooledBatch, Winner
from ottla.spark.spool.sending import SpoolTarget, deliver
from ottla.spark.spool.server import SpoolServer
from ottla.spark.spool.wire import SpoolRefused, Sum

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PIECE_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"

# Of Spark's own types: a text would be sent to the JVM to be parsed, for every batch.
REPORT_COLUMNS = StructType(
    [
        StructField("task", IntegerType()),
        StructField("attempt", LongType()),
        StructField("frames", LongType()),
        StructField("bytes", LongType()),
        StructField("problem", StringType()),
    ]
)
REPORT_SCHEMA = pa.schema(
    [
        ("task", pa.int32()),
        ("attempt", pa.int64()),
        ("frames", pa.int64()),
        ("bytes", pa.int64()),
        ("problem", pa.string()),
    ]
)


class Report(NamedTuple):
    """What an attempt of a task has sent, in the order of the columns above; or what is wrong with its rows."""

    task: int
    attempt: int
    frames: int
    bytes: int
    problem: str | None


class EncodedFrame:
    """All batches of a frame. It may be read as often as a transaction needs it."""

    def __init__(self, total: int, batches: Any) -> None:
        self.bytes = total
        # That it was found to have batches for.
        self.topics: set[str] = set()
        # By the work that made its rows, if there was one.
        self.counts: Counter[str] | None = None
        self._batches = batches

    def __iter__(self) -> Iterator[tuple[TopicPartition, Any]]:
        for partition, data in self._batches():
            self.topics.add(partition.topic)
            yield partition, data


def encode_here(frame: DataFrame, plan: EncodePlan) -> EncodedFrame:
    """Of rows that are few: whatever goes wrong when they come to the driver, they may not have been."""
    batches = [
        (TopicPartition(topic, partition), data)
        for topic, partition, _, data in plan.encode(iter(frame.toArrow().to_batches()), task=0)
    ]
    return EncodedFrame(sum(len(data) for _, data in batches), lambda: batches)


@contextmanager
def spooled(frame: DataFrame, plan: EncodePlan, spool: SpoolServer) -> Iterator[EncodedFrame]:
    """Encoded on the executors. Raises OttlaError for the first problem that a task reports."""
    batch = spool.begin()
    target = spool.target(batch)

    def encode(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return run_task(plan, target, rows)

    try:
        with pieces_that_stay_in_the_cache(frame.sparkSession):
            rows = with_header_lists(frame).mapInArrow(encode, REPORT_COLUMNS).toArrow().to_pylist()
        yield encoded_by(batch, [Report(**row) for row in rows])
    finally:
        batch.close()


@contextmanager
def pieces_that_stay_in_the_cache(spark: SparkSession) -> Iterator[None]:
    """Spark copies rows several times on their way to Python. Where it does so 64 MB at a time, as it comes, every copy
    goes through memory, and its part of the work takes a third longer. What somebody has chosen is kept."""
    is_ours = spark.conf.get(_PIECE_BYTES, None) is None
    if is_ours:
        spark.conf.set(_PIECE_BYTES, "2m")
    try:
        yield
    finally:
        if is_ours:
            spark.conf.unset(_PIECE_BYTES)


def encoded_by(batch: SpooledBatch, reports: Iterable[Report]) -> EncodedFrame:
    """What the attempts have sent whose reports Spark accepted. Raises OttlaError for the first problem among them."""
    ordered = sorted(reports)
    for report in ordered:
        if report.problem is not None:
            raise OttlaError(report.problem)
    winners = [Winner(report.task, report.attempt, Sum(report.frames, report.bytes)) for report in ordered]
    batch.check(winners)
    total = sum(winner.sum.bytes for winner in winners)
    return EncodedFrame(total, lambda: ((frame.partition, frame.data) for frame in batch.frames(winners)))


def run_task(plan: EncodePlan, target: SpoolTarget, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """On an executor, in the form of `mapInArrow`."""
    arrays = [
        pa.array([cell], kind) for cell, kind in zip(send_rows(plan, target, rows), REPORT_SCHEMA.types, strict=True)
    ]
    yield pa.RecordBatch.from_arrays(arrays, schema=REPORT_SCHEMA)


def send_rows(plan: EncodePlan, target: SpoolTarget, rows: Iterable[pa.RecordBatch], *, raises: bool = False) -> Report:
    """On an executor: all rows of a task to the spool. What is wrong with them is in the report, or raised."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    task, attempt = context.partitionId(), context.taskAttemptId()
    try:
        return Report(task, attempt, *_send(target, task, attempt, plan.encode(iter(rows), task)), None)
    except Retriable:
        raise  # the task may be tried again, and the type of the error crosses to the driver by its name
    except (OttlaError, SpoolRefused) as problem:
        if raises:
            raise
        return Report(task, attempt, 0, 0, str(problem))


def _send(target: SpoolTarget, task: int, attempt: int, batches: Iterator[EncodedBatch]) -> Sum:
    """Tasks without rows are common, and neither a connection nor a file is for nothing."""
    first = next(batches, None)
    return Sum(0, 0) if first is None else deliver(target, task, attempt, chain([first], batches))
