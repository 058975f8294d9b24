"""Who waits for new records of a partition, whether it is led here or followed: Kafka's purgatory of fetches, which
here is with the partition. Followers wait elsewhere (`replica_sessions.py`), producers in `Partition.when_committed`.
"""

from __future__ import annotations

from collections.abc import Callable

# Called with how many more bytes can be read; EVERYTHING when whoever waits must look again whatever it waits for.
Watcher = Callable[[int], None]
EVERYTHING = 1 << 62


class Readers:
    __slots__ = ("_watchers",)

    def __init__(self) -> None:
        # A dict for its order, and because thousands may wait here and all leave at once.
        self._watchers: dict[Watcher, None] = {}

    def watch(self, callback: Watcher) -> None:
        self._watchers[callback] = None

    def unwatch(self, callback: Watcher) -> None:
        self._watchers.pop(callback, None)

    def notify(self, size: int = EVERYTHING) -> None:
        for callback in tuple(self._watchers):
            callback(size)
