"""Between a listener and the router: counts requests, and logs those that somebody wants to see.

It costs about half a microsecond for a request that is answered at once, which is what most of this file is about. It
wraps no answer: those that are promised are seen through `connection.on_answer` (`server/connection.py` says why).
"""

from __future__ import annotations

from collections.abc import Awaitable
from time import perf_counter
from typing import TYPE_CHECKING

from ottla.broker.apis import APIS
from ottla.broker.observing.request_log import RequestLog, Seen
from ottla.broker.observing.request_stats import FOLD, RequestStats
from ottla.broker.observing.stages import OBSERVED

if TYPE_CHECKING:
    from ottla.broker.router import Router
    from ottla.server.connection import Answer, Connection

_KEYS = 256
_VERSION_MAX = 31
_NO_API = "Unknown"


class RequestObserver:
    def __init__(self) -> None:
        # By the low byte of the key: there is none above 255. One that is not served is counted with all such.
        unknown = RequestStats()
        self._by_key = [unknown] * _KEYS
        self.by_api: dict[str, RequestStats] = {_NO_API: unknown}
        for key, api in APIS.items():
            self._by_key[key] = self.by_api[api.name] = RequestStats()
        # None while nothing is to be logged.
        self.log: RequestLog | None = None

    def handle(self, router: Router, connection: Connection, frame: memoryview) -> Answer | Awaitable[Answer]:
        began = perf_counter()
        poller = connection.listener.poller
        ready = poller.turn_began if poller.in_turn else began
        # Looked at now: afterwards the frame may be somebody else's.
        key, version, size = frame[1], frame[3], len(frame)
        watching = self.log
        seen = None if watching is None else watching.look_at(connection, frame)
        answer = router.handle(connection, frame, OBSERVED)
        ended = perf_counter()
        stats = self._by_key[key]
        stats.versions[version & _VERSION_MAX] += 1
        stats.request_bytes += size
        if type(answer) is bytes:
            stats.response_bytes += len(answer)
        elif answer is None:
            pass
        elif isinstance(answer, (list, bytearray)):
            stats.response_bytes += _size(answer)
        else:
            self._await_answer(connection, stats, seen, ready, began, ended)
            return answer
        totals = stats.total_at_once
        totals.append(ended - ready)
        stats.local_at_once.append(ended - began)
        if len(totals) >= FOLD:
            stats.fold()
        if seen is not None and watching is not None:
            watching.tell(seen, connection, began - ready, ended - began, 0.0, _size(answer))
        return answer

    def _await_answer(
        self,
        connection: Connection,
        stats: RequestStats,
        seen: Seen | None,
        ready: float,
        began: float,
        promised: float,
    ) -> None:
        """The answer is somebody's promise. Whoever else has a say in it (quotas) has it first."""
        settle = connection.on_answer
        watching = self.log

        def answered(answer: Answer) -> Answer:
            remote_s = perf_counter() - promised
            if settle is not None:
                answer = settle(answer)
            size = _size(answer)
            stats.response_bytes += size
            stats.answered_later(began - ready, promised - began, remote_s)
            if seen is not None and watching is not None:
                watching.tell(seen, connection, began - ready, promised - began, remote_s, size)
            return answer

        connection.on_answer = answered

    # --- what others tell

    def throttled(self, key: int, wait_ms: float) -> None:
        self._by_key[key & 0xFF].throttle.add(wait_ms)

    def sent(self, key: int, seconds: float) -> None:
        """An answer that its client's socket did not take at once has left."""
        self._by_key[key & 0xFF].send.add(seconds * 1_000)

    def failed(self, key: int, code: int) -> None:
        self._by_key[key & 0xFF].failed(code)


def _size(answer: Answer) -> int:
    if answer is None:
        return 0
    if isinstance(answer, list):
        return sum(part.size if hasattr(part, "size") else len(part) for part in answer)
    return len(answer)
