"""Timers. One that is overdue by several intervals fires once, and keeps its rhythm."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from enum import Enum


class PunctuationType(Enum):
    # As records move it: the first time with the first record.
    STREAM_TIME = "stream time"
    WALL_CLOCK_TIME = "wall clock time"


class Cancellable:
    def __init__(self) -> None:
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class _Schedule(Cancellable):
    def __init__(self, name: str, interval_ms: int, due_ms: int, call: Callable[[int], None]) -> None:
        super().__init__()
        self.name = name
        self.interval_ms = interval_ms
        self.due_ms = due_ms
        self.call = call

    def move_past(self, now_ms: int) -> None:
        missed = max(0, now_ms - self.due_ms) // self.interval_ms
        self.due_ms += (missed + 1) * self.interval_ms


class Schedules:
    def __init__(self) -> None:
        self._queue: list[tuple[int, int, _Schedule]] = []
        self._count = 0
        self._by_owner: dict[str, int] = {}
        self._added: list[_Schedule] = []
        # When those of an earlier life of the task were due, by name; None if they were cancelled.
        self._known: dict[str, int | None] = {}

    def add(self, owner: str, interval_ms: int, due_ms: int, call: Callable[[int], None]) -> Cancellable:
        """The timers of a processor are told apart by the order in which they were asked for."""
        number = self._by_owner[owner] = self._by_owner.get(owner, -1) + 1
        name = f"{owner}/{number}"
        known_ms = self._known.pop(name, due_ms)
        schedule = _Schedule(name, interval_ms, due_ms if known_ms is None else known_ms, call)
        self._added.append(schedule)
        if known_ms is None:
            schedule.cancel()
        else:
            self._push(schedule)
        return schedule

    @property
    def is_used(self) -> bool:
        return bool(self._queue)

    def _push(self, schedule: _Schedule) -> None:
        self._count += 1
        heapq.heappush(self._queue, (schedule.due_ms, self._count, schedule))

    def run(self, now_ms: int) -> bool:
        """Those that are due. Whether there were any."""
        has_run = False
        while self._queue and self._queue[0][0] <= now_ms:
            schedule = heapq.heappop(self._queue)[2]
            if schedule.is_cancelled:
                continue
            has_run = True
            schedule.call(now_ms)
            if not schedule.is_cancelled:
                schedule.move_past(now_ms)
                self._push(schedule)
        return has_run

    def snapshot(self) -> dict[str, int | None]:
        return {schedule.name: None if schedule.is_cancelled else schedule.due_ms for schedule in self._added}

    def restore(self, known: dict[str, int | None]) -> None:
        """Before any is added."""
        self._known = dict(known)
