"""What both directions have in common: transforms over runs, failures of single records, and repeated attempts.

A failure belongs to one record: it is reported, or raised if errors.tolerance is none. That the other side is away is
no failure of a record, however many are tolerated: it is tried again, and is an Outage in the end.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from ottla.common.clock import Clock, SystemClock
from ottla.common.failures import Retriable
from ottla.connect.api.plugins import ConnectorFailure, Outage
from ottla.connect.conversion.arrow import is_null, null_count
from ottla.connect.conversion.errors import RecordError, java_name
from ottla.connect.conversion.failures import ConversionFailed, Failed, Stage
from ottla.connect.conversion.rows import Run, rows_of, runs_of
from ottla.connect.conversion.settings import Parts, Step

T = TypeVar("T")
Sleep = Callable[[float], None]

_FIRST_PAUSE_MS = 300
# Makes a failure of an incoming row: which, the stage, the class, and what was raised.
MakeFailed = Callable[[int, Stage, str, Exception], Failed]


class Retrying:
    def __init__(self, parts: Parts, clock: Clock | None, sleep: Sleep | None) -> None:
        self._timeout_ms, self._pause_ms_max = parts.retry_timeout_ms, parts.retry_delay_max_ms
        self._clock = clock or SystemClock()
        self._sleep = sleep or time.sleep

    def run(self, attempt: Callable[[], T]) -> T:
        """Raises Outage when what may pass has not passed."""
        begun, pause_ms = self._clock.monotonic_ms(), min(_FIRST_PAUSE_MS, self._pause_ms_max)
        while True:
            try:
                return attempt()
            except (Retriable, Outage) as error:
                waited = self._clock.monotonic_ms() - begun
                if self._timeout_ms >= 0 and waited + pause_ms > self._timeout_ms:
                    raise Outage(str(error)) from error
            self._sleep(pause_ms / 1000)
            pause_ms = min(pause_ms * 2, self._pause_ms_max)


class Failures:
    """Of one batch. Columns are not converted in the order of the rows, so the first failure is known at the end."""

    def __init__(self, make: MakeFailed, *, tolerates: bool) -> None:
        self._make, self._tolerates = make, tolerates
        self._found: dict[int, Failed] = {}
        self._failed: set[int] = set()
        self._first: tuple[int, Exception] | None = None

    def add(self, index: int, stage: Stage, class_name: str, error: Exception) -> None:
        if isinstance(error, Retriable | Outage | ConnectorFailure):
            raise error
        if index in self._failed:
            return
        is_first = self._first is None or index < self._first[0]
        self._failed.add(index)
        if self._tolerates or is_first:
            self._found[index] = self._make(index, stage, class_name, error)
        if is_first:
            self._first = index, error

    def has(self, index: int) -> bool:
        return index in self._failed

    def __len__(self) -> int:
        return len(self._failed)

    def told(self) -> list[Failed]:
        """In the order of the rows. Raises ConversionFailed for the first of them, if none is tolerated."""
        if self._first is not None and not self._tolerates:
            index, error = self._first
            raise ConversionFailed(self._found[index].sentence()) from error
        return [self._found[index] for index in sorted(self._found)]


def trace_of(error: Exception) -> str:
    return f"{java_name(error)}: {error}\n" + "".join(traceback.format_exception(error))


def transformed(runs: list[Run], steps: tuple[Step, ...], failures: Failures) -> list[Run]:
    for step in steps:
        runs = [done for run in runs for done in _applied(run, step, failures) if len(done)]
    return runs


def _applied(run: Run, step: Step, failures: Failures) -> list[Run]:
    if step.predicate is None:
        return _split_nulls(run, step, failures)
    mask = step.predicate.test(run.records)
    if step.negate:
        mask = pc.invert(mask)
    if mask.true_count == 0:
        return [run]
    chosen = _split_nulls(run.only(mask), step, failures)
    return chosen if mask.true_count == len(run) else [*chosen, run.only(pc.invert(mask))]


def _split_nulls(run: Run, step: Step, failures: Failures) -> list[Run]:
    column = step.transform.column_of(run.records)
    if not step.transform.passes_nulls or not null_count(column):
        return _transformed(run, step, failures)
    mask = is_null(column)
    if mask.true_count == len(run):
        return [run]
    return [*_transformed(run.only(pc.invert(mask)), step, failures), run.only(mask)]


def _transformed(run: Run, step: Step, failures: Failures) -> list[Run]:
    transform = step.transform
    try:
        made = transform.columns(run.records)
    except (RecordError, pa.ArrowException):
        made = None  # row by row it is said which records it is about
    if made is not None:
        return [Run(made, run.indexes)] if len(made) else []
    name = transform.class_name

    def on_failure(index: int, error: Exception) -> None:
        failures.add(index, Stage.TRANSFORMATION, name, error)

    rows = []
    for row in rows_of(run, on_failure):
        try:
            changed = transform.row(row)
        except Exception as error:  # whatever a record does to a transform, as Kafka Connect has it
            on_failure(row.index, error)
            continue
        if changed is not None:
            rows.append(changed)
    return runs_of(rows, on_failure)
