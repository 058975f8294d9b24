"""Which software of clients has metrics of its own: so many at a time, those with the most connections first.

A name makes room when nobody has used it for a day. So clients that call themselves something else each time they come
make a few series a day, not one each: who stores metrics keeps all that there ever were.
"""

from __future__ import annotations

from collections import Counter

COUNT_MAX = 20
KEPT_MS = 24 * 3_600 * 1_000

# Name and version.
Software = tuple[str, str]


class NamedSoftware:
    def __init__(self) -> None:
        # When each was last connected.
        self._seen_ms: dict[Software, int] = {}

    def look(self, connected: Counter[Software], now_ms: int) -> None:
        """What is connected now, and how often."""
        seen_ms = self._seen_ms
        for software, then_ms in list(seen_ms.items()):
            if software in connected:
                seen_ms[software] = now_ms
            elif now_ms - then_ms >= KEPT_MS:
                del seen_ms[software]
        for software, _ in connected.most_common():
            if len(seen_ms) >= COUNT_MAX:
                return
            seen_ms.setdefault(software, now_ms)

    def __contains__(self, software: Software) -> bool:
        return software in self._seen_ms
