"""Wall time for retention that a jump of the clock cannot push ahead.

Time as it was at the start plus what has passed since, by the monotonic clock, is the most that retention believes. A
wall clock that is ahead of that has jumped. It is believed after it has kept its lead for a day: then it was set right
rather than wrong, or the machine slept.
"""

from __future__ import annotations

import logging

from ottla.common.clock import Clock
from ottla.storage.log_config import DAY_MS

logger = logging.getLogger(__name__)

# Clocks drift and are slewed; nothing is deleted early by less than this.
TOLERANCE_MS = 60_000
DISTRUST_MS = DAY_MS


class SteadyClock:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._trust()

    def _trust(self) -> None:
        self._wall_ms = self._clock.now_ms()
        self._monotonic_ms = self._clock.monotonic_ms()
        self._ahead_since_ms: int | None = None

    def now_ms(self) -> int:
        wall_ms, monotonic_ms = self._clock.now_ms(), self._clock.monotonic_ms()
        believed_ms = self._wall_ms + (monotonic_ms - self._monotonic_ms)
        if wall_ms < believed_ms - TOLERANCE_MS:
            # Set back: what is younger than we thought stays longer, and it may be set forth again at any time.
            self._ahead_since_ms = None
            return wall_ms
        if wall_ms <= believed_ms + TOLERANCE_MS:
            self._trust()
            return wall_ms
        if self._ahead_since_ms is None:
            self._ahead_since_ms = monotonic_ms
            logger.warning(
                "the clock jumped %d s ahead; retention does not follow yet", (wall_ms - believed_ms) // 1000
            )
        if monotonic_ms - self._ahead_since_ms >= DISTRUST_MS:
            self._trust()
            return wall_ms
        return believed_ms
