"""What a runner says while it runs: one line that is rewritten on a terminal, one JSON object per event elsewhere."""

from __future__ import annotations

import json
import shutil
import time
from typing import Any, Protocol, TextIO

from ottla.spark.pipeline.home import Status
from ottla.spark.pipeline.progress import BatchFigures

_CLEAR_LINE = "\r\x1b[2K"


class Reporter(Protocol):
    def event(self, name: str, sentence: str, **facts: Any) -> None:
        """Something that happens once: started, restarting, stopped."""

    def batch(self, status: Status, batch: BatchFigures) -> None:
        """A micro-batch was written."""


class LiveLine:
    """For people."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._has_line = False

    def event(self, name: str, sentence: str, **facts: Any) -> None:
        self._clear()
        self._stream.write(sentence + "\n")
        self._stream.flush()

    def batch(self, status: Status, batch: BatchFigures) -> None:
        self._clear()
        # The terminal would wrap what is longer, and a wrapped line cannot be rewritten.
        width = shutil.get_terminal_size().columns - 1
        self._stream.write(live_line(status, batch)[:width])
        self._stream.flush()
        self._has_line = True

    def _clear(self) -> None:
        if self._has_line:
            self._stream.write(_CLEAR_LINE)
            self._has_line = False


class JsonLines:
    """For programs."""

    def __init__(self, stream: TextIO, pipeline: str) -> None:
        self._stream = stream
        self._pipeline = pipeline

    def event(self, name: str, sentence: str, **facts: Any) -> None:
        self._write({"event": name, "message": sentence, **facts})

    def batch(self, status: Status, batch: BatchFigures) -> None:
        self._write(
            {
                "event": "batch",
                "batch": batch.batch,
                "rows_in": batch.rows_in,
                "bytes_in": batch.bytes_in,
                "rows_out": batch.rows_out,
                "dead_letters": batch.dead_letters,
                "late_rows": batch.late_rows,
                "dropped": batch.dropped,
                "state_entries": batch.state_entries,
                "lag": batch.lag,
                "input_rows_per_s": round(batch.input_rows_per_s, 1),
                "batch_ms": batch.batch_ms,
            }
        )

    def _write(self, facts: dict[str, Any]) -> None:
        now = time.time()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03d}Z"
        self._stream.write(json.dumps({"time": stamp, "pipeline": self._pipeline, **facts}) + "\n")
        self._stream.flush()


def live_line(status: Status, batch: BatchFigures) -> str:
    parts = [
        f"{status.name}  batch {batch.batch}",
        f"in {short(batch.input_rows_per_s)}/s",
        f"out {status.rows_out:,}",
        _left(status, batch),
        f"{batch.batch_ms:,} ms",
    ]
    if status.dead_letters:
        parts.append(f"dead letters {status.dead_letters:,}")
    if status.late_rows:
        parts.append(f"late {status.late_rows:,}")
    if status.dropped > status.late_rows:
        parts.append(f"dropped {status.dropped:,}")
    if status.state_entries:
        parts.append(f"state {short(status.state_entries)}")
    return "  ".join(parts)


def _left(status: Status, batch: BatchFigures) -> str:
    if batch.lag is None:
        return "lag unknown"
    if not batch.is_behind:
        return f"lag {batch.lag:,}"
    return f"{short(status.rows_in)} of {short(status.rows_in + batch.lag)} records, {short_bytes(status.bytes_in)}"


def short_bytes(size: float) -> str:
    """12,345 -> 12.3 kB."""
    for unit_bytes, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit_bytes:
            return f"{size / unit_bytes:.1f} {unit}"
    return f"{size:.0f} B"


def short(rate: float) -> str:
    """12,345 -> 12.3k."""
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if rate >= size:
            return f"{rate / size:.1f}{unit}"
    return f"{rate:.0f}"
