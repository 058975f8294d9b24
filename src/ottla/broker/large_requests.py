"""Requests that name thousands of things wait for one another: one of them per round of the loop.

Decoding and answering one may take tenths of a second. Without this a few clients that send such requests could fill
every round with them, and everybody else would wait for all; so everybody else waits for one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.server.connection import Answer, Connection

    Handle = Callable[[Connection, memoryview], Answer | Awaitable[Answer]]


class LargeRequests:
    def __init__(self, loop: asyncio.AbstractEventLoop, handle: Handle) -> None:
        self._loop = loop
        self._handle = handle
        self._waiting: deque[tuple[asyncio.Future[Answer], Connection, bytes]] = deque()
        self._scheduled = False

    def add(self, connection: Connection, frame: bytes) -> asyncio.Future[Answer]:
        """The answer to be. Cancelling it gives up the request while it waits, here or in its handler."""
        outcome: asyncio.Future[Answer] = self._loop.create_future()
        self._waiting.append((outcome, connection, frame))
        self._schedule()
        return outcome

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._take_one)

    def _take_one(self) -> None:
        self._scheduled = False
        outcome, connection, frame = self._waiting.popleft()
        if not outcome.done():
            answer = self._handle(connection, memoryview(frame))
            if answer is None or isinstance(answer, (list, bytes, bytearray)):
                _settle(outcome, answer)
            else:
                _follow(outcome, asyncio.ensure_future(answer))
        if self._waiting:
            self._schedule()


def _settle(outcome: asyncio.Future[Answer], answer: Answer) -> None:
    if not outcome.done():  # a request that cannot be read closes its connection, which gives up the outcome
        outcome.set_result(answer)


def _follow(outcome: asyncio.Future[Answer], inner: asyncio.Future[Answer]) -> None:
    """`outcome` becomes what `inner` becomes; giving up the one gives up the other, if it only waits."""

    def on_inner(_: object) -> None:
        if outcome.done():
            if not inner.cancelled():
                inner.exception()  # seen: nobody is left to tell
        elif inner.cancelled():
            outcome.cancel()
        elif (error := inner.exception()) is not None:
            outcome.set_exception(error)
        else:
            outcome.set_result(inner.result())

    def on_outcome(_: object) -> None:
        if outcome.cancelled() and not isinstance(inner, asyncio.Task):
            inner.cancel()

    inner.add_done_callback(on_inner)
    outcome.add_done_callback(on_outcome)
