"""An answer that is made later: waited for, and given up when nobody wants it any more."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from functools import partial
from typing import Protocol

from ottla.server.client_end import Answer


class Asker(Protocol):
    """Told of one of these, once for each promise."""

    def on_answered(self, answer: Answer) -> None: ...

    def on_given_up(self) -> None: ...

    def on_failed(self, error: BaseException) -> None: ...


class PromisedAnswer:
    __slots__ = ("_promise",)

    def __init__(self) -> None:
        self._promise: asyncio.Future[Answer] | None = None

    def wait_for(self, answer: Awaitable[Answer], asker: Asker) -> None:
        self._promise = asyncio.ensure_future(answer)
        self._promise.add_done_callback(partial(self._on_done, asker))

    def give_up(self) -> None:
        """A bare future is a request that waits, such as a parked fetch; a coroutine is work that was begun, such as
        a produce in the middle of recompression, and runs to its end."""
        if self._promise is not None and not isinstance(self._promise, asyncio.Task):
            self._promise.cancel()

    def _on_done(self, asker: Asker, promise: asyncio.Future[Answer]) -> None:
        self._promise = None
        if promise.cancelled():
            asker.on_given_up()
            return
        error = promise.exception()
        if error is not None:
            asker.on_failed(error)
        else:
            asker.on_answered(promise.result())
