"""The part of a sink's round that runs in a task: fetch, convert, write, each topic partition in its order.

A target that refuses records gets them again in halves until the bad one is alone; that one goes to the dead letters,
or is left out, if the connector tolerates errors. A target that is away refuses nothing: the round is done again later.
"""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from ottla.client.fetching import OffsetRange
from ottla.client.lookup import ClusterReader
from ottla.client.settings import ClientSettings
from ottla.common.ids import TopicPartition
from ottla.connect.api import BadRecords, ConnectorFailure, Outage, Records, Sink, SinkWriter
from ottla.connect.conversion import Failed, sink_side
from ottla.connect.rounds.dead_letters import DeadLetterPlan
from ottla.connect.rounds.failing import Problem, problem_of
from ottla.spark.source.datasource import OttlaDataSource
from ottla.spark.source.reading import kept_reader, read_ranges

_LOG = logging.getLogger("ottla.connect.writing")
_SCHEMA = to_arrow_schema(OttlaDataSource({"includeHeaders": "true"}).schema(), timezone="UTC")
_FIRST_PAUSE_S = 0.3


@dataclass(frozen=True)
class WritePlan:
    sink: type[Sink]
    config: Mapping[str, str]
    client: ClientSettings
    dead_letters: DeadLetterPlan | None
    # errors.tolerance=all
    is_tolerant: bool
    # What a task holds at once: a range is planned by what records take in the log, where they may be compressed, and
    # where others may be far smaller.
    bytes_max: int
    log_errors: bool
    log_contents: bool
    retry_timeout_s: float
    retry_pause_s_max: float


class Portion(NamedTuple):
    """A range of a partition, and how many records of it are written at a time; None: all of them."""

    where: OffsetRange
    most: int | None


class WriteResult(NamedTuple):
    task: int
    # How far each partition was done, and how far of that the sink itself has taken records.
    done: dict[TopicPartition, int]
    written: dict[TopicPartition, int]
    # Records that were read, that the sink has taken, and that failed.
    read: int
    records: int
    failures: int
    problem: Problem | None = None


@dataclass
class _Task:
    plan: WritePlan
    number: int
    done: dict[TopicPartition, int] = field(default_factory=dict)
    written: dict[TopicPartition, int] = field(default_factory=dict)
    read: int = 0
    records: int = 0
    failures: int = 0

    def run(self, portions: Sequence[Portion]) -> None:
        sink = self.plan.sink(self.plan.config)
        reader = kept_reader(self.plan.client)
        for where, most in portions:
            lost: list[str] = []
            with closing(read_ranges(reader, [where], _SCHEMA, lost.append, with_headers=True)) as pieces:
                for rows in _held(pieces, self.plan.bytes_max):
                    self._write(sink, where, rows, most or rows.num_rows)
            if lost:
                _check_topic(reader, where)
                _LOG.warning("data were lost: %s", " ".join(lost))
            self.done[where.where] = where.end

    def _write(self, sink: Sink, where: OffsetRange, rows: pa.RecordBatch, most: int) -> None:
        conversion = sink_side(self.plan.config)
        writer: SinkWriter | None = None
        try:
            for first in range(0, rows.num_rows, most):
                part = rows.slice(first, most)
                self.read += part.num_rows
                converted = conversion.run(part)
                self._fail(converted.failures)
                for records in converted.records:
                    writer = writer or sink.open(where.where, self.done.get(where.where, where.start))
                    self._write_all(writer, where.where, records, part)
                self.done[where.where] = part.column("offset")[part.num_rows - 1].as_py() + 1
        finally:
            if writer is not None:
                writer.close()

    def _write_all(self, writer: SinkWriter, place: TopicPartition, records: Records, rows: pa.RecordBatch) -> None:
        try:
            self._write_patiently(writer, records)
            assert records.offsets is not None
            self.written[place] = records.offsets[len(records) - 1].as_py() + 1
            self.records += len(records)
        except BadRecords as error:
            if not self.plan.is_tolerant:
                raise ConnectorFailure(str(error)) from error
            if len(records) == 1:
                self._fail([_failed(records, rows, self.plan.sink, error)])
                return
            half = len(records) // 2
            self._write_all(writer, place, records.slice(0, half), rows)
            self._write_all(writer, place, records.slice(half, len(records) - half), rows)

    def _write_patiently(self, writer: SinkWriter, records: Records) -> None:
        """A short outage is waited for here, as errors.retry.timeout says; of a longer one the driver hears."""
        deadline_s, pause_s = time.monotonic() + self.plan.retry_timeout_s, _FIRST_PAUSE_S
        while True:
            try:
                writer.write(records)
                return
            except Outage:
                if time.monotonic() + pause_s > deadline_s:
                    raise
                time.sleep(pause_s)
                pause_s = min(2 * pause_s, self.plan.retry_pause_s_max)

    def _fail(self, failures: Sequence[Failed]) -> None:
        if not failures:
            return
        if self.plan.dead_letters is not None:
            self.plan.dead_letters.write(failures, self.number)
        if self.plan.log_errors:
            for failed in failures:
                where = f"{failed.topic}-{failed.partition} at {failed.offset}"
                contents = f" key={failed.key!r} value={failed.value!r}" if self.plan.log_contents else ""
                _LOG.error("the record of %s fails (%s): %s%s", where, failed.stage, failed.error, contents)
        self.failures += len(failures)


def _check_topic(reader: ClusterReader, where: OffsetRange) -> None:
    """What retention has removed is gone. Where the topic itself is, nothing of the range was read: Raises Outage, and
    the driver looks what there is now."""
    if where.topic_id is not None and reader.topic_ids.get(where.topic) != where.topic_id:
        raise Outage(f"the topic '{where.topic}' was deleted and made anew while it was read.")


def _held(pieces: Iterator[Any], bytes_max: int) -> Iterator[Any]:
    """All rows in their order, as few times as memory allows."""
    held: list[Any] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += piece.nbytes
        if size >= bytes_max:
            yield pa.concat_batches(held)
            held, size = [], 0
    if held:
        yield pa.concat_batches(held)


def _failed(records: Records, rows: pa.RecordBatch, sink: type[Sink], error: BadRecords) -> Failed:
    assert records.offsets is not None
    offset = records.offsets[0].as_py()
    at = rows.column("offset").index(pa.scalar(offset, pa.int64())).as_py()
    row: dict[str, Any] = {name: rows.column(name)[at].as_py() for name in ("topic", "partition", "key", "value")}
    return Failed(
        topic=row["topic"],
        partition=row["partition"],
        offset=offset,
        key=row["key"],
        value=row["value"],
        headers=[(one["key"], one["value"]) for one in rows.column("headers")[at].as_py() or ()],
        stage="TASK_PUT",
        class_name=f"{sink.__module__}.{sink.__qualname__}",
        error=str(error),
        exception_class=f"{type(error).__module__}.{type(error).__qualname__}",
        trace="".join(traceback.format_exception(error)),
    )


def write_task(plan: WritePlan, work: tuple[int, Sequence[Portion]]) -> WriteResult:
    """On an executor. What was written before something went wrong is told too."""
    task = _Task(plan, work[0])
    problem: Problem | None = None
    try:
        task.run(work[1])
    except Exception as error:
        problem = problem_of(error)
    return WriteResult(task.number, task.done, task.written, task.read, task.records, task.failures, problem)
