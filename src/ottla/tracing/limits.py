"""How much a search may take, and what is left of it: time, bytes and hops, over all of its passes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

_MB = 1024 * 1024


@dataclass(frozen=True)
class Limits:
    """Of one trace, over all its passes."""

    seconds_max: float = 60.0
    bytes_max: int = 4096 * _MB
    hops_max: int = 1000


class Stopped(Exception):
    """The search ends here; `why` goes into the trace."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Budget:
    """What is left of the limits, and whether somebody has cancelled."""

    def __init__(self, limits: Limits, is_cancelled: Callable[[], bool], on_progress: Callable[[Budget], None]) -> None:
        self._limits = limits
        self._is_cancelled = is_cancelled
        self._on_progress = on_progress
        self._began_s = time.monotonic()
        self.records = 0
        self.bytes = 0
        self.hops = 0

    @property
    def took_s(self) -> float:
        return time.monotonic() - self._began_s

    def check(self) -> None:
        """Raises Stopped."""
        self._on_progress(self)
        if self._is_cancelled():
            raise Stopped("cancelled")
        if self.took_s > self._limits.seconds_max:
            raise Stopped("time")
        if self.bytes > self._limits.bytes_max:
            raise Stopped("bytes")

    def took_hop(self) -> None:
        self.hops += 1
        if self.hops > self._limits.hops_max:
            raise Stopped("hops")
