"""Sessions: a record joins the sessions of its key that it lies within the gap of; they become one. The sessions that
are no more are sent as tombstones, then the new one. The time of a result is the end of its session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.streams.operators.aggregates import Aggregator, Initializer
from ottla.streams.operators.old_values import OldValues
from ottla.streams.operators.windowed import LateRecords, WindowedOperator
from ottla.streams.processing.context import DROPPED_LATE, DROPPED_NULL
from ottla.streams.record import Change, Headers
from ottla.streams.windows import SessionWindows, Window, Windowed

Merger = Callable[[Any, Any, Any], Any]


class SessionAggregate(WindowedOperator):
    _store: Any

    def __init__(
        self,
        windows: SessionWindows,
        store: str,
        initializer: Initializer,
        aggregator: Aggregator,
        merger: Merger,
        old: OldValues,
        emits_on_close: bool,
        late: LateRecords | None,
        retention_ms: int,
    ) -> None:
        super().__init__(store, initializer, aggregator, old, emits_on_close, late, retention_ms)
        self._gap_ms = windows.gap_ms
        self._grace_ms = windows.grace_ms
        self._merger = merger

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        if key is None:
            self._context.drop(DROPPED_NULL)
            return
        if timestamp > self.observed_ms:
            self.observed_ms = timestamp
        close_ms = self.observed_ms - self._grace_ms - self._gap_ms
        place = self._store.key_bytes(key)
        merged = self._store.within(place, timestamp - self._gap_ms, timestamp + self._gap_ms)
        own = Window(timestamp, timestamp)
        session, aggregate = own, self._initializer()
        for window, found in merged:
            aggregate = self._merger(key, aggregate, found)
            session = Window(min(session.start, window.start), max(session.end, window.end))
        if session.end < close_ms:
            self._context.drop(DROPPED_LATE)
            self._send_late(key, value, timestamp, headers)
        else:
            if session != own:
                for window, found in merged:
                    self._store.put_at(place, window, None)
                    self._send_session(key, window, None, found)
            aggregate = self._aggregator(key, value, aggregate)
            self._store.put_at(place, session, aggregate)
            self._send_session(key, session, aggregate, None)
        if self._emits_on_close and close_ms > self.emitted_ms:
            self._emit_ended(close_ms, headers)

    def _send_session(self, key: Any, window: Window, new: Any, old: Any) -> None:
        if not self._emits_on_close:
            change = Change(new, old if self._sends_old else None)
            self.forward(Windowed(key, window), change, window.end, ())

    def _emit_ended(self, close_ms: int, headers: Headers) -> None:
        first, last = max(0, self.emitted_ms), close_ms - 1
        if last < first:
            return
        for place, window, found in list(self._store.by_end(first, last)):
            self.forward(Windowed(self._store.key_of(place), window), Change(found, None), window.end, headers)
        self._emitted_until(close_ms)
