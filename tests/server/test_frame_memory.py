"""The memory of a large request is given back a piece at a time, and never while somebody looks at it."""

from __future__ import annotations

import mmap
from collections import deque
from collections.abc import Callable
from typing import Any

from ottla.server.frame_memory import _FREED_BYTES, give_back


class Loop:
    def __init__(self) -> None:
        self.ready: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()

    def call_soon(self, call: Callable[..., object], *arguments: Any) -> None:
        self.ready.append((call, arguments))

    def turn(self) -> None:
        call, arguments = self.ready.popleft()
        call(*arguments)


def mapping(size: int) -> mmap.mmap:
    return mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def test_each_turn_frees_a_piece() -> None:
    loop: Any = Loop()
    buffer = mapping(10 * _FREED_BYTES + 5)
    sizes = []
    give_back(loop, buffer)
    while loop.ready:
        sizes.append(len(buffer))
        loop.turn()
    assert buffer.closed
    assert sizes == [number * _FREED_BYTES + 5 for number in range(9, -1, -1)]


def test_what_somebody_looks_at_stays() -> None:
    loop: Any = Loop()
    buffer = mapping(3 * _FREED_BYTES)
    buffer[:5] = b"begin"
    seen = memoryview(buffer)
    give_back(loop, buffer)
    assert not loop.ready
    assert seen[:5] == b"begin" and len(seen) == 3 * _FREED_BYTES
