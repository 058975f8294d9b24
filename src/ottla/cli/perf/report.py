"""What the three measurements share: latencies, a progress line on stderr, and the summary.

A latency is one double in an array, sorted once at the end: a million of them are eight megabytes and half a second,
and the percentiles are exact. MB are 10^6 bytes.
"""

from __future__ import annotations

import sys
import time
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ottla.cli.output import facts, show
from ottla.cli.settings import Settings

PERCENTILES = {"p50": 0.50, "p95": 0.95, "p99": 0.99, "p99_9": 0.999}
REDRAW_S = 0.5
LINE_S = 5.0  # between lines where stderr is not a terminal


@dataclass
class Tally:
    """What has been counted so far; `latencies_ms` stays empty where there is none to measure."""

    records: int = 0
    bytes: int = 0
    failures: int = 0
    latencies_ms: array[float] = field(default_factory=lambda: array("d"))
    began_s: float = field(default_factory=time.perf_counter)
    ended_s: float | None = None

    @property
    def seconds(self) -> float:
        return max((self.ended_s or time.perf_counter()) - self.began_s, 1e-9)

    def summary(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "records": self.records,
            "bytes": self.bytes,
            "failures": self.failures,
            "seconds": round(self.seconds, 3),
            "records_per_second": round(self.records / self.seconds, 1),
            "mb_per_second": round(self.bytes / self.seconds / 1e6, 3),
        }
        if self.latencies_ms:
            found["latency_ms"] = percentiles(self.latencies_ms)
        return found


def percentiles(latencies_ms: Iterable[float]) -> dict[str, float]:
    ordered = sorted(latencies_ms)
    found = {name: ordered[min(int(share * len(ordered)), len(ordered) - 1)] for name, share in PERCENTILES.items()}
    found["max"] = ordered[-1]
    return {name: round(value, 3) for name, value in found.items()}


class ProgressLine:
    """`12,000 of 100,000  24,000 records/s  2.4 MB/s`: redrawn on a terminal, a line now and then elsewhere."""

    def __init__(self, total: int | None) -> None:
        self._total = total
        self._terminal = sys.stderr.isatty()
        self._interval_s = REDRAW_S if self._terminal else LINE_S
        self._last_s = time.perf_counter()
        self._last = (0, 0)

    def update(self, tally: Tally) -> None:
        now_s = time.perf_counter()
        elapsed_s = now_s - self._last_s
        if elapsed_s < self._interval_s:
            return
        records, size = tally.records - self._last[0], tally.bytes - self._last[1]
        of = f" of {self._total:,}" if self._total else ""
        text = f"{tally.records:,}{of}  {records / elapsed_s:,.0f} records/s  {size / elapsed_s / 1e6:,.1f} MB/s"
        sys.stderr.write(f"\r\x1b[K{text}" if self._terminal else f"{text}\n")
        sys.stderr.flush()
        self._last_s, self._last = now_s, (tally.records, tally.bytes)

    def clear(self) -> None:
        if self._terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def report(settings: Settings, tally: Tally, more: dict[str, Any] | None = None) -> None:
    data = {**tally.summary(), **(more or {})}
    show(settings, data, lambda: facts(_lines(data)))


def _lines(data: dict[str, Any]) -> Iterable[tuple[str, str]]:
    yield "records", f"{data['records']:,} in {data['seconds']:,.2f} s"
    if data["failures"]:
        yield "failed", f"{data['failures']:,}"
    yield "rate", f"{data['records_per_second']:,.0f} records/s, {data['mb_per_second']:,.2f} MB/s"
    if (first_ms := data.get("first_record_ms")) is not None:
        yield "first record", f"after {first_ms:,.1f} ms"
    if latency := data.get("latency_ms"):
        shown = "  ".join(f"{name.replace('_', '.')} {value:,.2f}" for name, value in latency.items())
        yield "latency ms", shown
