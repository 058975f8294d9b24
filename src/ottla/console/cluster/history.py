"""The last half hour as numbers: one shared row of moments, and a row of values for each thing that is watched.

Values are kept as floats in arrays, so a thousand topics and a thousand groups take some megabytes.
"""

from __future__ import annotations

import math
import threading
from array import array
from collections.abc import Mapping

POINTS_MAX = 360
SERIES_MAX = 20_000
_NOTHING = math.nan


class History:
    def __init__(self, points_max: int = POINTS_MAX) -> None:
        self._points_max = points_max
        self._times = array("d")
        self._series: dict[str, array[float]] = {}
        self._lock = threading.Lock()

    def add(self, at_s: float, values: Mapping[str, float | None]) -> None:
        """What is not named has no value at this moment; what has had none for all the time is forgotten."""
        with self._lock:
            self._times.append(at_s)
            for name in values:
                if name not in self._series and len(self._series) < SERIES_MAX:
                    self._series[name] = array("f", [_NOTHING] * (len(self._times) - 1))
            for name, row in self._series.items():
                value = values.get(name)
                row.append(_NOTHING if value is None else value)
            if len(self._times) > self._points_max:
                self._drop_first()

    def _drop_first(self) -> None:
        extra = len(self._times) - self._points_max
        del self._times[:extra]
        for row in self._series.values():
            del row[:extra]
        if len(self._times) % 50 == 0 or extra:
            silent = [name for name, row in self._series.items() if math.isnan(row[-1]) and all(map(math.isnan, row))]
            for name in silent:
                del self._series[name]

    def of(self, name: str) -> list[tuple[float, float | None]]:
        """Moments and values, oldest first."""
        with self._lock:
            row = self._series.get(name)
            if row is None:
                return []
            values = [None if math.isnan(value) else value for value in row]
            return list(zip(self._times, values, strict=True))
