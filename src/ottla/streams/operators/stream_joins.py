"""Joins of two streams: records of the same key within a window of time. Each side is an operator that looks into the
other side's window store, then keeps the record in its own.

Left and outer joins hold back records that found no partner until the window has closed, in the order of time, and send
them without one then: a store that both sides share has them, and the time that both have seen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.streams.processing.context import DROPPED_NULL, TaskContext
from ottla.streams.processing.operator import Operator
from ottla.streams.record import Headers
from ottla.streams.state.buffers import PendingJoins
from ottla.streams.windows import JoinWindows

# key, left value, right value
Joiner = Callable[[Any, Any, Any], Any]


class StreamJoinSide(Operator):
    def __init__(
        self,
        windows: JoinWindows,
        joiner: Joiner,
        *,
        is_left: bool,
        is_outer: bool,
        own_store: str,
        other_store: str,
        pending_store: str | None,
    ) -> None:
        """`is_outer`: whether records of this side go on without a partner."""
        self._joiner = joiner
        self._is_left = is_left
        self._is_outer = is_outer
        self._before_ms, self._after_ms = windows.before_ms, windows.after_ms
        if not is_left:
            self._before_ms, self._after_ms = self._after_ms, self._before_ms
        # Of the left side's records those after them are waited for, of the right side's those before them.
        self._open_ms = {True: windows.after_ms, False: windows.before_ms}
        self._grace_ms = windows.grace_ms
        self._names = own_store, other_store, pending_store

    def init(self, context: TaskContext) -> None:
        self._context = context
        own, other, pending = self._names
        self._own, self._other = context.store(own), context.store(other)
        self._pending: Any = None if pending is None else context.store(pending)

    def _joined(self, key: Any, own: Any, other: Any) -> Any:
        return self._joiner(key, own, other) if self._is_left else self._joiner(key, other, own)

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        self._join(key, value, timestamp, headers)
        if key is not None:
            self._own.put_at(self._own.key_bytes(key), value, timestamp, timestamp)

    def _join(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        pending = self._pending
        if pending is not None and timestamp > pending.stream_time_ms:
            pending.stream_time_ms = timestamp
        if key is None and value is not None and self._is_outer:
            self.forward(key, self._joined(key, value, None), timestamp, headers)
            return
        if key is None or value is None:
            self._context.drop(DROPPED_NULL)
            return
        if pending is not None and timestamp == pending.stream_time_ms:
            self._send_unjoined(headers)
        place = self._other.key_bytes(key)
        first_ms, last_ms = max(0, timestamp - self._before_ms), max(0, timestamp + self._after_ms)
        found = list(self._other.within(place, first_ms, last_ms))
        for other_ms, other in found:
            if pending is not None:
                pending.remove(other_ms, not self._is_left, place)
            self.forward(key, self._joined(key, value, other.value), max(timestamp, other_ms), headers)
        if not found and self._is_outer:
            if pending is None or last_ms < pending.stream_time_ms:
                self.forward(key, self._joined(key, value, None), timestamp, headers)
            else:
                pending.add(timestamp, self._is_left, self._own.key_bytes(key), value)

    def _send_unjoined(self, headers: Headers) -> None:
        """Those whose windows have closed."""
        pending: PendingJoins = self._pending
        now_ms = pending.stream_time_ms
        if pending.min_time_ms is not None and pending.min_time_ms + self._after_ms + self._grace_ms >= now_ms:
            return
        pending.min_time_ms = None
        is_open = {True: False, False: False}
        for entry in pending.all():
            pending.min_time_ms = entry.timestamp
            if is_open[True] and is_open[False]:
                break
            if entry.timestamp + self._open_ms[entry.is_left] + self._grace_ms >= now_ms:
                is_open[entry.is_left] = True
                continue
            key = self._own.key_of(entry.key)
            joined = self._joiner(key, entry.value, None) if entry.is_left else self._joiner(key, None, entry.value)
            self.forward(key, joined, entry.timestamp, headers)
            pending.discard(entry)
