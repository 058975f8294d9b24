"""Long work in plain Python, a millisecond at a time: nobody else waits longer for the loop.

A thread would not help: it holds the interpreter lock five milliseconds at a time, and each system call of the loop
would wait that long to get it back. So the work is a generator that yields between small steps. Its turns are taken one
at a time for the whole broker, first come first served, and the loop serves everybody else in between.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")

TURN_S = 0.001


class Turns:
    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def run(self, work: Generator[None, None, T]) -> T:
        """What the generator returns."""
        try:
            while True:
                async with self._turn:
                    stop_at = time.perf_counter() + TURN_S
                    while time.perf_counter() < stop_at:
                        next(work)
                await asyncio.sleep(0)
        except StopIteration as done:
            result: T = done.value
            return result
