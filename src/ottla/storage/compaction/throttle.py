"""Keeps the disk traffic of compaction under log.cleaner.io.max.bytes.per.second."""

from __future__ import annotations

import time
from collections.abc import Callable

# Shorter debts are carried on: a sleep costs more than it corrects.
_SLEEP_S_MIN = 0.01


class Throttle:
    def __init__(
        self,
        bytes_per_second: float | None,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """None: as fast as it goes."""
        self._rate = bytes_per_second
        self._monotonic = monotonic
        self._sleep = sleep
        self._start_s = monotonic()
        self.bytes = 0

    def spend(self, size: int) -> None:
        """`size` bytes were read or written; sleeps as long as that is ahead of the rate."""
        self.bytes += size
        if self._rate is None:
            return
        ahead_s = self.bytes / self._rate - (self._monotonic() - self._start_s)
        if ahead_s > _SLEEP_S_MIN:
            self._sleep(ahead_s)
