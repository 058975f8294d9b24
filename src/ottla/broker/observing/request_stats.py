"""What is counted of the requests of one API. Most of this is on the way of every request, so little is done for each.

Requests of a run (`request_observer.py` says what that is) leave six numbers in a list, and no object that the garbage
collector would look at. Every few hundred runs are counted together.

Where the time of a request goes, in Kafka's words:
- queue: from when the poller saw its socket ready until its run was over, without what the broker did for it: others
  of the same turn of the loop came before it, or its answer waited for them;
- local: reading the request, and the handler until it has an answer, or a promise of one;
- remote: from the promise to the answer, as for replicas, records or other members;
- throttle: how long its client is left alone afterwards for its quotas;
- send: what the client took to read the answer, if its socket did not take it at once.
"""

from __future__ import annotations

from operator import mul
from typing import Any

from ottla.exposition.histogram import Histogram

# Of a run: the time in all of each of its requests, the local time of all together, how many they are, the sizes of
# requests and answers, the version.
_NUMBERS = 6
PENDING_MAX = 512 * _NUMBERS
# Of how many runs one says in which bucket the time in the queue and the local time of all their requests are.
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
        # Of the runs, one behind the other.
        self.pending: list[Any] = []
        # All times are in seconds.
        self.total, self.queue, self.local = Histogram(), Histogram(), Histogram()
        # Those without any of it are not in them.
        self.remote, self.throttle, self.send = Histogram(), Histogram(), Histogram()

    def fold(self) -> None:
        """Count what was answered at once."""
        pending, self.pending = self.pending, []
        if not pending:
            return
        totals, locals_, counts, sizes, answers, versions = (pending[place::_NUMBERS] for place in range(_NUMBERS))
        self.request_bytes += sum(sizes)
        self.response_bytes += sum(answers)
        requests = sum(counts)
        if versions.count(versions[0]) == len(versions):
            self.versions[versions[0] % _VERSIONS] += requests
        else:
            for version, count in zip(versions, counts, strict=True):
                self.versions[version % _VERSIONS] += count
        for place in range(0, len(counts), _SAMPLED):
            local_s = locals_[place] / counts[place]
            times = sum(counts[place : place + _SAMPLED])
            self.queue.count_only(totals[place] - local_s, times)
            self.local.count_only(local_s, times)
        local_s = sum(locals_)
        self.local.sum += local_s
        self.queue.sum += sum(map(mul, totals, counts)) - local_s
        if requests == len(counts):
            totals.sort()
            self.total.add_all(totals)
        else:
            self.total.add_each(totals, counts)

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
