"""A server that has an event loop in a thread of this process, for the time of a test."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from concurrent.futures import Future
from typing import Generic, Protocol, Self, TypeVar


class Server(Protocol):
    async def start(self) -> None: ...

    async def stop(self) -> None: ...


S = TypeVar("S", bound=Server)


class InThread(ABC, Generic[S]):
    """`with`, or `start()` and `stop()`; it may be started again."""

    # As sentences call it.
    _what: str

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._server: S | None = None

    @abstractmethod
    def _make(self) -> S:
        """In the thread, each time it is started."""

    def _prepare(self) -> None:
        """Before that, in the thread of the test."""

    def _clean_up(self) -> None:
        """When it could not be started."""

    @property
    def server(self) -> S:
        if self._server is None:
            name = type(self).__name__
            raise RuntimeError(
                f"the {self._what} is not running: use `with {name}(...) as {name.lower()}:` or call start()"
            )
        return self._server

    def start(self) -> Self:
        if self._thread is not None:
            raise RuntimeError(f"this {self._what} is running already")
        self._prepare()
        started: Future[None] = Future()
        name = f"ottla-{type(self).__name__.lower()}"
        self._thread = threading.Thread(target=self._run, args=(started,), name=name, daemon=True)
        self._thread.start()
        try:
            started.result()
        except BaseException:
            self._thread.join()
            self._thread = None
            self._clean_up()
            raise
        return self

    def stop(self) -> None:
        if self._thread is None or self._loop is None or self._stopping is None:
            return
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()
        self._thread = None

    def _run(self, started: Future[None]) -> None:
        try:
            asyncio.run(self._serve(started))
        except BaseException as error:
            if not started.done():
                started.set_exception(error)

    async def _serve(self, started: Future[None]) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        server = self._make()
        await server.start()
        self._server = server
        started.set_result(None)
        try:
            await self._stopping.wait()
        finally:
            self._server = None
            await server.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()
