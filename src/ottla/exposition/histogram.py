"""A histogram with fixed buckets. What is measured with every request is counted elsewhere (`kernel/request_runs.py`)
and merged when somebody asks."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

# Most of our answers take some tens of microseconds; a fetch may wait for half a second, a join for minutes. Fetches
# that have waited took a little more than half a second: with a bound at it they would be told as up to a whole one.
_BOUNDS_MS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 525.0, 1_000.0, 5_000.0, 30_000.0)
TIME_BOUNDS_S = tuple(bound / 1_000 for bound in _BOUNDS_MS)


class Histogram:
    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float] = TIME_BOUNDS_S) -> None:
        self.bounds = tuple(bounds)
        # The last one is of what is above all bounds.
        self.counts = [0] * (len(self.bounds) + 1)
        self.sum = 0.0

    @property
    def count(self) -> int:
        return sum(self.counts)

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def merge(self, counts: Sequence[int], total: float) -> None:
        """What was counted elsewhere in the same buckets."""
        self.counts = [had + new for had, new in zip(self.counts, counts, strict=True)]
        self.sum += total

    def buckets(self, *, zeros: int = 0, scale: float = 1.0) -> list[tuple[str, float]]:
        """As Prometheus has them: each counts all below it. `zeros` are values of 0 that were never added, `scale` is
        what bounds are multiplied with."""
        found: list[tuple[str, float]] = []
        total = zeros
        for bound, count in zip(self.bounds, self.counts, strict=False):
            total += count
            found.append((_text(bound * scale), total))
        return [*found, ("+Inf", total + self.counts[-1])]


def _text(bound: float) -> str:
    return repr(round(bound, 9))
