"""Windows: which stretches of time a record belongs to. Sizes are milliseconds, or `timedelta`.

TimeWindows.of(minutes(5))                               tumbling, no grace
TimeWindows.of(minutes(5), grace=minutes(1)).advance_by(minutes(1))      hopping
SlidingWindows.of(minutes(5)), SessionWindows.with_gap(minutes(30)), UnlimitedWindows.start_on(0)
JoinWindows.of(seconds(10)).before(0)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, NamedTuple

from ottla.common.errors import OttlaError

Duration = int | timedelta
FOREVER_MS = 2**63 - 1


class Window(NamedTuple):
    """Of time windows the end is the first moment after it; of sliding and session windows the last one in it."""

    start: int
    end: int


class Windowed(NamedTuple):
    """The key of a windowed table."""

    key: Any
    window: Window


def seconds(count: float) -> int:
    return round(count * 1000)


def minutes(count: float) -> int:
    return round(count * 60_000)


def hours(count: float) -> int:
    return round(count * 3_600_000)


def days(count: float) -> int:
    return round(count * 86_400_000)


def to_ms(duration: Duration, what: str, *, least: int = 0) -> int:
    ms = round(duration.total_seconds() * 1000) if isinstance(duration, timedelta) else duration
    if isinstance(ms, bool) or not isinstance(ms, int):
        raise OttlaError(f"{what} is a number of milliseconds or a timedelta, not {duration!r}.")
    if ms < least:
        raise OttlaError(f"{what} must be at least {least} ms, not {ms}.")
    return ms


@dataclass(frozen=True)
class TimeWindows:
    """Tumbling windows, or hopping ones if they advance by less than their size."""

    size_ms: int
    advance_ms: int
    grace_ms: int = 0

    @staticmethod
    def of(size: Duration, *, grace: Duration = 0) -> TimeWindows:
        size_ms = to_ms(size, "the size of a window", least=1)
        return TimeWindows(size_ms, size_ms, to_ms(grace, "grace"))

    def advance_by(self, advance: Duration) -> TimeWindows:
        advance_ms = to_ms(advance, "the advance of hopping windows", least=1)
        if advance_ms > self.size_ms:
            raise OttlaError(
                f"windows of {self.size_ms} ms cannot advance by {advance_ms}: some time would be in none."
            )
        return replace(self, advance_ms=advance_ms)

    @property
    def retention_ms(self) -> int:
        return self.size_ms + self.grace_ms

    def windows_for(self, timestamp: int) -> Iterator[Window]:
        advance = self.advance_ms
        start = max(0, timestamp - self.size_ms + advance) // advance * advance
        while start <= timestamp:
            yield Window(start, start + self.size_ms)
            start += advance


@dataclass(frozen=True)
class UnlimitedWindows:
    """One window, from a moment on without an end."""

    start_ms: int = 0
    grace_ms: int = 0

    @staticmethod
    def start_on(start_ms: int) -> UnlimitedWindows:
        return UnlimitedWindows(to_ms(start_ms, "the start of a window"))

    @property
    def size_ms(self) -> int:
        return FOREVER_MS

    @property
    def retention_ms(self) -> int:
        return FOREVER_MS

    def windows_for(self, timestamp: int) -> Iterator[Window]:
        if timestamp >= self.start_ms:
            yield Window(self.start_ms, FOREVER_MS)


@dataclass(frozen=True)
class SlidingWindows:
    """Windows of all records that are no farther from one another than a difference of time; both ends belong to it."""

    difference_ms: int
    grace_ms: int = 0

    @staticmethod
    def of(difference: Duration, *, grace: Duration = 0) -> SlidingWindows:
        return SlidingWindows(to_ms(difference, "the time difference of a sliding window"), to_ms(grace, "grace"))

    @property
    def size_ms(self) -> int:
        return self.difference_ms

    @property
    def retention_ms(self) -> int:
        return 2 * self.difference_ms + self.grace_ms


@dataclass(frozen=True)
class SessionWindows:
    """Records of a key with less than the gap of inactivity between them."""

    gap_ms: int
    grace_ms: int = 0

    @staticmethod
    def with_gap(gap: Duration, *, grace: Duration = 0) -> SessionWindows:
        return SessionWindows(to_ms(gap, "the inactivity gap of a session"), to_ms(grace, "grace"))

    @property
    def retention_ms(self) -> int:
        return self.gap_ms + self.grace_ms


@dataclass(frozen=True)
class JoinWindows:
    """How far before and after a record of the left stream those of the right are that it joins with."""

    before_ms: int
    after_ms: int
    grace_ms: int = 0

    @staticmethod
    def of(difference: Duration, *, grace: Duration = 0) -> JoinWindows:
        difference_ms = to_ms(difference, "the time difference of a join")
        return JoinWindows(difference_ms, difference_ms, to_ms(grace, "grace"))

    def before(self, difference: Duration) -> JoinWindows:
        return self._checked(replace(self, before_ms=to_ms(difference, "before", least=-FOREVER_MS)))

    def after(self, difference: Duration) -> JoinWindows:
        return self._checked(replace(self, after_ms=to_ms(difference, "after", least=-FOREVER_MS)))

    def _checked(self, windows: JoinWindows) -> JoinWindows:
        if windows.size_ms < 0:
            raise OttlaError("a join window must not end before it starts: before + after is negative.")
        return windows

    @property
    def size_ms(self) -> int:
        return self.before_ms + self.after_ms

    @property
    def retention_ms(self) -> int:
        return self.size_ms + self.grace_ms
