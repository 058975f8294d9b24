"""Times and sizes of requests, counted with as little as can be: a broker does this for each of its requests, and a
small one takes some fifteen microseconds altogether.

`Times` is what is counted of the requests of one kind; `Run` collects those that are handled one behind the other in
one turn of a poller, asks the clock once for all of them, and counts them when the turn is over. Each request of a run
has its share of the run's local time, and took until the run was over, since the answers leave together at the end of
the turn; what is not its share is the time in the queue.

The compiled one (`request_runs.pyx`) does it in a fifth of the time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

# Versions of an API that are told apart.
VERSIONS = 32


class Times:
    def __init__(self, bounds: Sequence[float]) -> None:
        """`bounds` are those of the buckets, in seconds."""
        self._bounds = tuple(bounds)
        self._clear()

    def _clear(self) -> None:
        buckets = len(self._bounds) + 1
        self._versions = [0] * VERSIONS
        self._request_bytes = self._answer_bytes = 0
        self._total, self._queue, self._local = [0] * buckets, [0] * buckets, [0] * buckets
        self._total_s = self._queue_s = self._local_s = 0.0

    def add(self, queue_s: float, local_s: float, request_bytes: int, answer_bytes: int, version: int) -> None:
        """One request by itself."""
        self._versions[version % VERSIONS] += 1
        self._add_times(queue_s + local_s, local_s, 1)
        self._add_sizes(request_bytes, answer_bytes)

    def _add_times(self, total_s: float, local_s: float, count: int) -> None:
        """`count` requests, each of which took so long; the local time is that of all of them."""
        share_s = local_s / count
        self._total[bisect_left(self._bounds, total_s)] += count
        self._queue[bisect_left(self._bounds, total_s - share_s)] += count
        self._local[bisect_left(self._bounds, share_s)] += count
        self._total_s += total_s * count
        self._queue_s += total_s * count - local_s
        self._local_s += local_s

    def _add_sizes(self, request_bytes: int, answer_bytes: int) -> None:
        self._request_bytes += request_bytes
        self._answer_bytes += answer_bytes

    def take(self) -> Taken:
        """What was counted since this was asked before."""
        taken = Taken(
            self._versions,
            self._request_bytes,
            self._answer_bytes,
            (self._total, self._total_s),
            (self._queue, self._queue_s),
            (self._local, self._local_s),
        )
        self._clear()
        return taken


class Taken(NamedTuple):
    """Requests by version, bytes, and of the times in seconds how many are in each bucket, and their sum."""

    versions: list[int]
    request_bytes: int
    answer_bytes: int
    total: tuple[list[int], float]
    queue: tuple[list[int], float]
    local: tuple[list[int], float]


class Run:
    def __init__(self, times: Times, clock: Callable[[], float]) -> None:
        # When the last request was done with; whoever measures others sets it, too.
        self.last = 0.0
        self._times = times
        self._clock = clock
        # When the turn and the run began.
        self._ready = self._began = 0.0
        self._count = self._request_bytes = self._answer_bytes = 0

    def note(self, connection: Any, frame: memoryview, answer: bytes) -> None:
        """A request of the connection whose poller is in its turn, and its answer. The first of a run began when what
        was before it was done with."""
        if not self._count:
            self._begin(connection.poller)
            connection.poller.holding.append(self)
        self._count += 1
        self._request_bytes += len(frame)
        self._answer_bytes += len(answer)
        self._times._versions[frame[3] % VERSIONS] += 1

    def _begin(self, poller: Any) -> None:
        self._ready = poller.turn_began
        self._began = max(self.last, self._ready)

    def promised(self, connection: Any, frame: memoryview) -> tuple[float, float, float]:
        """A request whose answer comes later: it has its share of the run, which ends with it. Gives its time in the
        queue and its local time, and when that was; its size and version are counted."""
        if not self._count:
            self._begin(connection.poller)
        self.last = ended = self._clock()
        local_s = (ended - self._began) / (self._count + 1)
        self._began += local_s
        self._times._versions[frame[3] % VERSIONS] += 1
        self._times._add_sizes(len(frame), 0)
        self._end(ended)
        return ended - self._ready - local_s, local_s, ended

    def end(self) -> None:
        """Something else comes."""
        if self._count:
            self.last = ended = self._clock()
            self._end(ended)

    def release_held(self) -> None:
        """The turn is over (`server/poller.py` `Holder`)."""
        self.end()

    def _end(self, ended: float) -> None:
        if self._count:
            self._times._add_times(ended - self._ready, ended - self._began, self._count)
            self._times._add_sizes(self._request_bytes, self._answer_bytes)
        self._count = self._request_bytes = self._answer_bytes = 0
