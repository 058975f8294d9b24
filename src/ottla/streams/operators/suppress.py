"""Suppression: updates of a table are held back until a window has closed, or for a time, or until there are too many.

A key has one place in the buffer, at the time of its first update since it was last sent. The buffer is a store of its
own: what is held back survives a restart.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ottla.common.errors import OttlaError
from ottla.streams.processing.context import TaskContext
from ottla.streams.processing.operator import Operator
from ottla.streams.record import NO_TIMESTAMP, Change, Headers, RecordMetadata
from ottla.streams.windows import Duration, to_ms


@dataclass(frozen=True)
class Suppressed:
    """When held-back updates are sent."""

    wait_ms: int
    on_window_close: bool = False
    records_max: int | None = None
    bytes_max: int | None = None
    # What happens when there are more: sent early, or an error.
    fails_when_full: bool = False

    @staticmethod
    def until_window_closes() -> Suppressed:
        """One final result for each window. The buffer grows as it must, unless `at_most` says otherwise."""
        return Suppressed(0, on_window_close=True, fails_when_full=True)

    @staticmethod
    def until_time_limit(wait: Duration) -> Suppressed:
        return Suppressed(to_ms(wait, "the time of a suppression"))

    def at_most(self, *, records: int | None = None, bytes: int | None = None) -> Suppressed:
        """With `until_time_limit` the oldest updates are sent early; with `until_window_closes` it is an error."""
        return replace(self, records_max=records, bytes_max=bytes)


class BufferFull(OttlaError):
    """A strict buffer has more than it may have."""


class Suppress(Operator):
    remembered = ("observed_ms",)

    def __init__(self, store: str, suppressed: Suppressed, wait_ms: int, name: str) -> None:
        self._store_name = store
        self._suppressed = suppressed
        self._wait_ms = wait_ms
        self._name = name
        self.observed_ms = NO_TIMESTAMP

    def init(self, context: TaskContext) -> None:
        self._context = context
        self._buffer = context.store(self._store_name)

    def process(self, key: Any, change: Change, timestamp: int, headers: Headers) -> None:
        if timestamp > self.observed_ms:
            self.observed_ms = timestamp
        due_ms = key.window.end if self._suppressed.on_window_close else timestamp
        self._buffer.hold(key, change, due_ms, timestamp, headers, self._context.metadata)
        limit_ms = self.observed_ms - self._wait_ms
        while (first_ms := self._buffer.first_ms()) is not None and first_ms <= limit_ms:
            self._send_first()
        while self._is_full():
            if self._suppressed.fails_when_full:
                raise BufferFull(f"the buffer of '{self._name}' is full: let it hold more, or close windows earlier.")
            self._send_first()

    def _is_full(self) -> bool:
        most = self._suppressed
        too_many = most.records_max is not None and self._buffer.record_count > most.records_max
        return too_many or (most.bytes_max is not None and self._buffer.size_bytes > most.bytes_max)

    def _send_first(self) -> None:
        key, change, timestamp, headers, metadata = self._buffer.take_first()
        if change.new is None and self._suppressed.on_window_close:
            return
        current, self._context.metadata = self._context.metadata, RecordMetadata(*metadata) if metadata else None
        try:
            self.forward(key, change, timestamp, headers)
        finally:
            self._context.metadata = current
