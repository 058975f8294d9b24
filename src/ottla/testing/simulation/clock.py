"""The clock of one machine: the simulation's time, from a start of its own, and wrong by a little."""

from __future__ import annotations

from ottla.testing.simulation.loop import SimulatedLoop

_START_MS = 1_700_000_000_000


class SimulatedClock:
    def __init__(self, loop: SimulatedLoop, skew_ms: int = 0) -> None:
        self._loop = loop
        # Wall time can be moved; timers and sessions do not see it.
        self.skew_ms = skew_ms

    def now_ms(self) -> int:
        return _START_MS + self.skew_ms + int(self._loop.time() * 1000)

    def monotonic_ms(self) -> int:
        return int(self._loop.time() * 1000)
