"""Time that a test moves."""

from __future__ import annotations


class ManualClock:
    """A clock that moves only when told to; both of its times advance together unless wall time is set apart."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = now_ms
        self._monotonic_ms = 0

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_ms(self) -> int:
        return self._monotonic_ms

    def advance(self, ms: int) -> None:
        self._now_ms += ms
        self._monotonic_ms += ms

    def set_wall(self, now_ms: int) -> None:
        """A clock jump: wall time changes, monotonic time does not."""
        self._now_ms = now_ms
