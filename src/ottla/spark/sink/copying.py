"""A copy of records, in the tasks that read them: the work of a query whose plan is known to do nothing else
(`copy_plan.py`). What is written is what the way through Spark's rows would write, and so is what is counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ottla.client.lookup import ClusterReader
from ottla.spark.sink.in_tasks import RECORDS_IN, Counts, Work
from ottla.spark.source.ranges import RangeReading

_BYTES_IN, _DEAD_LETTERS = "bytes_in", "dead_letters"
_TYPES = {"key": pa.binary(), "value": pa.binary(), "topic": pa.string(), "partition": pa.int32()}


class Column(NamedTuple):
    """One of the source, or the same in every row."""

    source: str | None
    literal: Any = None


NULL = Column(None)


class Counted(NamedTuple):
    """A name under which a pipeline counts rows: those that come in with their bytes, or those that go out, of which
    dead letters are told apart by the column that has their topic."""

    name: str
    topic: Column | None = None
    dead_letters: str | None = None


@dataclass(frozen=True)
class Copy:
    """In the form of the sink's `Work`; goes to executors."""

    reading: RangeReading
    # What is written: by its name in the sink.
    columns: dict[str, Column]
    counted: tuple[Counted, ...] = ()

    def __call__(
        self, rows: Iterator[pa.RecordBatch], counts: Counts, reader: ClusterReader | None = None
    ) -> Iterator[pa.RecordBatch]:
        """`reader`: where this is not the only one in its process that reads."""
        for batch in self.reading.records(rows, reader):
            self._count(batch, counts)
            yield pa.RecordBatch.from_arrays(
                [_array(batch, column, _TYPES.get(name)) for name, column in self.columns.items()], [*self.columns]
            )

    def _count(self, batch: pa.RecordBatch, counts: Counts) -> None:
        counts[RECORDS_IN] += batch.num_rows
        if not self.counted:
            return
        for name in ("key", "value"):
            counts[_BYTES_IN] += pc.sum(pc.binary_length(batch.column(name))).as_py() or 0
        for each in self.counted:
            if each.topic is not None:
                topics = _array(batch, each.topic, pa.string())
                counts[_DEAD_LETTERS] += pc.sum(pc.equal(topics, each.dead_letters)).as_py() or 0

    def observed(self, counts: Counts) -> dict[str, dict[str, int]]:
        """What Spark would have observed in rows."""
        rows = counts[RECORDS_IN]
        return {
            each.name: {"rows": rows, "bytes": counts[_BYTES_IN]}
            if each.dead_letters is None
            else {"rows": rows, "dead_letters": counts[_DEAD_LETTERS]}
            for each in self.counted
        }


@dataclass(frozen=True)
class IntoNothing:
    """Work whose rows are there already: it is done for what it counts, and for what it may find to be lost."""

    work: Work

    def __call__(self, rows: Iterator[pa.RecordBatch], counts: Counts) -> Iterator[pa.RecordBatch]:
        for batch in self.work(rows, counts):
            yield batch[:0]


def _array(batch: pa.RecordBatch, column: Column, kind: Any) -> Any:
    if column.source is not None:
        return batch.column(column.source)
    return pa.repeat(pa.scalar(column.literal, kind), batch.num_rows)
