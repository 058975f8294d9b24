"""Work whose results never become rows of Spark's: a task computes them from its rows, encodes them and sends them to
the spool, all in one Python function. What Spark gets is one small row for each task: its report.

With `rangesOnly` the rows are ranges of offsets, and the task reads the records itself (`source/ranges.py`); so records
are fetched, processed and encoded without leaving the process. The rows may also be columns that Spark has computed.

The report has what the work counted, too. Spark gives the driver one report for each task, of the attempt whose result
it accepted, so what attempts count that failed, ran twice or came too late is not counted. Spark itself would count
ranges: `counted` puts the right numbers into its progress.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
from pyspark.sql.types import LongType, MapType, StringType, StructField, StructType

from ottla.common.errors import OttlaError
from ottla.spark.observed import ROWS_OUT
from ottla.spark.sink.encoding import EncodePlan
from ottla.spark.sink.spooling import (
    REPORT_COLUMNS,
    REPORT_SCHEMA,
    EncodedFrame,
    Report,
    encoded_by,
    pieces_that_stay_in_the_cache,
    send_rows,
)
from ottla.spark.spool.sending import SpoolTarget
from ottla.spark.spool.server import SpoolServer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# By name; what is counted under `RECORDS_IN` are records that were read, where Spark sees only ranges of them.
Counts = Counter[str]
RECORDS_IN = "records_in"


class Work(Protocol):
    """From the rows of a task to rows that can be written, in the form of the sink's columns. When all of them are
    there, `counts` has what is to be told of them."""

    def __call__(self, rows: Iterator[pa.RecordBatch], counts: Counts) -> Iterator[pa.RecordBatch]: ...


@dataclass(frozen=True)
class PickledWork:
    """Pickled once for a query: what a task runs is shipped with every batch, and a program may be large."""

    data: bytes

    @classmethod
    def of(cls, work: Work) -> PickledWork:
        """Raises OttlaError: whatever a program holds is asked how it is to be sent, and may raise what it likes."""
        from pyspark import cloudpickle

        try:
            return cls(cloudpickle.dumps(work))  # type: ignore[no-untyped-call]
        except Exception as error:
            raise OttlaError(
                f"the program cannot be sent to executors: {str(error).rstrip('.') or type(error).__name__}. Make "
                "connections, locks, files and the like where records are processed, not before."
            ) from error

    def __call__(self, rows: Iterator[pa.RecordBatch], counts: Counts) -> Iterator[pa.RecordBatch]:
        work: Work = pickle.loads(self.data)
        return work(rows, counts)


# The report of every task that writes to the spool, and what it counted.
_COLUMNS = StructType([*REPORT_COLUMNS.fields, StructField("counts", MapType(StringType(), LongType()))])
_SCHEMA = REPORT_SCHEMA.append(pa.field("counts", pa.map_(pa.string(), pa.int64())))


@contextmanager
def spooled_by_work(frame: DataFrame, work: Work, plan: EncodePlan, spool: SpoolServer) -> Iterator[EncodedFrame]:
    """What the tasks of `frame` write, with what they count. Raises OttlaError for the first problem that a task has
    with what it is to write; what the work raises arrives as what it is, inside of an error of Spark's."""
    batch = spool.begin()
    target = spool.target(batch)

    def run(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return run_work(work, plan, target, rows)

    try:
        with pieces_that_stay_in_the_cache(frame.sparkSession):
            rows = frame.mapInArrow(run, _COLUMNS).toArrow().to_pylist()
        counts = Counts()
        for row in rows:
            counts.update(dict(row.pop("counts")))
        encoded = encoded_by(batch, [Report(**row) for row in rows])
        encoded.counts = counts
        yield encoded
    finally:
        batch.close()


def run_work(
    work: Work, plan: EncodePlan, target: SpoolTarget, rows: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """On an executor, in the form of `mapInArrow`."""
    counts = Counts()
    failures: list[Exception] = []

    def results() -> Iterable[pa.RecordBatch]:
        try:
            yield from work(rows, counts)
        except Exception as error:
            failures.append(error)
            raise

    report = send_rows(plan, target, results())
    if failures:
        raise failures[0]  # of the work, not of what is written: its type and where it was raised go to the driver
    cells: list[Any] = [*report, [*counts.items()]]
    arrays = [pa.array([cell], kind) for cell, kind in zip(cells, _SCHEMA.types, strict=True)]
    yield pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


def counted(
    progress: Mapping[str, Any], counts: Counts, observed: Mapping[str, Mapping[str, int]] | None = None
) -> dict[str, Any]:
    """Spark's progress of a batch, in its JSON form, with what the work counted. `observed`: what Spark would have
    observed in rows; without it, it is all that was counted."""
    told = dict(progress)
    observed = {ROWS_OUT: {**counts}} if observed is None else observed
    if observed:
        told["observedMetrics"] = {**progress.get("observedMetrics", {}), **observed}
    if RECORDS_IN in counts:
        told |= _of_records(progress, counts[RECORDS_IN])
        told["sources"] = [{**source, **_of_records(source, counts[RECORDS_IN])} for source in progress["sources"]]
    return told


def _of_records(progress: Mapping[str, Any], records: int) -> dict[str, Any]:
    """What Spark says of a query or of its one source, with the records in the place of ranges."""
    ranges = progress.get("numInputRows") or 0
    told: dict[str, Any] = {"numInputRows": records}
    for rate in ("inputRowsPerSecond", "processedRowsPerSecond"):
        if ranges and isinstance(progress.get(rate), int | float):
            told[rate] = progress[rate] * records / ranges
    return told
