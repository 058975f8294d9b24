"""The endpoint for programs without an event loop: it has one in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from types import TracebackType
from typing import Self

from ottla.exposition.endpoint import Endpoint

_STOP_S_MAX = 10.0


class ThreadedEndpoint:
    """`with ThreadedEndpoint(endpoint):`, of one that is bound."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="ottla-metrics", daemon=True)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.close()

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._endpoint.start(), self._loop).result(_STOP_S_MAX)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stopped: Future[None] = asyncio.run_coroutine_threadsafe(self._endpoint.stop(), self._loop)
        stopped.result(_STOP_S_MAX)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_STOP_S_MAX)
