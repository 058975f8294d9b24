"""What is counted of the requests of one API.

Where the time of a request goes, in Kafka's words:
- queue: from when the poller saw its socket ready until its run was over, without what the broker did for it: others
  of the same turn of the loop came before it, or its answer waited for them;
- local: reading the request, and the handler until it has an answer, or a promise of one;
- remote: from the promise to the answer, as for replicas, records or other members;
- throttle: how long its client is left alone afterwards for its quotas;
- send: what the client took to read the answer, if its socket did not take it at once.
"""

from __future__ import annotations

from ottla.exposition.histogram import TIME_BOUNDS_S, Histogram
from ottla.kernel.request_runs import VERSIONS, Times


class RequestStats:
    __slots__ = (
        "errors",
        "local",
        "queue",
        "remote",
        "request_bytes",
        "response_bytes",
        "send",
        "throttle",
        "times",
        "total",
        "versions",
    )

    def __init__(self) -> None:
        self.versions = [0] * VERSIONS
        self.request_bytes = 0
        self.response_bytes = 0
        self.errors: dict[int, int] = {}
        # Those that were answered at once and that `fold` has not seen.
        self.times = Times(TIME_BOUNDS_S)
        # All times are in seconds.
        self.total, self.queue, self.local = Histogram(), Histogram(), Histogram()
        # Those without any of it are not in them.
        self.remote, self.throttle, self.send = Histogram(), Histogram(), Histogram()

    def fold(self) -> None:
        """Count what was answered at once with the others. Call it before anything is read."""
        taken = self.times.take()
        self.versions = [had + new for had, new in zip(self.versions, taken.versions, strict=True)]
        self.request_bytes += taken.request_bytes
        self.response_bytes += taken.answer_bytes
        for histogram, counted in ((self.total, taken.total), (self.queue, taken.queue), (self.local, taken.local)):
            histogram.merge(*counted)

    def answered_later(self, queue_s: float, local_s: float, remote_s: float, answer_size: int) -> None:
        self.queue.add(queue_s)
        self.local.add(local_s)
        self.remote.add(remote_s)
        self.total.add(queue_s + local_s + remote_s)
        self.response_bytes += answer_size

    def arrived(self, size: int, version: int) -> None:
        """One that is answered later."""
        self.request_bytes += size
        self.versions[version % VERSIONS] += 1

    def failed(self, code: int) -> None:
        self.errors[code] = self.errors.get(code, 0) + 1

    @property
    def count(self) -> int:
        return sum(self.versions)
