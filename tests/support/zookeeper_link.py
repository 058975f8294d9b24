"""The network between one client and ZooKeeper, which can be cut, blocked, silenced, or lose one request or answer.

with ZookeeperLink(zookeeper.port) as link:
    store = open_zookeeper(zookeeper.options(chroot, servers=link.address))
    link.cut()                        # the connection breaks; the client may connect again
    link.block()                      # nobody gets through until `restore`
    link.silence()                    # as a cable that is pulled: nothing breaks, nothing arrives
    link.lose_answer(MULTI)           # the next one: done by the server, the client is not told
    link.lose_request(MULTI)          # the next one: never gets there
"""

from __future__ import annotations

import asyncio
import struct
from collections import deque

from tests.support.proxy import Proxy, _read_frame

MULTI = 14


class ZookeeperLink(Proxy):
    def __init__(self, target: int) -> None:
        super().__init__()
        self.target = target
        # Connections that were let through.
        self.connections = 0
        self._ends: set[asyncio.StreamWriter] = set()
        self._is_blocked = False
        self._is_silent = False
        self._lost_answer: int | None = None
        self._lost_request: int | None = None

    def cut(self) -> None:
        self._on_loop(self._cut_all)

    def block(self) -> None:
        self._is_blocked = True
        self.cut()

    def silence(self) -> None:
        self._is_silent = True

    def restore(self) -> None:
        """What was swallowed is lost, so connections that were silent break now."""
        was_silent, self._is_silent, self._is_blocked = self._is_silent, False, False
        if was_silent:
            self.cut()

    def lose_answer(self, kind: int) -> None:
        self._lost_answer = kind

    def lose_request(self, kind: int) -> None:
        self._lost_request = kind

    # --- on the loop

    def _on_loop(self, action: object) -> None:
        assert callable(action)
        asyncio.run_coroutine_threadsafe(self._run_one(action), self._loop).result(10)

    @staticmethod
    async def _run_one(action: object) -> None:
        assert callable(action)
        action()

    def _cut_all(self) -> None:
        for end in self._ends:
            end.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_blocked:
            writer.transport.abort()
            return
        self.connections += 1
        self._ends.add(writer)
        try:
            await super()._serve(reader, writer)
        finally:
            self._ends.discard(writer)

    async def _requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: deque[int]) -> None:
        while (frame := await _read_frame(reader)) is not None:
            xid, kind = _head(frame)
            if self._is_silent:
                continue
            if kind == self._lost_request:
                self._lost_request = None
                return
            if kind == self._lost_answer:
                self._lost_answer = None
                asked.append(xid)
            writer.write(frame)
            await writer.drain()

    async def _answers(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: deque[int]) -> None:
        while (frame := await _read_frame(reader)) is not None:
            if _head(frame)[0] in asked:
                return
            if not self._is_silent:
                writer.write(frame)
                await writer.drain()


def _head(frame: bytes) -> tuple[int, int]:
    """The number that ties an answer to its request, and of a request its kind."""
    xid, kind = struct.unpack_from(">ii", frame.ljust(12, b"\0"), 4)
    return xid, kind
