"""Between a listener and the router: counts requests, and logs those that somebody wants to see. Requests come from a
listener directly, or where a login comes before from the router, and go (back) to the router.

It costs about half a microsecond for a request that is answered at once, which is why `observed` is one function whose
variables are its own. It wraps no answer: those that are promised are seen through `connection.on_answer`
(`server/client_end.py` `Answer` says why).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import TYPE_CHECKING

from ottla.broker.apis import APIS
from ottla.broker.observing.request_log import RequestLog, Seen
from ottla.broker.observing.request_stats import PENDING_MAX, RequestStats
from ottla.broker.observing.stages import OBSERVED

if TYPE_CHECKING:
    from ottla.broker.router import Router
    from ottla.server.client_end import Answer
    from ottla.server.connection import Connection

_KEYS = 256
_NO_API = "Unknown"

Handle = Callable[["Connection", memoryview], "Answer | Awaitable[Answer]"]


class RequestObserver:
    def __init__(self, router: Router) -> None:
        # By the low byte of the key: there is none above 255. One that is not served is counted with all such.
        unknown = RequestStats()
        self._by_key = [unknown] * _KEYS
        self.by_api: dict[str, RequestStats] = {_NO_API: unknown}
        for key, api in APIS.items():
            self._by_key[key] = self.by_api[api.name] = RequestStats()
        self._router = router
        self.set_log(None)

    def set_log(self, log: RequestLog | None) -> None:
        """None: nothing is to be logged."""
        # For listeners, in the place of the router's `handle`.
        self.handle: Handle = self._observed(self._router.handle, log)

    def _observed(
        self, handle: Callable[[Connection, memoryview, int], Answer | Awaitable[Answer]], log: RequestLog | None
    ) -> Handle:
        by_key, last = self._by_key, 0.0

        def observed(connection: Connection, frame: memoryview) -> Answer | Awaitable[Answer]:
            nonlocal last
            poller = connection.poller
            if poller.in_turn:
                # What is served first in a turn begins with it, the next when that is done: one look at the clock less.
                ready = poller.turn_began
                began = last if last > ready else ready
            else:
                ready = began = perf_counter()
            # Looked at now: afterwards the frame may be somebody else's.
            stats = connection.observed = by_key[frame[1]]
            version, size = frame[3], len(frame)
            seen = None if log is None else log.look_at(connection, frame)
            answer = handle(connection, frame, OBSERVED)
            last = ended = perf_counter()
            if type(answer) is bytes:
                answer_size = len(answer)
            elif answer is None or isinstance(answer, (list, bytearray)):
                answer_size = _size(answer)
            else:
                stats.arrived(size, version)
                self._await_answer(connection, stats, log, seen, ready, began, ended)
                return answer
            pending = stats.pending
            pending += (ended - ready, ended - began, size, answer_size, version)
            if len(pending) >= PENDING_MAX:
                stats.fold()
            if seen is not None and log is not None:
                log.tell(seen, connection, began - ready, ended - began, 0.0, answer_size)
            return answer

        return observed

    def _await_answer(
        self,
        connection: Connection,
        stats: RequestStats,
        log: RequestLog | None,
        seen: Seen | None,
        ready: float,
        began: float,
        promised: float,
    ) -> None:
        """The answer is somebody's promise. Whoever else has a say in it (quotas) has it first."""
        settle = connection.on_answer

        def answered(answer: Answer) -> Answer:
            remote_s = perf_counter() - promised
            if settle is not None:
                answer = settle(answer)
            size = _size(answer)
            stats.answered_later(began - ready, promised - began, remote_s, size)
            if seen is not None and log is not None:
                log.tell(seen, connection, began - ready, promised - began, remote_s, size)
            return answer

        connection.on_answer = answered

    # --- what others tell

    def throttled(self, key: int, wait_ms: float) -> None:
        self._by_key[key & 0xFF].throttle.add(wait_ms / 1_000)

    def failed(self, key: int, code: int) -> None:
        self._by_key[key & 0xFF].failed(code)


def _size(answer: Answer) -> int:
    if answer is None:
        return 0
    if isinstance(answer, list):
        return sum(len(part) if isinstance(part, (bytes, bytearray, memoryview)) else part.size for part in answer)
    return len(answer)
