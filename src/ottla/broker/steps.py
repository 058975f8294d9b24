"""Work that may have to wait for the disk, and mostly need not.

A coroutine that waits for nothing still costs a task and a turn of the event loop, which is more than most requests
cost altogether. So such work is written as a generator that yields what it waits for, if anything: `run` carries it out
at once when nothing is yielded, and gives back an awaitable when something is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Generator, Iterable
from typing import Any, TypeVar

T = TypeVar("T")
Steps = Generator[Awaitable[Any], Any, T]


def run(steps: Steps[T]) -> T | Awaitable[T]:
    try:
        waiting = next(steps)
    except StopIteration as end:
        result: T = end.value
        return result
    return _go_on(steps, waiting)


def all_of(several: Iterable[Steps[T]]) -> Steps[list[T]]:
    """One after the other."""
    results = []
    for steps in several:
        result = yield from steps
        results.append(result)
    return results


async def _go_on(steps: Steps[T], waiting: Awaitable[Any]) -> T:
    while True:
        outcome, failure = None, None
        try:
            outcome = await waiting
        except Exception as error:
            failure = error
        try:
            waiting = steps.send(outcome) if failure is None else steps.throw(failure)
        except StopIteration as end:
            result: T = end.value
            return result
