"""Long work in plain Python, a millisecond at a time: nobody else waits longer for the loop.

A thread would not help: it holds the interpreter lock five milliseconds at a time, and each system call of the loop
would wait that long to get it back. So the work is a generator that yields between small steps (`common/steps.py`).
Its turns are taken one at a time for the whole broker, first come first served, and the loop serves everybody else in
between. Where the loop is busy, or the machine is, a turn comes around rarely, and lasts longer: long work has a fifth
of the time at least, up to five milliseconds at once, or a coordinator would never be loaded.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Coroutine
from typing import Any, Protocol, TypeVar

from ottla.common.steps import Pauses, Steps

T = TypeVar("T")

TURN_S = 0.001
# How much longer a turn may be, and which part of the time that others had since the last one.
_TURNS_AT_ONCE = 5
_SHARE = 0.25
# What is done at once before it has to queue for a turn: most work is over by then, and sixty clients of one round of
# the loop may each have something to do.
FIRST_TURN_S = 0.0003


class Charge(Protocol):
    """Whoever is to know how long work took."""

    worked_s: float


class Turns:
    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._ended = time.perf_counter()
        # What is begun while this is set goes on at its cost.
        self.charge: Charge | None = None

    def start(self, work: Steps[T]) -> T | Awaitable[T]:
        """What the generator returns, if that takes little time and waits for nothing; else the promise of it."""
        try:
            waiting = _advance(work, FIRST_TURN_S)
        except StopIteration as end:
            result: T = end.value
            return result
        return self._go_on(work, waiting, self.charge)

    def queue(self, work: Steps[T]) -> Coroutine[Any, Any, T]:
        """The same, for what is known to be long: the first turn has to be waited for as well."""
        return self._go_on(work, None, self.charge)

    async def _go_on(self, work: Steps[T], waiting: Awaitable[Any] | None, charge: Charge | None) -> T:
        others_waited_since = time.perf_counter()
        try:
            while True:
                outcome, failure = None, None
                if waiting is not None:
                    try:
                        outcome = await waiting
                    except Exception as error:
                        failure = error
                    # What is waited for may have been there already; then nobody else had a turn.
                    if time.perf_counter() < others_waited_since + TURN_S:
                        waiting = _advance(work, FIRST_TURN_S, outcome, failure, charge)
                        continue
                ready_at = time.perf_counter()
                await asyncio.sleep(0)
                async with self._turn:
                    others_waited_since = time.perf_counter()
                    others_had_s = others_waited_since - max(ready_at, self._ended)
                    try:
                        waiting = _advance(work, _turn_s(others_had_s), outcome, failure, charge)
                    finally:
                        self._ended = time.perf_counter()
        except StopIteration as end:
            result: T = end.value
            return result


def _turn_s(others_had_s: float) -> float:
    return min(max(TURN_S, others_had_s * _SHARE), TURN_S * _TURNS_AT_ONCE)


class Pause:
    """For a coroutine that waits for other things too: lets others in when it has had its share of the loop."""

    def __init__(self) -> None:
        self._due = time.perf_counter() + TURN_S

    async def when_due(self) -> None:
        if time.perf_counter() >= self._due:
            await asyncio.sleep(0)
            self._due = time.perf_counter() + TURN_S


async def in_turns(steps: Pauses[T]) -> T:
    """What the steps come to; others get in between."""
    pause = Pause()
    try:
        while True:
            next(steps)
            await pause.when_due()
    except StopIteration as end:
        result: T = end.value
        return result


def _advance(
    work: Steps[Any],
    seconds: float,
    outcome: object = None,
    failure: Exception | None = None,
    charge: Charge | None = None,
) -> Awaitable[Any] | None:
    """Go on with the work until its time is over (None), or it waits for something. Raises StopIteration at its end."""
    began = time.perf_counter()
    stop_at = began + seconds
    try:
        waiting = work.send(outcome) if failure is None else work.throw(failure)
        while waiting is None and time.perf_counter() < stop_at:
            waiting = next(work)
    finally:
        if charge is not None:
            charge.worked_s += time.perf_counter() - began
    return waiting
