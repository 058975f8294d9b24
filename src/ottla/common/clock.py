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
