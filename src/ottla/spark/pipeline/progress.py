"""Spark's report of a micro-batch, reduced to what one wants to see of a pipeline."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ottla.spark.observed import ROWS_IN, ROWS_OUT


@dataclass(frozen=True)
class BatchFigures:
    batch: int
    # Spark reports now and then that there was nothing to do, with the number of the batch to come.
    has_run: bool
    rows_in: int
    rows_out: int
    dead_letters: int
    # Rows that came after their watermark and were left out, as Spark counts them: those that a task put together for
    # one group are one.
    late_rows: int
    # Records that are there and not yet read; None where no source says.
    lag: int | None
    input_rows_per_s: float
    batch_ms: int
    # Keys and values of the rows that went in.
    bytes_in: int = 0
    # Of a topology: records that it dropped, whatever the reason, and entries in the stores of the tasks that ran.
    dropped: int = 0
    state_entries: int = 0

    @property
    def is_behind(self) -> bool:
        """There is more left to read than this batch has read."""
        return self.lag is not None and self.lag > self.rows_in


def figures(progress: Mapping[str, Any]) -> BatchFigures:
    """From the JSON form of a StreamingQueryProgress."""
    observed = progress.get("observedMetrics") or {}
    out = observed.get(ROWS_OUT) or {}
    dead = int(out.get("dead_letters") or 0)
    lags = [lag for lag in map(_lag, progress.get("sources", ())) if lag is not None]
    times = progress.get("durationMs") or {}
    scanned = int(progress.get("numInputRows") or 0)
    seen = [metrics for name, metrics in observed.items() if name.startswith(ROWS_IN)]
    counts = [int(metrics.get("rows") or 0) for metrics in seen]
    # Spark counts a stream as often as the plan reads it, and for dead letters it is read once more.
    rows_in = sum(counts) if counts else scanned
    return BatchFigures(
        batch=int(progress["batchId"]),
        has_run="addBatch" in times,
        rows_in=rows_in,
        rows_out=int(out.get("rows") or 0) - dead,
        dead_letters=dead,
        late_rows=sum(
            int(operator.get("numRowsDroppedByWatermark") or 0) for operator in progress.get("stateOperators", ())
        )
        + int(out.get("late") or 0),
        lag=sum(lags) if lags else None,
        input_rows_per_s=_number(progress.get("inputRowsPerSecond")) * (rows_in / scanned if scanned else 1),
        batch_ms=int(times.get("triggerExecution") or 0),
        bytes_in=sum(int(metrics.get("bytes") or 0) for metrics in seen),
        dropped=int(out.get("dropped") or 0),
        state_entries=int(out.get("entries") or 0),
    )


def _lag(source: Mapping[str, Any]) -> int | None:
    end, latest = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
    if not latest:
        return None
    return sum(max(0, offset - end.get(partition, 0)) for partition, offset in latest.items())


def _offsets(given: Any) -> dict[tuple[str, str], int]:
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            return {}
    if not isinstance(given, Mapping):
        return {}
    return {
        (topic, partition): offset
        for topic, partitions in given.items()
        if isinstance(partitions, Mapping)
        for partition, offset in partitions.items()
        if isinstance(offset, int)
    }


def _number(given: Any) -> float:
    """Spark says "NaN" or "Infinity" where it divided by no time."""
    try:
        value = float(given)
    except (TypeError, ValueError):
        return 0.0
    return value if 0 <= value < 1e15 else 0.0
