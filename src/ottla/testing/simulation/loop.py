"""An event loop on simulated time: when nothing is ready, the clock jumps to the next timer.

Everything that happens belongs to a process or to nobody. Which one is in the context that asyncio keeps with every
callback and task: what a broker starts, and what that starts in turn, has the broker's. So a process is paused by
holding its callbacks back, and killed by never running them again: nothing of it is told, no `finally` runs.
"""

from __future__ import annotations

import asyncio
import heapq
import socket
from asyncio import Handle
from collections.abc import Awaitable, Callable
from contextvars import Context, ContextVar, copy_context
from enum import Enum
from typing import Any

from ottla.testing.simulation.threads import SimulatedThreads

# Twenty times as many as a usual run has.
_EVENTS_MAX = 300_000

_PROCESS: ContextVar[Process | None] = ContextVar("process", default=None)


class State(Enum):
    RUNNING = "running"
    PAUSED = "paused"
    DEAD = "dead"


class Process:
    """What can be paused and killed as one. A restart makes a new one."""

    def __init__(self, loop: SimulatedLoop, name: str) -> None:
        self.loop = loop
        self.name = name
        self.state = State.RUNNING
        self._held: list[Handle] = []
        self._context = copy_context()
        self._context.run(_PROCESS.set, self)
        # Called after each event of it: what must hold is looked at.
        self.after_event: Callable[[], None] | None = None
        # Called, in the name of nobody, when it is killed.
        self.on_death: list[Callable[[], None]] = []

    def context(self) -> Context:
        """For one callback or task."""
        return self._context.copy()

    def call_soon(self, callback: Callable[..., object], *arguments: Any) -> None:
        self.loop.call_soon(callback, *arguments, context=self.context())

    def call_later(self, delay_s: float, callback: Callable[..., object], *arguments: Any) -> asyncio.TimerHandle:
        return self.loop.call_later(delay_s, callback, *arguments, context=self.context())

    def call_at(self, when_s: float, callback: Callable[..., object], *arguments: Any) -> asyncio.TimerHandle:
        return self.loop.call_at(when_s, callback, *arguments, context=self.context())

    @property
    def is_dead(self) -> bool:
        return self.state is State.DEAD

    @property
    def is_running(self) -> bool:
        return self.state is State.RUNNING

    def hold(self, handle: Handle) -> None:
        # Those of a dead process are kept as well: a task that is collected would run its `finally`.
        self._held.append(handle)

    def pause(self) -> None:
        if self.state is State.RUNNING:
            self.state = State.PAUSED

    def resume(self) -> None:
        if self.state is State.PAUSED:
            self.state = State.RUNNING
            held, self._held = self._held, []
            self.loop.run_soon(held)

    def kill(self) -> None:
        if self.state is not State.DEAD:
            self.state = State.DEAD
            for callback in self.on_death:
                callback()


class NeverEnding(Exception):
    """So many events that somebody must be going round in circles."""


class NothingToDo(Exception):
    """Nobody waits for time to pass: the run can never end."""


class SimulatedLoop(asyncio.BaseEventLoop):
    """After each callback the `after_event` of the process that it belongs to is called."""

    _ready: Any
    _stopping: bool

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self.events = 0
        # When, and in which order those of the same time were asked for.
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._timers_made = 0
        self.threads = SimulatedThreads(self)
        # How a process connects to a host: the network's.
        self.connect: Callable[[Process, Callable[[], Any], str], Awaitable[tuple[Any, Any]]] = _nowhere

    def time(self) -> float:
        return self._now

    @property
    def process(self) -> Process | None:
        """Whose code runs now."""
        return _PROCESS.get()

    def run_soon(self, handles: list[Handle]) -> None:
        self._ready.extend(handles)

    def _run_once(self) -> None:
        if self.events > _EVENTS_MAX:
            raise NeverEnding(f"{self.events} events, and {self._now:.3f} s have passed")
        ready, timers = self._ready, self._timers
        while timers and timers[0][2]._cancelled:
            heapq.heappop(timers)
        if not ready:
            if not timers:
                raise NothingToDo
            self._now = max(self._now, timers[0][0])
        while timers and timers[0][0] <= self._now:
            timer = heapq.heappop(timers)[2]
            if not timer._cancelled:
                ready.append(timer)
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle._cancelled:
                continue
            context: Context = handle._context
            process = context.get(_PROCESS)
            if process is not None and process.state is not State.RUNNING:
                process.hold(handle)
                continue
            try:
                context.run(handle._callback, *handle._args)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:
                message = f"Exception in callback {handle._callback!r}"
                self.call_exception_handler({"message": message, "exception": error, "handle": handle})
            self.events += 1
            if process is not None and process.after_event is not None:
                process.after_event()
            if self._stopping:
                return

    # --- asyncio's own, without what only real time and real threads need: half of what an event costs

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Handle:
        handle = Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        self._timers_made += 1
        heapq.heappush(self._timers, (when, self._timers_made, timer))
        return timer

    # --- what asyncio expects of a loop

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """Whichever executor is meant: its work is done by a simulated thread."""
        return self.threads.run(func, *args)

    async def create_connection(  # type: ignore[override]
        self, protocol_factory: Callable[[], Any], host: str, port: int
    ) -> tuple[Any, Any]:
        process = self.process
        assert process is not None
        return await self.connect(process, protocol_factory, host)

    async def getaddrinfo(self, host: Any, port: Any, **_: Any) -> Any:
        """A machine's name is its address; to ask a real resolver would take real time."""
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (host, port))]

    def close(self) -> None:
        super().close()
        self._timers.clear()

    def _write_to_self(self) -> None:
        """Nobody sleeps who would have to be woken."""

    def _check_closed(self) -> None:
        """What is collected after the run may still want something of its loop; nothing comes of it."""

    def _process_events(self, event_list: object) -> None:
        raise AssertionError("there are no sockets here")

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It is dropped when its time comes."""


async def _nowhere(process: Process, make_protocol: Callable[[], Any], host: str) -> tuple[Any, Any]:
    raise OSError(f"there is no network to {host}")
