"""How late the event loop is: the one number that says most of a broker that is one process with one loop.

A timer is due every tenth of a second. By how much it comes too late is how long any request would have waited; which
part of the time the loop's thread did not compute is Kafka's idle ratio of request handlers.
"""

from __future__ import annotations

import asyncio
import time

from ottla.exposition.histogram import Histogram

_EVERY_S = 0.1
BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)


class LoopLag:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        self.late_s = Histogram(BOUNDS_S)
        self.worst_s = 0.0
        self._looked = (0.0, 0.0)
        self._due = 0.0

    def start(self) -> None:
        self._looked = time.perf_counter(), time.thread_time()
        self._schedule()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _schedule(self) -> None:
        self._due = self._loop.time() + _EVERY_S
        self._timer = self._loop.call_at(self._due, self._tick)

    def _tick(self) -> None:
        late_s = max(0.0, self._loop.time() - self._due)
        self.late_s.add(late_s)
        self.worst_s = max(self.worst_s, late_s)
        self._schedule()

    def idle_since_last_look(self) -> float:
        """Which part of the time the loop's thread did not compute; asked in that thread."""
        now, worked = time.perf_counter(), time.thread_time()
        since, worked_before = self._looked
        self._looked = now, worked
        if now <= since:
            return 1.0
        return min(1.0, max(0.0, 1.0 - (worked - worked_before) / (now - since)))

    def take_worst(self) -> float:
        """Since the last look."""
        worst, self.worst_s = self.worst_s, 0.0
        return worst
