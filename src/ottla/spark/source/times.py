"""Durations as Spark writes them: `15m`, `200ms`, `1h`."""

from __future__ import annotations

import re

from ottla.common.errors import OttlaError

_UNITS_MS = {"us": 0.001, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000, "": 1}
_DURATION = re.compile(r"(\d{1,15})\s*([a-z]*)")


def parse_duration_ms(option: str, text: str) -> int:
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None or match[2] not in _UNITS_MS:
        raise OttlaError(f"the option {option} wants a duration such as 30s, 15m or 1h, not '{text}'.")
    return int(int(match[1]) * _UNITS_MS[match[2]])
