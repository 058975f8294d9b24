"""How long the broker's event loop computes without looking at its sockets: what everybody else waits for.

    with LoopTurns() as turns, Broker() as broker:
        turns.reset()
        ...  # something large
        assert turns.worst_s < TURN_S_MAX, turns.worst

A turn is one round of the event loop: what was ready is called, then sockets are looked at again. It is measured in CPU
time of the loop's own thread, so neither a busy machine nor another thread that works counts. The garbage collector is
off but for `reset`, for it would walk all that the test has.
"""

from __future__ import annotations

import asyncio
import gc
import time
from asyncio import base_events, events
from types import TracebackType
from typing import Any, Self

# The goal is 20 ms of the wall clock for everybody else, and most turns take 2 ms. On a busy virtual machine CPU time
# jumps by tens of milliseconds, so this only tells work that is cut into turns from work that is not.
TURN_S_MAX = 0.25
_WORTH_A_NAME_S = 0.002


class LoopTurns:
    """Watches every event loop of this process, which is the broker's if the test itself has none."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        gc.collect()
        self.worst_s = 0.0
        # What ran longest in the worst turn.
        self.worst = ""
        self.count = 0
        self._longest_call: tuple[float, str] = (0.0, "")

    def __enter__(self) -> Self:
        self._run_once = base_events.BaseEventLoop._run_once  # type: ignore[attr-defined]
        self._run_handle = events.Handle._run  # type: ignore[attr-defined]
        watch = self

        def run_once(loop: Any) -> None:
            before = time.thread_time()
            watch._longest_call = (0.0, "")
            watch._run_once(loop)
            took = time.thread_time() - before
            watch.count += 1
            if took > watch.worst_s:
                watch.worst_s, watch.worst = took, f"{took * 1000:.1f} ms, mostly {watch._longest_call[1]}"

        def run_handle(handle: Any) -> None:
            before = time.thread_time()
            watch._run_handle(handle)
            took = time.thread_time() - before
            if took > max(watch._longest_call[0], _WORTH_A_NAME_S):
                watch._longest_call = (took, _name(handle))

        base_events.BaseEventLoop._run_once = run_once  # type: ignore[attr-defined]
        events.Handle._run = run_handle  # type: ignore[attr-defined]
        gc.collect()
        gc.freeze()
        gc.disable()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        base_events.BaseEventLoop._run_once = self._run_once  # type: ignore[attr-defined]
        events.Handle._run = self._run_handle  # type: ignore[attr-defined]
        gc.enable()
        gc.unfreeze()


def _name(handle: Any) -> str:
    owner = getattr(handle._callback, "__self__", None)
    return repr(owner.get_coro()) if isinstance(owner, asyncio.Task) else repr(handle)
