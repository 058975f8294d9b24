"""Producer ids, each given out once in the life of the cluster.

A block of ids is taken from the metadata store, durably, before the first of them is given out; a crash loses the rest
of the block and repeats nothing. 1,000 ids cost one fsync.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

BLOCK_SIZE = 1000


class ProducerIds:
    def __init__(self, take_block: Callable[[int], Awaitable[int]]) -> None:
        """`take_block(count)` gives the first of `count` ids that nobody else will ever get."""
        self._take_block = take_block
        self._next = self._end = 0
        self._refilling = asyncio.Lock()

    async def take(self) -> int:
        while self._next == self._end:
            async with self._refilling:
                if self._next == self._end:  # nobody refilled it while we waited
                    self._next = await self._take_block(BLOCK_SIZE)
                    self._end = self._next + BLOCK_SIZE
        self._next += 1
        return self._next - 1
