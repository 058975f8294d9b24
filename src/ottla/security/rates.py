"""How much somebody uses, over the last few windows; and for how long to wait so that it is no more than allowed. Pure.

Kafka's two ways to count. A `SampledRate` adds up what came in samples of one window each, and divides by the time that
they span, taken for at least all windows but one: whoever has just begun may use at once what those allow. A
`TokenBucket` (KIP-599) fills up at the rate that is allowed, is full after all windows, and may be overdrawn once.
"""

from __future__ import annotations

import math
from collections import deque

# What a field of 32 bits can say: 24 days.
THROTTLE_MS_MAX = 2**31 - 1


class SampledRate:
    __slots__ = ("_count", "_samples", "_total", "_window_ms")

    def __init__(self, window_count: int, window_ms: int) -> None:
        self._count = window_count
        self._window_ms = window_ms
        # Each: when it began, when something was last added to it, how much it has.
        self._samples: deque[list[float]] = deque()
        self._total = 0.0

    def record(self, amount: float, now_ms: int) -> None:
        """An amount below zero takes back what did not happen after all."""
        samples = self._samples
        if not samples or now_ms - samples[-1][0] >= self._window_ms:
            self._forget(now_ms)
            samples.append([now_ms, now_ms, 0.0])
            if len(samples) > self._count + 1:
                self._total -= samples.popleft()[2]
        newest = samples[-1]
        newest[1] = now_ms
        newest[2] += amount
        self._total += amount

    def _forget(self, now_ms: int) -> None:
        samples, age_ms = self._samples, self._count * self._window_ms
        while samples and now_ms - samples[0][1] >= age_ms:
            self._total -= samples.popleft()[2]
        if not samples:
            self._total = 0.0  # and no rest of what was rounded

    def _span_ms(self, now_ms: int) -> float:
        """The time by which the rate is measured."""
        elapsed_ms = now_ms - self._samples[0][0] if self._samples else 0
        lacking = self._count - 1 - elapsed_ms // self._window_ms
        if lacking > 0:
            elapsed_ms += lacking * self._window_ms
        return max(elapsed_ms, 1)

    def per_second(self, now_ms: int) -> float:
        self._forget(now_ms)
        return self._total * 1000 / self._span_ms(now_ms)

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """How long until the rate is `limit` if nothing is added; 0 if it is no more than that now."""
        rate = self.per_second(now_ms)
        if rate <= limit:
            return 0
        # A half is rounded up, as Java does.
        return math.floor(min((rate - limit) / limit * self._span_ms(now_ms) + 0.5, THROTTLE_MS_MAX))

    def is_idle(self, now_ms: int) -> bool:
        """Nothing is left that counts."""
        self._forget(now_ms)
        return not self._samples


class TokenBucket:
    __slots__ = ("_since_ms", "_span_s", "_tokens")

    def __init__(self, window_count: int, window_ms: int) -> None:
        self._span_s = window_count * window_ms / 1000
        self._tokens = 0.0
        self._since_ms: int | None = None

    def _fill(self, limit: float, now_ms: int) -> None:
        most = limit * self._span_s
        if self._since_ms is None:
            self._tokens = most
        else:
            self._tokens = min(most, self._tokens + limit * (now_ms - self._since_ms) / 1000)
        self._since_ms = now_ms

    def take(self, amount: float, limit: float, now_ms: int) -> None:
        self._fill(limit, now_ms)
        self._tokens -= amount

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """How long until nothing is overdrawn any more."""
        self._fill(limit, now_ms)
        return round(min(-self._tokens / limit * 1000, THROTTLE_MS_MAX)) if self._tokens < 0 else 0

    def is_idle(self, now_ms: int) -> bool:
        return self._since_ms is None or (now_ms - self._since_ms >= self._span_s * 1000 and self._tokens >= 0)
