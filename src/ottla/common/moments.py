"""Moments as people write them: `now`, `-15m`, an ISO date or time, or a number of seconds or milliseconds."""

from __future__ import annotations

import re
import time
from datetime import datetime

DURATION = re.compile(r"(\d+)(ms|s|m|h|d|w)")
_BACK = re.compile(r"-(\d{1,18}(ms|s|m|h|d|w)){1,6}", re.ASCII)
UNIT_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
SECONDS_DIGITS_MAX = 11
# Python refuses to read a number of thousands of digits.
_DIGITS_MAX = 18


def parse_time(text: str) -> int | None:
    """Epoch ms of an absolute time, or of one counted back from now; None when it is neither. What was before 1970 is
    0: to Kafka negative times mean the end, the beginning and others."""
    if text == "now":
        return time.time_ns() // 1_000_000
    if text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX:
        return int(text) * (1000 if len(text) <= SECONDS_DIGITS_MAX else 1)
    if _BACK.fullmatch(text):
        back_ms = sum(int(count) * UNIT_MS[unit] for count, unit in DURATION.findall(text))
        return max(0, time.time_ns() // 1_000_000 - back_ms)
    try:
        return max(0, int(datetime.fromisoformat(text).timestamp() * 1000))
    except (ValueError, OverflowError):
        return None
