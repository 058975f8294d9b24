"""Moments that neither Python nor Arrow can write, as text of SQL: infinity, years before 1 and after 9999, clocks that
show 24:00:00 or more.

Change data capture brings them as numbers, as the databases have them.
"""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_EPOCH = datetime.date(1970, 1, 1)
# The calendar repeats itself after so many days, which are 400 years.
_CYCLE_DAYS = 146_097
_FIRST_DAY = (datetime.date.min - _EPOCH).days
_LAST_DAY = (datetime.date.max - _EPOCH).days
_DAYS_MOST = 2**31 - 1
_UNITS = {"ms": 1_000, "us": 1_000_000}
# What Debezium's types of a clock count.
CLOCKS = {"io.debezium.time.Time": "ms", "io.debezium.time.MicroTime": "us"}


def is_beyond_a_day(data: Any, unit: str) -> bool:
    """Of numbers of `unit`: whether one is no time of a day."""
    found = pc.min_max(data)
    first, last = found["min"].as_py(), found["max"].as_py()
    return first is not None and not 0 <= first <= last < 86_400 * _UNITS[unit]


def clocks(data: Any, unit: str) -> Any:
    return pa.array([None if each is None else _clock(each, _UNITS[unit]) for each in data.to_pylist()], pa.string())


def _clock(value: int, per_second: int) -> str:
    seconds, part = divmod(abs(value), per_second)
    micros = part * (1_000_000 // per_second)
    sign = "-" if value < 0 else ""
    return f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{micros:06}"


def postgres_days(data: Any) -> Any:
    """Of a date32."""
    numbers = data.cast(pa.int32())
    if _are_between(numbers, _FIRST_DAY, _LAST_DAY):
        return pc.cast(data, pa.string())
    return pa.array([None if each is None else "{}{}".format(*_day(each)) for each in numbers.to_pylist()], pa.string())


def postgres_moments(data: Any) -> Any:
    """Of a timestamp without a zone, in milliseconds or microseconds."""
    per_day = 86_400 * _UNITS[data.type.unit]
    numbers = data.cast(pa.int64())
    if _are_between(numbers, _FIRST_DAY * per_day, (_LAST_DAY + 1) * per_day - 1):
        return pc.cast(data, pa.string())
    unit = data.type.unit
    return pa.array([None if each is None else _moment(each, unit) for each in numbers.to_pylist()], pa.string())


def _are_between(numbers: Any, first: int, last: int) -> bool:
    found = pc.min_max(numbers)
    return found["min"].as_py() is None or first <= found["min"].as_py() <= found["max"].as_py() <= last


def _day(days: int) -> tuple[str, str]:
    """The date, and what stands behind it."""
    if abs(days) >= _DAYS_MOST:
        return ("infinity" if days > 0 else "-infinity"), ""
    cycles, rest = divmod(days - _FIRST_DAY, _CYCLE_DAYS)
    date = datetime.date.min + datetime.timedelta(days=rest)
    year = date.year + 400 * cycles
    return f"{year if year > 0 else 1 - year:04}-{date:%m-%d}", "" if year > 0 else " BC"


def _moment(value: int, unit: str) -> str:
    # Milliseconds are made of microseconds.
    if abs(value) >= (2**63 - 1) // (1_000_000 // _UNITS[unit]):
        return "infinity" if value > 0 else "-infinity"
    days, rest = divmod(value, 86_400 * _UNITS[unit])
    date, behind = _day(days)
    return f"{date} {_clock(rest, _UNITS[unit])}{behind}"
