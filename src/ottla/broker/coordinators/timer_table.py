"""A table of named deadlines for timers that are moved far more often than they fire.

Every heartbeat pushes a session deadline further out. So moving a deadline is one dict assignment; the heap keeps the
earliest deadline a key ever had, and an entry that turns out to be early is put back at its real place. Time comes in
as a number: the broker passes monotonic milliseconds, the simulator its own.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Any

from ottla.common.result import TimerKey, TimerOrder


class TimerTable:
    def __init__(self) -> None:
        self._deadlines: dict[TimerKey, tuple[int, Any]] = {}
        # The heap entry that stands for a key: its time is never later than the key's deadline.
        self._armed: dict[TimerKey, int] = {}
        self._heap: list[tuple[int, int, TimerKey]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._deadlines)

    def __contains__(self, key: TimerKey) -> bool:
        return key in self._deadlines

    def carry_out(self, orders: Iterable[TimerOrder], now_ms: int) -> None:
        for key, delay_ms, payload, keep in orders:
            if delay_ms is None:
                self._deadlines.pop(key, None)
            elif not (keep and key in self._deadlines):
                deadline = now_ms + delay_ms
                self._deadlines[key] = (deadline, payload)
                armed = self._armed.get(key)
                if armed is None or armed > deadline:
                    self._arm(key, deadline)

    def _arm(self, key: TimerKey, deadline: int) -> None:
        self._armed[key] = deadline
        self._count += 1
        heapq.heappush(self._heap, (deadline, self._count, key))

    def next_deadline(self) -> int | None:
        """When to look again; it may turn out that nothing is due then."""
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now_ms: int) -> tuple[TimerKey, Any] | None:
        """One timer that is due, removed from the table."""
        while self._heap and self._heap[0][0] <= now_ms:
            time_ms, _, key = heapq.heappop(self._heap)
            if self._armed.get(key) != time_ms:
                continue  # an earlier entry for the key has taken over
            del self._armed[key]
            held = self._deadlines.get(key)
            if held is None:
                continue
            deadline, payload = held
            if deadline > now_ms:
                self._arm(key, deadline)
                continue
            del self._deadlines[key]
            return key, payload
        return None

    def clear(self) -> None:
        self._deadlines.clear()
        self._armed.clear()
        self._heap.clear()
