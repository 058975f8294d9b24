"""What is counted of the requests of one API. Plain integers and lists: most of this is on the way of every request.

Where the time of a request goes, in Kafka's words:
- queue: from when the poller saw its socket ready until it is handled, so behind others of the same turn of the loop;
- local: the handler, until it has an answer, or a promise of one;
- remote: from the promise to the answer, as for replicas, records or other members;
- throttle: how long its client is left alone afterwards for its quotas;
- send: what the client took to read the answer, if its socket did not take it at once.
"""

from __future__ import annotations

from ottla.exposition.histogram import Histogram

# Answers that were made at once are sorted into buckets so many at a time.
FOLD = 512
# Of how many such requests one is asked how long it was in the queue.
_QUEUE_SAMPLED = 16
_VERSIONS = 32
_MS = 1_000.0


class RequestStats:
    __slots__ = (
        "errors",
        "local",
        "local_at_once",
        "queue",
        "remote",
        "request_bytes",
        "response_bytes",
        "send",
        "throttle",
        "total",
        "total_at_once",
        "versions",
    )

    def __init__(self) -> None:
        self.versions = [0] * _VERSIONS
        self.request_bytes = 0
        self.response_bytes = 0
        self.errors: dict[int, int] = {}
        # In seconds, not in a histogram yet.
        self.total_at_once: list[float] = []
        self.local_at_once: list[float] = []
        # In milliseconds, as Kafka has them.
        self.total, self.queue, self.local = Histogram(), Histogram(), Histogram()
        # Those without any of it are not in them.
        self.remote, self.throttle, self.send = Histogram(), Histogram(), Histogram()

    def fold(self) -> None:
        """What was answered at once, into the histograms."""
        totals, locals_ = self.total_at_once, self.local_at_once
        if not totals:
            return
        self.total_at_once, self.local_at_once = [], []
        count = len(totals)
        for place in range(0, count, _QUEUE_SAMPLED):
            self.queue.add((totals[place] - locals_[place]) * _MS, min(_QUEUE_SAMPLED, count - place))
        self.total.add_all([value * _MS for value in totals])
        self.local.add_all([value * _MS for value in locals_])

    def answered_later(self, queue_s: float, local_s: float, remote_s: float) -> None:
        self.queue.add(queue_s * _MS)
        self.local.add(local_s * _MS)
        self.remote.add(remote_s * _MS)
        self.total.add((queue_s + local_s + remote_s) * _MS)

    def failed(self, code: int) -> None:
        self.errors[code] = self.errors.get(code, 0) + 1

    @property
    def count(self) -> int:
        return sum(self.versions)
