"""Numbers as people read them: in tables, on charts, in sentences."""

from __future__ import annotations

import time
from datetime import UTC, datetime

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_STEPS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))


def count(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def short(value: float | None) -> str:
    """1,234 -> 1.23 k"""
    if value is None:
        return "–"
    for limit, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            scaled = value / (1e3 if unit == "k" else limit)
            return f"{scaled:.3g} {unit}" if scaled < 1000 else f"{scaled:.0f} {unit}"
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 100 else f"{value:.3g}"


def rate(value: float | None) -> str:
    return "–" if value is None else f"{short(value)}/s"


def size(value: float | None) -> str:
    if value is None:
        return "–"
    number, unit = float(value), 0
    while abs(number) >= 1024 and unit < len(_UNITS) - 1:
        number, unit = number / 1024, unit + 1
    return f"{number:.0f} {_UNITS[unit]}" if unit == 0 or number >= 100 else f"{number:.3g} {_UNITS[unit]}"


def byte_rate(value: float | None) -> str:
    return "–" if value is None else f"{size(value)}/s"


def duration(ms: float | None) -> str:
    if ms is None:
        return "–"
    for step, unit in _STEPS:
        if ms >= step:
            whole = ms / step
            return f"{whole:.0f} {unit}" if whole >= 10 else f"{whole:.1f} {unit}".replace(".0 ", " ")
    return f"{ms:.0f} ms"


def milliseconds(ms: float | None) -> str:
    """How long something took: tenths count where it is short."""
    if ms is None:
        return "–"
    if ms < 10:
        return f"{ms:.2g} ms" if ms >= 0.005 else "0 ms"
    return f"{ms:.3g} ms" if ms < 999.5 else duration(ms)


def seconds(s: float | None) -> str:
    """For axes: a duration that is told in seconds."""
    return "–" if s is None else duration(s * 1000)


def moment(ms: float | None) -> str:
    """In UTC, as the command line writes it."""
    if ms is None or ms < 0:
        return "–"
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    except (OverflowError, ValueError, OSError):
        return str(ms)


def ago(at_s: float | None) -> str:
    return "–" if not at_s else f"{duration(max(0.0, time.time() - at_s) * 1000)} ago"


def setting(name: str, value: str | None) -> str:
    """What a number of a setting means, if it is a size or a duration."""
    if value is None or not value.lstrip("-").isdigit():
        return ""
    number = int(value)
    if number < 0:
        return "no limit" if name.startswith("retention") else ""
    if number >= 2**63 - 1:
        return "no limit"
    if name.endswith(".ms") and number >= 1000:
        return duration(number)
    if name.endswith(".bytes") and number >= 1024:
        return size(number)
    return ""


def plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
