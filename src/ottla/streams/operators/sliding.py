"""Sliding windows: a window for every set of records that are no farther apart than the time difference.

Each record has a window that ends with it (its left window) and, if others follow within the difference, one that
starts a millisecond after it (its right window). A record updates the windows that it falls into, makes its left
window from what lies before it, its right window from what lies after it, and the right window of the record before it.
Windows do not start before 0: earlier ones are the one window that starts there.
"""

from __future__ import annotations

from typing import Any

from ottla.streams.operators.windowed import WindowedOperator
from ottla.streams.processing.context import DROPPED_LATE, DROPPED_NULL
from ottla.streams.record import Headers, ValueAndTimestamp
from ottla.streams.windows import SlidingWindows, Window


class SlidingWindowAggregate(WindowedOperator):
    def __init__(self, windows: SlidingWindows, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._difference_ms = windows.difference_ms
        self._grace_ms = windows.grace_ms

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        if key is None or value is None:
            self._context.drop(DROPPED_NULL)
            return
        if timestamp > self.observed_ms:
            self.observed_ms = timestamp
        close_ms = self.observed_ms - self._grace_ms
        place = self._store.key_bytes(key)
        assert place is not None
        if timestamp + self._difference_ms < close_ms:
            self._context.drop(DROPPED_LATE)
            self._send_late(key, value, timestamp, headers)
            return
        step = _Step(self, key, place, value, timestamp, headers, close_ms)
        if timestamp < self._difference_ms:
            step.run_early()
            return
        step.run()
        if self._emits_on_close and close_ms > self.emitted_ms:
            first = 0 if self.emitted_ms < 0 else max(0, self.emitted_ms - self._difference_ms)
            self._emit_closed(first, close_ms - self._difference_ms - 1, close_ms, headers)


class _Step:
    """What one record does."""

    def __init__(
        self,
        owner: SlidingWindowAggregate,
        key: Any,
        place: bytes,
        value: Any,
        at: int,
        headers: Headers,
        close_ms: int,
    ) -> None:
        self._owner = owner
        self._key, self._place, self._value, self._at, self._headers = key, place, value, at, headers
        self._close_ms = close_ms
        self._size = owner._difference_ms
        self._store = owner._store
        self._starts: set[int] = set()
        self._right: ValueAndTimestamp | None = None
        self._has_right = False

    def run(self) -> None:
        at, size = self._at, self._size
        left: ValueAndTimestamp | None = None
        has_left = False
        previous: int | None = None
        for start, found in list(self._store.within(self._place, max(0, at - 2 * size), at + 1, reverse=True)):
            self._starts.add(start)
            end = start + size
            if start == at + 1:
                self._has_right = True
            elif end > at:
                self._right = self._right or found
                self._update(start, found)
            elif end == at:
                has_left = True
                self._update(start, found)
                if found.timestamp >= at:
                    return  # the same moment again: all windows are there
                previous = found.timestamp
            else:
                left, previous = found, found.timestamp
                break
        if previous is not None and previous + 1 not in self._starts and previous + 1 + size >= at:
            self._create(previous + 1)
        if not has_left:
            is_empty = left is None or previous is None or at - size > previous
            self._update(at - size, None if is_empty or left is None else ValueAndTimestamp(left.value, at))
        self._make_right()

    def run_early(self) -> None:
        """A record whose left window would start before 0."""
        at = self._at
        combined: ValueAndTimestamp | None = None
        previous: int | None = None
        for start, found in list(self._store.within(self._place, 0, at + 1)):
            self._starts.add(start)
            if start == 0:
                combined = found
                previous = found.timestamp if found.timestamp < at else None
            elif start <= at:
                self._right = found
                self._update(start, found)
            else:
                self._has_right = True
        if self._right is None and combined is not None and combined.timestamp > at:
            self._right = combined
        self._make_right()
        if previous is not None and previous + 1 not in self._starts:
            self._create(previous + 1)
        self._update(0, combined)

    def _make_right(self) -> None:
        """The window after this record, as it was before the record: later ones are in it already."""
        if not self._has_right and self._right is not None and self._right.timestamp > self._at:
            start = self._at + 1
            self._store.put_at(self._place, self._right.value, start, self._right.timestamp)
            window = Window(start, start + self._size)
            self._owner._send(self._key, window, self._right.value, None, self._right.timestamp, self._headers)

    def _create(self, start: int) -> None:
        self._update(start, None)

    def _update(self, start: int, found: ValueAndTimestamp | None) -> None:
        owner, window = self._owner, Window(start, start + self._size)
        if window.end < self._close_ms:
            owner._context.drop(DROPPED_LATE)
            return
        before = owner._initializer() if found is None else found.value
        old = self._store.at(self._place, start)[0] if owner._sends_old else None
        time_ms = self._at if found is None else max(self._at, found.timestamp)
        after = owner._aggregator(self._key, self._value, before)
        self._store.put_at(self._place, after, start, time_ms)
        owner._send(self._key, window, after, old, time_ms, self._headers)
