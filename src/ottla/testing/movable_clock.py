"""A clock that runs with the system's and can be moved forward: to see retention or a session time-out now."""

from __future__ import annotations

from collections.abc import Callable

from ottla.common.clock import SystemClock


class MovableClock:
    def __init__(self) -> None:
        self._system = SystemClock()
        self._offset_ms = 0
        self._listeners: list[Callable[[], None]] = []

    def now_ms(self) -> int:
        return self._system.now_ms() + self._offset_ms

    def monotonic_ms(self) -> int:
        return self._system.monotonic_ms() + self._offset_ms

    def advance(self, *, seconds: float = 0, minutes: float = 0, hours: float = 0, days: float = 0) -> None:
        """Move wall time and timers forward together. Safe from any thread."""
        moved_ms = round(1000 * (seconds + 60 * (minutes + 60 * (hours + 24 * days))))
        if moved_ms < 0:
            raise ValueError("time moves forward only")
        self._offset_ms += moved_ms
        for listener in tuple(self._listeners):
            listener()

    def on_move(self, listener: Callable[[], None]) -> None:
        self._listeners.append(listener)
