"""Work that may have to wait for the disk, and mostly need not; or that is long, and mostly is not.

A coroutine that waits for nothing still costs a task and a turn of the event loop, which is more than most requests
cost altogether. So such work is written as a generator that yields what it waits for, if anything, and None where it
may be interrupted. `Turns.start` carries it out at once when it is short and nothing is to be waited for, else gives
back an awaitable, and interrupts it when others have waited long enough; `Turns.queue` is for what is known to be long,
and waits for its first turn as well; `to_the_end` is for what is short and waits for nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Sequence
from typing import Any, TypeVar

S = TypeVar("S")
T = TypeVar("T")
Steps = Generator[Awaitable[Any] | None, Any, T]
# Those that wait for nothing: all that they do is to let others in between.
Pauses = Generator[None, None, T]
# Things that are done between two interruptions, where each takes some microseconds.
PIECE = 64


def to_the_end(steps: Steps[T]) -> T:
    """At once: for work that waits for nothing and is short this time."""
    try:
        while True:
            next(steps)
    except StopIteration as end:
        result: T = end.value
        return result


def all_of(several: Iterable[Steps[T]]) -> Steps[list[T]]:
    """One after the other."""
    results: list[T] = []
    for steps in several:
        if results:
            yield None
        results.append((yield from steps))
    return results


def pieces(items: Sequence[S]) -> Iterator[Sequence[S]]:
    """A few at a time."""
    return (items[start : start + PIECE] for start in range(0, len(items), PIECE))


def in_pieces(items: Sequence[S], work: Callable[[Sequence[S]], list[T]]) -> Steps[list[T]]:
    """What `work` makes of all items; may be interrupted between two pieces."""
    if len(items) <= PIECE:
        return work(items)
    results: list[T] = []
    for piece in pieces(items):
        results += work(piece)
        yield None
    return results


def each(items: Iterable[S], work: Callable[[S], T]) -> Steps[list[T]]:
    """What `work` makes of every item; may be interrupted between two of them."""
    results = []
    for item in items:
        results.append(work(item))
        yield None
    return results
