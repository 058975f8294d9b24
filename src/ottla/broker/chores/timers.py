"""Timers on the event loop that follow the broker's clock, also when a test makes it jump."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from ottla.common.clock import Clock

log = logging.getLogger("ottla.broker")


class Handle(Protocol):
    def cancel(self) -> None: ...


class Timers:
    """On a system clock the loop's own timers do."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self._loop = loop
        self._clock = clock
        self._periodic: list[asyncio.Task[None]] = []

    def call_later(self, delay_ms: float, callback: Callable[[], object]) -> Handle:
        return self._loop.call_later(delay_ms / 1000, callback)

    async def sleep(self, delay_ms: float) -> None:
        woken: asyncio.Future[None] = self._loop.create_future()

        def wake() -> None:
            if not woken.done():
                woken.set_result(None)

        handle = self.call_later(delay_ms, wake)
        try:
            await woken
        finally:
            handle.cancel()

    def every(
        self,
        period_ms: Callable[[], float],
        job: Callable[[], Awaitable[None] | None],
        name: str,
        first_ms: float | None = None,
    ) -> None:
        """Run `job` again and again; one that fails is logged and tried again next time."""

        async def run() -> None:
            wait_ms = period_ms() if first_ms is None else first_ms
            while True:
                await self.sleep(wait_ms)
                wait_ms = period_ms()
                try:
                    waiting = job()
                    if waiting is not None:
                        await waiting
                except Exception:
                    log.exception("periodic work failed, will run again", extra={"job": name})

        self._periodic.append(self._loop.create_task(run(), name=name))

    async def stop(self) -> None:
        for task in self._periodic:
            task.cancel()
        await asyncio.gather(*self._periodic, return_exceptions=True)


class JumpingTimers(Timers):
    """For a clock that can be moved: after a jump each timer is due when the clock says so."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        super().__init__(loop, clock)
        self._live: dict[_JumpingHandle, None] = {}

    def call_later(self, delay_ms: float, callback: Callable[[], object]) -> Handle:
        handle = _JumpingHandle(self, self._clock.monotonic_ms() + delay_ms, callback)
        self._live[handle] = None
        handle.schedule(self._loop, delay_ms)
        return handle

    def on_jump(self) -> None:
        """Call on the loop after the clock was moved."""
        now = self._clock.monotonic_ms()
        for handle in sorted(self._live, key=lambda timer: timer.due_ms):
            handle.schedule(self._loop, max(0, handle.due_ms - now))

    def forget(self, handle: _JumpingHandle) -> None:
        self._live.pop(handle, None)


class _JumpingHandle:
    def __init__(self, timers: JumpingTimers, due_ms: float, callback: Callable[[], object]) -> None:
        self.due_ms = due_ms
        self._timers = timers
        self._callback = callback
        self._inner: asyncio.TimerHandle | None = None

    def schedule(self, loop: asyncio.AbstractEventLoop, delay_ms: float) -> None:
        if self._inner is not None:
            self._inner.cancel()
        self._inner = loop.call_later(delay_ms / 1000, self._fire)

    def _fire(self) -> None:
        self._timers.forget(self)
        self._callback()

    def cancel(self) -> None:
        self._timers.forget(self)
        if self._inner is not None:
            self._inner.cancel()
