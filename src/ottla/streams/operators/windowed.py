"""Aggregation in tumbling, hopping and unlimited windows, and what all time windows share.

A record counts in a window while the window's end lies after stream time less grace; stream time is the latest time
that this operator has seen. Results go on at once, or, with `emit on close`, once, when a window takes no more records.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ottla.streams.operators.aggregates import Aggregator, Initializer
from ottla.streams.operators.old_values import OldValues
from ottla.streams.processing.context import DROPPED_LATE, DROPPED_NULL, TaskContext
from ottla.streams.processing.operator import Operator
from ottla.streams.record import NO_TIMESTAMP, Change, Headers, latest
from ottla.streams.state.window_store import WindowStore
from ottla.streams.windows import TimeWindows, UnlimitedWindows, Window, Windowed

# What was emitted on close stays this long after its retention, for those who look it up.
KEPT_AFTER_CLOSE_MS = 86_400_000


class LateRecords(NamedTuple):
    """Where records go that no window takes any more."""

    topic: str
    key_bytes: Callable[[Any], bytes | None]
    value_bytes: Callable[[Any], bytes | None]


class WindowedOperator(Operator):
    remembered = ("observed_ms", "emitted_ms")

    def __init__(
        self,
        store: str,
        initializer: Initializer,
        aggregator: Aggregator,
        old: OldValues,
        emits_on_close: bool,
        late: LateRecords | None,
        retention_ms: int = 0,
    ) -> None:
        self._retention_ms = retention_ms
        self._store_name = store
        self._initializer = initializer
        self._aggregator = aggregator
        self._sends_old = old.are_sent
        self._emits_on_close = emits_on_close
        self._late = late
        self.observed_ms = NO_TIMESTAMP
        # Up to where windows were emitted, if they are emitted on close.
        self.emitted_ms = NO_TIMESTAMP

    def init(self, context: TaskContext) -> None:
        self._context = context
        self._store: WindowStore = context.store(self._store_name)

    def _update(self, key: Any, place: bytes, window: Window, value: Any, timestamp: int, headers: Headers) -> None:
        before, before_ms = self._store.at(place, window.start)
        old = self._store.at(place, window.start)[0] if self._sends_old else None
        if before is None:
            before = self._initializer()
        after, time_ms = self._aggregator(key, value, before), max(timestamp, before_ms)
        self._store.put_at(place, after, window.start, time_ms)
        self._send(key, window, after, old, time_ms, headers)

    def _send(self, key: Any, window: Window, new: Any, old: Any, time_ms: int, headers: Headers) -> None:
        if not self._emits_on_close:
            self.forward(Windowed(key, window), latest(new, old), time_ms, headers)

    def _send_late(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        """No window takes it."""
        if self._late is not None:
            topic, key_bytes, value_bytes = self._late
            named = self._context.real_name(topic)
            self._context.emit(named, key_bytes(key), value_bytes(value), timestamp, headers, None)

    def _emit_closed(self, first_start: int, last_start: int, close_ms: int, headers: Headers) -> None:
        """Of windows that start in these bounds, both included."""
        if last_start < 0:
            return
        for place, start, found in list(self._store.by_time(first_start, last_start)):
            window = Window(start, start + self._store.spec.window_size_ms)
            self.forward(
                Windowed(self._store.key_of(place), window), Change(found.value, None), found.timestamp, headers
            )
        self._emitted_until(close_ms)

    def _emitted_until(self, close_ms: int) -> None:
        """The store itself forgets nothing, so that a window is there when it closes, however far time jumps."""
        self.emitted_ms = close_ms
        self._store.forget_before(self.observed_ms - self._retention_ms - KEPT_AFTER_CLOSE_MS)


class TimeWindowAggregate(WindowedOperator):
    def __init__(self, windows: TimeWindows | UnlimitedWindows, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._windows = windows
        self._windows_for = windows.windows_for

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        if key is None:
            self._context.drop(DROPPED_NULL)
            return
        if timestamp > self.observed_ms:
            self.observed_ms = timestamp
        close_ms = self.observed_ms - self._windows.grace_ms
        place = self._store.key_bytes(key)
        assert place is not None
        is_late = True
        for window in self._windows_for(timestamp):
            if window.end > close_ms:
                is_late = False
                self._update(key, place, window, value, timestamp, headers)
            else:
                self._context.drop(DROPPED_LATE)
        if is_late:
            self._send_late(key, value, timestamp, headers)
        if self._emits_on_close and close_ms > self.emitted_ms:
            size_ms = self._windows.size_ms
            first = 0 if self.emitted_ms < 0 else self.emitted_ms - size_ms + 1
            self._emit_closed(first, close_ms - size_ms, close_ms, headers)
