"""Threads that take turns with the event loop: always exactly one of all of them runs.

Work that is handed to an executor begins after a moment that the seed decides, in a real thread, while the loop stands
still. When it has to wait (for the store) it hands the turn back and goes on when the loop says so. So blocking code
runs as it is, and other things happen between two of its calls, and yet the same seed gives the same run. Where the
package `greenlet` is installed its coroutines take the place of threads: that is faster, and the run is the same.
"""

from __future__ import annotations

import asyncio
import importlib
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextvars import copy_context
from random import Random
from typing import TYPE_CHECKING, Any, Protocol

try:
    greenlet: Any = importlib.import_module("greenlet")
except ImportError:
    greenlet = None

if TYPE_CHECKING:
    from ottla.testing.simulation.loop import SimulatedLoop

FLUSHES = "ottla-flush"


class RunIsOver(BaseException):
    """Whoever still waits when the run ends is woken with this."""


class _Worker(Protocol):
    """Does one piece of work after the other; always either it runs, or whoever has called it."""

    is_over: bool

    def start(self, work: Callable[[], None]) -> None:
        """Until it waits, or ends."""

    def go_on(self) -> None:
        """The same, after `hand_back`."""

    def hand_back(self) -> None:
        """In the work itself: the others' turn, until `go_on`. Raises RunIsOver."""

    def end(self) -> None:
        """Whatever it does."""


class _Thread:
    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._done = threading.Lock()
        self._turn.acquire()
        self._done.acquire()
        self._work: Callable[[], None] | None = None
        self.is_over = False
        # While it waits in `hand_back`.
        self._is_waiting = False
        threading.Thread(target=self._serve, name="simulated", daemon=True).start()

    def _serve(self) -> None:
        while True:
            self._turn.acquire()
            if self._work is None:
                return
            self._work()
            self._done.release()

    def start(self, work: Callable[[], None]) -> None:
        self._work = work
        self.go_on()

    def go_on(self) -> None:
        self._turn.release()
        self._done.acquire()

    def hand_back(self) -> None:
        self._is_waiting = True
        self._done.release()
        self._turn.acquire()
        self._is_waiting = False
        if self.is_over:
            raise RunIsOver

    def end(self) -> None:
        self.is_over = True
        if self._is_waiting:
            self.go_on()
        self._work = None
        self._turn.release()


class _Greenlet:
    """The same without the kernel, which takes a fifth of a run's time for it, and far more on a busy machine."""

    def __init__(self) -> None:
        self.is_over = False
        self._own: Any = None

    def start(self, work: Callable[[], None]) -> None:
        self._own = greenlet.greenlet(work)
        self.go_on()

    def go_on(self) -> None:
        # As in a thread, no loop runs here.
        loop = asyncio._get_running_loop()
        asyncio._set_running_loop(None)
        self._own.parent = greenlet.getcurrent()
        try:
            self._own.switch()
        finally:
            asyncio._set_running_loop(loop)

    def hand_back(self) -> None:
        self._own.parent.switch()
        if self.is_over:
            raise RunIsOver

    def end(self) -> None:
        self.is_over = True
        if self._own is not None and not self._own.dead:
            self.go_on()


def _make_worker() -> _Worker:
    return _Thread() if greenlet is None else _Greenlet()


class SimulatedThreads:
    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop
        self._idle: list[_Worker] = []
        self._all: list[_Worker] = []
        self._current: _Worker | None = None
        # Until work begins, and until its outcome is seen.
        self.delay_s: Callable[[], float] = lambda: 0.0

    @property
    def is_in_thread(self) -> bool:
        return self._current is not None

    def run(self, work: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = self._loop.create_future()
        self._loop.call_later(self.delay_s(), self._begin, work, arguments, future)
        return future

    def _begin(self, work: Callable[..., Any], arguments: tuple[Any, ...], future: asyncio.Future[Any]) -> None:
        def finish(outcome: Any, error: BaseException | None) -> None:
            if future.cancelled():
                return
            if error is None:
                future.set_result(outcome)
            else:
                future.set_exception(error)

        def run() -> None:
            outcome: Any = None
            error: BaseException | None = None
            try:
                outcome = work(*arguments)
            except RunIsOver:
                return
            except BaseException as raised:
                error = raised
            self._loop.call_later(self.delay_s(), finish, outcome, error)

        self.start(run)

    def start(self, work: Callable[[], None]) -> None:
        """Now, in a thread, in the context of whoever asks."""
        worker = self._idle.pop() if self._idle else self._new()
        context = copy_context()

        def run() -> None:
            try:
                context.run(work)
            except RunIsOver:
                pass
            finally:
                self._idle.append(worker)

        self._turn_of(worker, lambda: worker.start(run))

    def _new(self) -> _Worker:
        worker = _make_worker()
        self._all.append(worker)
        return worker

    def _turn_of(self, worker: _Worker, turn: Callable[[], None]) -> None:
        before, self._current = self._current, worker
        try:
            turn()
        finally:
            self._current = before

    def wait(self, begin: Callable[[Callable[[], None]], None]) -> None:
        """In a simulated thread: `begin` is given what ends the wait, to be called on the loop."""
        worker = self._current
        assert worker is not None, "only a simulated thread can wait"
        begin(lambda: self._turn_of(worker, worker.go_on))
        worker.hand_back()

    def close(self) -> None:
        for worker in self._all:
            worker.end()


class DelayedWork(Executor):
    """The flusher's threads: each job is done at once when its moment has come, and others may come before it."""

    def __init__(self, loop: SimulatedLoop, delay_s: Callable[[], float]) -> None:
        self._loop = loop
        self._delay_s = delay_s
        self._waiting: deque[Callable[[], None]] = deque()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def work() -> None:
            _do(future, fn, args, kwargs)

        self._waiting.append(work)
        self._loop.call_later(self._delay_s(), self._do_one, work)
        return future

    def _do_one(self, work: Callable[[], None]) -> None:
        if work in self._waiting:
            self._waiting.remove(work)
            work()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        while self._waiting:
            self._waiting.popleft()()


class ImmediateWork(Executor):
    """For what its owner may wait for on the loop: checkpoints, deletions."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        _do(future, fn, args, kwargs)
        return future


def _do(future: Future[Any], work: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    try:
        result = work(*args, **kwargs)
    except Exception as error:
        future.set_exception(error)
    else:
        future.set_result(result)


def some_delay(rng: Random, usual_s: float, rare_s: float) -> float:
    """Mostly about as long as usual, now and then much longer."""
    longest = rare_s if rng.random() < 0.03 else usual_s
    return rng.random() * longest
