"""What is counted of the requests of one API. Most of this is on the way of every request, so little is done for each.

A request that is answered at once leaves five numbers in a list, and no object that the garbage collector would look
at. Every few hundred requests are counted together, where slices, sums and sorting are done in C.

Where the time of a request goes, in Kafka's words:
- queue: from when the poller saw its socket ready until it is handled, so behind others of the same turn of the loop;
- local: reading the request, and the handler until it has an answer, or a promise of one;
- remote: from the promise to the answer, as for replicas, records or other members;
- throttle: how long its client is left alone afterwards for its quotas;
- send: what the client took to read the answer, if its socket did not take it at once.
"""

from __future__ import annotations

from ottla.exposition.histogram import Histogram

# Of a request that was answered at once: its time in all, the local part of it, the sizes of request and answer, the
# version.
_NUMBERS = 5
PENDING_MAX = 512 * _NUMBERS
# Of how many requests that were answered at once one says in which bucket its time in the queue and its local time are.
_SAMPLED = 16
_VERSIONS = 32


class RequestStats:
    __slots__ = (
        "errors",
        "local",
        "pending",
        "queue",
        "remote",
        "request_bytes",
        "response_bytes",
        "send",
        "throttle",
        "total",
        "versions",
    )

    def __init__(self) -> None:
        self.versions = [0] * _VERSIONS
        self.request_bytes = 0
        self.response_bytes = 0
        self.errors: dict[int, int] = {}
        # Of the requests that were answered at once, one behind the other.
        self.pending: list[float] = []
        # All times are in seconds.
        self.total, self.queue, self.local = Histogram(), Histogram(), Histogram()
        # Those without any of it are not in them.
        self.remote, self.throttle, self.send = Histogram(), Histogram(), Histogram()

    def fold(self) -> None:
        """Count what was answered at once."""
        pending, self.pending = self.pending, []
        if not pending:
            return
        totals, locals_, sizes, answers, versions = (pending[place::_NUMBERS] for place in range(_NUMBERS))
        self.request_bytes += int(sum(sizes))
        self.response_bytes += int(sum(answers))
        for version in set(versions):
            self.versions[int(version) % _VERSIONS] += versions.count(version)
        count = len(totals)
        for place in range(0, count, _SAMPLED):
            times = min(_SAMPLED, count - place)
            self.queue.count_only(totals[place] - locals_[place], times)
            self.local.count_only(locals_[place], times)
        local_s = sum(locals_)
        self.local.sum += local_s
        self.queue.sum += sum(totals) - local_s
        totals.sort()
        self.total.add_all(totals)

    def answered_later(self, queue_s: float, local_s: float, remote_s: float, answer_size: int) -> None:
        self.queue.add(queue_s)
        self.local.add(local_s)
        self.remote.add(remote_s)
        self.total.add(queue_s + local_s + remote_s)
        self.response_bytes += answer_size

    def arrived(self, size: int, version: int) -> None:
        """One that is answered later."""
        self.request_bytes += size
        self.versions[version % _VERSIONS] += 1

    def failed(self, code: int) -> None:
        self.errors[code] = self.errors.get(code, 0) + 1

    @property
    def count(self) -> int:
        return sum(self.versions)
