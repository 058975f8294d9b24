"""How fast replicas may be copied (KIP-73): bytes of the last windows over the time that these cover. Pure.

As Kafka's simple rate: at least one window is taken for the time, so that a copy begins with what one window may have.
"""

from __future__ import annotations

from collections import deque

UNLIMITED = (1 << 63) - 1


class ReplicationQuota:
    def __init__(self, windows: int, window_ms: int) -> None:
        self._windows = windows
        self._window_ms = window_ms
        # When each window began, and its bytes; the oldest first.
        self._samples: deque[list[int]] = deque()
        self._total = 0

    def record(self, size: int, now_ms: int) -> None:
        self._forget_old(now_ms)
        if not self._samples or now_ms - self._samples[-1][0] >= self._window_ms:
            self._samples.append([now_ms, 0])
        self._samples[-1][1] += size
        self._total += size

    def is_exceeded(self, rate: int, now_ms: int, more: int = 0) -> bool:
        """Whether nothing may be copied now, if `more` bytes are on their way already."""
        if rate >= UNLIMITED:
            return False
        self._forget_old(now_ms)
        elapsed_ms = now_ms - self._samples[0][0] if self._samples else 0
        return (self._total + more) * 1000 > rate * max(elapsed_ms, self._window_ms)

    def _forget_old(self, now_ms: int) -> None:
        while self._samples and now_ms - self._samples[0][0] >= self._windows * self._window_ms:
            self._total -= self._samples.popleft()[1]
