"""Between a listener and the router: counts requests, and logs those that somebody wants to see. Requests come from a
listener directly, or where a login comes before from the router, and go (back) to the router.

A producer's requests that are like those before them (`router.py` `known_frame`), one behind the other in one
turn of the poller, are a *run* (`kernel/request_runs_pure.py` says what that means), and are handled right here: a call
less for each. All others, and every one while requests are logged, are measured one by one.

It wraps no answer: those that are promised are seen through `connection.on_answer` (`server/client_end.py` `Answer`
says why).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import TYPE_CHECKING

from ottla.broker.apis import APIS
from ottla.broker.observing.request_log import RequestLog, Seen
from ottla.broker.observing.request_stats import RequestStats
from ottla.broker.observing.stages import OBSERVED
from ottla.kernel.request_runs import Run

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.router import Router
    from ottla.server.client_end import Answer
    from ottla.server.connection import Connection

_KEYS = 256
_PRODUCE = 0
_NO_API = "Unknown"

Handle = Callable[["Connection", memoryview], "Answer | Awaitable[Answer]"]


class RequestObserver:
    def __init__(self, broker: Broker, router: Router) -> None:
        # By the low byte of the key: there is none above 255. One that is not served is counted with all such.
        unknown = RequestStats()
        self._by_key = [unknown] * _KEYS
        self.by_api: dict[str, RequestStats] = {_NO_API: unknown}
        for key, api in APIS.items():
            self._by_key[key] = self.by_api[api.name] = RequestStats()
        self._broker = broker
        self._router = router
        self._run = Run(self._by_key[_PRODUCE].times, perf_counter)
        self.set_log(None)

    def set_log(self, log: RequestLog | None) -> None:
        """None: nothing is to be logged."""
        # For listeners, in the place of the router's `handle`.
        self.handle: Handle = self._in_runs() if log is None else self._one_by_one(log)

    def _in_runs(self) -> Handle:
        """One function whose variables are its own: most of a broker's requests go through it, and each step of it is
        felt."""
        broker, router, one, stats = self._broker, self._router, self._one_by_one(None), self._by_key[_PRODUCE]
        note, end, promised = self._run.note, self._run.end, self._run.promised

        def counted(connection: Connection, frame: memoryview) -> Answer | Awaitable[Answer]:
            cached = connection.context
            if (
                cached is None
                or not cached[1].produce_prefix_end
                or broker.throttling is not None
                or not connection.poller.in_turn
            ):
                end()
                return one(connection, frame)
            try:
                answer = router.known_frame(broker, cached[1], frame)
            except Exception as error:
                router.give_up(connection, error)
                note(connection, frame, b"")
                return None
            if type(answer) is bytes:
                connection.observed = stats
                note(connection, frame, answer)
                return answer
            if answer is None:
                end()
                return one(connection, frame)
            connection.observed = stats
            self._await_answer(connection, stats, None, None, *promised(connection, frame))
            return answer

        return counted

    def _one_by_one(self, log: RequestLog | None) -> Handle:
        handle, by_key, run = self._router.handle, self._by_key, self._run

        def measured(connection: Connection, frame: memoryview) -> Answer | Awaitable[Answer]:
            poller = connection.poller
            if poller.in_turn:
                # What is served first in a turn begins with it, the next when that is done: one look at the clock less.
                ready = poller.turn_began
                began = run.last if run.last > ready else ready
            else:
                ready = began = perf_counter()
            stats = connection.observed = by_key[frame[1]]
            version, size = frame[3], len(frame)
            seen = None if log is None else log.look_at(connection, frame)
            answer = handle(connection, frame, OBSERVED)
            run.last = ended = perf_counter()
            if type(answer) is bytes:
                answer_size = len(answer)
            elif answer is None or isinstance(answer, (list, bytearray)):
                answer_size = _size(answer)
            else:
                stats.arrived(size, version)
                self._await_answer(connection, stats, log, seen, began - ready, ended - began, ended)
                return answer
            stats.times.add(began - ready, ended - began, size, answer_size, version)
            if seen is not None and log is not None:
                log.tell(seen, connection, began - ready, ended - began, 0.0, answer_size)
            return answer

        return measured

    def _await_answer(
        self,
        connection: Connection,
        stats: RequestStats,
        log: RequestLog | None,
        seen: Seen | None,
        queue_s: float,
        local_s: float,
        promised: float,
    ) -> None:
        """The answer is somebody's promise. Whoever else has a say in it (quotas) has it first."""
        settle = connection.on_answer

        def answered(answer: Answer) -> Answer:
            remote_s = perf_counter() - promised
            if settle is not None:
                answer = settle(answer)
            size = _size(answer)
            stats.answered_later(queue_s, local_s, remote_s, size)
            if seen is not None and log is not None:
                log.tell(seen, connection, queue_s, local_s, remote_s, size)
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
