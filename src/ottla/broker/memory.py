"""Memory that requests need for a while, such as records that were opened: so much for all of them together.

Whoever wants more than is left waits, first come first served. Somebody who wants more than there is gets it when
nobody else has any. So a sum of requests costs time, never memory.
"""

from __future__ import annotations

import asyncio
from collections import deque


class Memory:
    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self.held_bytes = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def reserve(self, size: int) -> None:
        """Give it back with `release`."""
        if self._waiting or not self._fits(size):
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((size, turn))
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self.release(size)
                raise
            return
        self.held_bytes += size

    def release(self, size: int) -> None:
        self.held_bytes -= size
        while self._waiting:
            wanted, turn = self._waiting[0]
            if not turn.cancelled():
                if not self._fits(wanted):
                    return
                self.held_bytes += wanted
                turn.set_result(None)
            self._waiting.popleft()

    def _fits(self, size: int) -> bool:
        return self.held_bytes == 0 or self.held_bytes + size <= self._bytes_max
