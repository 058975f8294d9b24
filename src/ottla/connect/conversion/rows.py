"""Records one by one, for what cannot be done with columns, and back to runs of one shape.

A run carries which of the incoming rows its records are. Runs are taken apart and put together by shape on the way, and
at the end all records are brought back into the order in which they came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ottla.connect.api.data import Column, Header, Records, Schema
from ottla.connect.conversion.arrow import from_python, joined, nulls, readable, take
from ottla.connect.conversion.errors import DataError

NO_HEADERS: tuple[Header, ...] = ()


@dataclass(slots=True)
class Row:
    index: int
    topic: str
    partition: int | None
    timestamp: int | None
    # Of a sink's record; of a source's, None.
    offset: int | None
    key_schema: Schema | None
    key: Any
    value_schema: Schema | None
    value: Any
    headers: tuple[Header, ...] = NO_HEADERS


@dataclass(frozen=True)
class Run:
    records: Records
    indexes: Any  # int64, one for each record

    def __len__(self) -> int:
        return len(self.records)

    def only(self, mask: Any) -> Run:
        if mask.true_count == len(self):
            return self
        chosen = pa.array([index for index, is_in in enumerate(mask.to_pylist()) if is_in], pa.int64())
        return Run(taken(self.records, chosen), self.indexes.take(chosen))


OnFailure = Callable[[int, Exception], None]


def rows_of(run: Run, on_failure: OnFailure) -> Iterator[Row]:
    records = run.records
    indexes = run.indexes.to_pylist()
    keys, values = (_pythons(column, indexes, on_failure) for column in (records.keys, records.values))
    offsets = [None] * len(records) if records.offsets is None else records.offsets.to_pylist()
    headers = records.headers or [NO_HEADERS] * len(records)
    columns = (records.topics, records.partitions, records.timestamps)
    for at, (index, topic, partition, timestamp) in enumerate(
        zip(indexes, *(column.to_pylist() for column in columns), strict=True)
    ):
        if keys[at] is _UNREADABLE or values[at] is _UNREADABLE:
            continue
        yield Row(
            index, topic, partition, timestamp, offsets[at],
            records.keys.schema, keys[at], records.values.schema, values[at], headers[at],
        )  # fmt: skip


_UNREADABLE = object()


def _pythons(column: Column, indexes: list[int], on_failure: OnFailure) -> list[Any]:
    found: list[Any] = [_UNREADABLE] * len(column)
    for at, value in readable(column, lambda at, error: on_failure(indexes[at], error)):
        found[at] = value
    return found


def runs_of(rows: list[Row], on_failure: OnFailure) -> list[Run]:
    """One for each shape."""
    shapes: dict[tuple[Schema | None, Schema | None], list[Row]] = {}
    for row in rows:
        shapes.setdefault((row.key_schema, row.value_schema), []).append(row)
    return [run for alike in shapes.values() if (run := _run(alike, on_failure)) is not None]


def _run(rows: list[Row], on_failure: OnFailure) -> Run | None:
    try:
        keys = from_python(rows[0].key_schema, [row.key for row in rows])
        values = from_python(rows[0].value_schema, [row.value for row in rows])
    except DataError:
        good = [row for row in rows if _fits(row, on_failure)]
        return _run(good, on_failure) if good and len(good) < len(rows) else None
    is_sink = rows[0].offset is not None
    records = Records(
        topics=pa.array([row.topic for row in rows], pa.string()),
        partitions=pa.array([row.partition for row in rows], pa.int32()),
        timestamps=pa.array([row.timestamp for row in rows], pa.int64()),
        keys=keys,
        values=values,
        offsets=pa.array([row.offset for row in rows], pa.int64()) if is_sink else None,
        headers=[row.headers for row in rows] if any(row.headers for row in rows) else None,
    )
    return Run(records, pa.array([row.index for row in rows], pa.int64()))


def _fits(row: Row, on_failure: OnFailure) -> bool:
    try:
        from_python(row.key_schema, [row.key])
        from_python(row.value_schema, [row.value])
    except DataError as error:
        on_failure(row.index, error)
        return False
    return True


def taken(records: Records, indexes: Any) -> Records:
    return replace(
        records,
        topics=records.topics.take(indexes),
        partitions=records.partitions.take(indexes),
        timestamps=records.timestamps.take(indexes),
        keys=take(records.keys, indexes),
        values=take(records.values, indexes),
        offsets=None if records.offsets is None else records.offsets.take(indexes),
        headers=None if records.headers is None else [records.headers[index] for index in indexes.to_pylist()],
    )


# --- back into one order


def in_order(runs: list[Run], *, merges_nulls: bool) -> list[Records]:
    """`merges_nulls`: what is null and has no schema joins records that have one, as a null: a tombstone between the
    changes of a table does not cut them apart."""
    runs = [run for run in runs if len(run)]
    if not runs:
        return []
    if merges_nulls:
        runs = _with_schemas_for_nulls(runs)
    parts = [_joined(alike) for alike in _by_shape(runs)]
    if len(parts) == 1:
        return [_sorted(parts[0]).records]
    order = sorted(
        (index, which, at) for which, part in enumerate(parts) for at, index in enumerate(part.indexes.to_pylist())
    )
    found: list[Records] = []
    begin = 0
    for end in range(1, len(order) + 1):
        if end == len(order) or order[end][1] != order[begin][1]:
            chosen = pa.array([at for _, _, at in order[begin:end]], pa.int64())
            found.append(taken(parts[order[begin][1]].records, chosen))
            begin = end
    return found


def _by_shape(runs: list[Run]) -> list[list[Run]]:
    shapes: dict[tuple[Schema | None, Schema | None], list[Run]] = {}
    for run in runs:
        shapes.setdefault((run.records.keys.schema, run.records.values.schema), []).append(run)
    return list(shapes.values())


def _joined(runs: list[Run]) -> Run:
    if len(runs) == 1:
        return runs[0]
    parts = [run.records for run in runs]
    headers = None
    if any(part.headers is not None for part in parts):
        headers = [each for part in parts for each in (part.headers or [NO_HEADERS] * len(part))]
    records = replace(
        parts[0],
        topics=pa.concat_arrays([part.topics for part in parts]),
        partitions=pa.concat_arrays([part.partitions for part in parts]),
        timestamps=pa.concat_arrays([part.timestamps for part in parts]),
        keys=joined([part.keys for part in parts]),
        values=joined([part.values for part in parts]),
        offsets=None if parts[0].offsets is None else pa.concat_arrays([part.offsets for part in parts]),
        headers=headers,
    )
    return Run(records, pa.concat_arrays([run.indexes for run in runs]))


def _sorted(run: Run) -> Run:
    count = len(run.indexes)
    if count < 2 or pc.all(pc.less(run.indexes.slice(0, count - 1), run.indexes.slice(1))).as_py():
        return run
    indexes = run.indexes.to_pylist()
    order = pa.array(sorted(range(len(indexes)), key=indexes.__getitem__), pa.int64())
    return Run(taken(run.records, order), run.indexes.take(order))


def _with_schemas_for_nulls(runs: list[Run]) -> list[Run]:
    """Values first, then keys: a run of nulls takes the schema of the first run that differs in nothing else."""
    found: list[Run] = []
    for run in runs:
        for part in ("values", "keys"):
            column: Column = getattr(run.records, part)
            if column.schema is not None or any(value is not None for value in column.data):
                continue
            other = "keys" if part == "values" else "values"
            schema = next(
                (
                    getattr(each.records, part).schema
                    for each in runs
                    if getattr(each.records, part).schema is not None
                    and getattr(each.records, other).schema == getattr(run.records, other).schema
                ),
                None,
            )
            if schema is not None:
                run = Run(_with(run.records, part, nulls(schema, len(run))), run.indexes)
        found.append(run)
    return found


def _with(records: Records, part: str, column: Column) -> Records:
    return replace(records, values=column) if part == "values" else replace(records, keys=column)
