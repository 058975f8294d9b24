"""Work that takes long, shared out among the addresses that ask for it: who asks a thousand times waits behind
himself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

# Of one address that wait: those beyond are told to come again.
WAITING_MAX = 1_000


def client_of(scope: Mapping[str, Any]) -> str:
    """The address of a request, as ASGI has it."""
    client = scope.get("client")
    return str(client[0]) if client else ""


class _Address:
    def __init__(self, at_once: int) -> None:
        self.room = asyncio.Semaphore(at_once)
        self.count = 0


class TurnsByAddress:
    def __init__(self, at_once: int) -> None:
        """`at_once`: of one address."""
        self._at_once = at_once
        # Those that have somebody here.
        self._addresses: dict[str, _Address] = {}

    def __len__(self) -> int:
        return len(self._addresses)

    @asynccontextmanager
    async def of(self, address: str) -> AsyncIterator[bool]:
        """When it is the turn of one more of this address. False: too many of them wait."""
        own = self._addresses.setdefault(address, _Address(self._at_once))
        if own.count >= WAITING_MAX:
            yield False
            return
        own.count += 1
        try:
            async with own.room:
                yield True
        finally:
            own.count -= 1
            if not own.count:
                del self._addresses[address]
