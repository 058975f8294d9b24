"""When Python looks for dead objects that hold one another: all of them only while there is little to do.

Nearly everything that a broker makes dies without such a search. A full one looks at all that is alive, which takes a
tenth of a second with ten thousand partitions, and nobody is served meanwhile. Python would begin one whenever a large
request has made many objects: just when others wait already. So the young ones are searched as always, and the rest in
a quiet moment, or when very many have come to stay.
"""

from __future__ import annotations

import gc
import time

CHECK_MS = 5_000
# Searches of the younger ones until Python begins a full one itself; its own rule is ten.
_FULL_AFTER = 5_000
_PAUSE_S = 600.0
_IDLE_SHARE = 0.1


class GarbageCollector:
    def __init__(self) -> None:
        """What is there now stays: no search looks at it again."""
        gc.collect()
        gc.freeze()
        young, middle, _ = gc.get_threshold()
        gc.set_threshold(young, middle, _FULL_AFTER)
        self._full_at = time.monotonic()
        self._looked = time.monotonic(), time.process_time()

    def check(self) -> None:
        """Call it every CHECK_MS."""
        now, worked = time.monotonic(), time.process_time()
        before, worked_before = self._looked
        self._looked = now, worked
        is_idle = worked - worked_before < _IDLE_SHARE * (now - before)
        if is_idle and now - self._full_at >= _PAUSE_S and gc.get_count()[2] > 0:
            gc.collect()
            self._full_at = now
