"""The clock port: all code that needs the time is given one, so that tests and the simulator can move it.

Wall time stamps records and decides retention. Timers and sessions run on monotonic time: a jump of the wall
clock must neither delete data early nor expire a session.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Wall-clock milliseconds since the epoch."""

    def monotonic_ms(self) -> int:
        """Milliseconds that never go back; only differences mean something."""


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000


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
