"""Durations and sizes as Spark writes them: `15m`, `200ms`, `1h`; `256m`, `1g`, `64kb`."""

from __future__ import annotations

import re

from ottla.common.errors import OttlaError

_UNITS_MS = {"us": 0.001, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000, "": 1}
_QUANTITY = re.compile(r"(\d{1,15})\s*([a-z]*)")
_UNITS_BYTES = {"": 1, "b": 1, "k": 1 << 10, "kb": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "g": 1 << 30, "gb": 1 << 30}


def parse_duration_ms(option: str, text: str) -> int:
    match = _QUANTITY.fullmatch(text.strip().lower())
    if match is None or match[2] not in _UNITS_MS:
        raise OttlaError(f"the option {option} wants a duration such as 30s, 15m or 1h, not '{text}'.")
    return int(int(match[1]) * _UNITS_MS[match[2]])


def parse_bytes(option: str, text: str) -> int:
    match = _QUANTITY.fullmatch(text.strip().lower())
    if match is None or match[2] not in _UNITS_BYTES:
        raise OttlaError(f"the option {option} wants a number of bytes such as 268435456, 256m or 1g, not '{text}'.")
    return int(match[1]) * _UNITS_BYTES[match[2]]
