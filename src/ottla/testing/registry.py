"""A schema registry in a thread of this process, on a broker of yours."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from typing import Any, Self

from ottla.registry.server import RegistryServer
from ottla.registry.settings import RegistrySettings


class Registry:
    """`with Broker() as broker, Registry(broker.bootstrap_servers) as registry:`; then clients use `registry.url`.

    `settings` are those of `ottla.registry.settings.RegistrySettings`, such as `default_level="FULL"`. A schema is
    there for everybody when the call that registered it returns.
    """

    def __init__(self, bootstrap_servers: str, **settings: Any) -> None:
        given = {"port": 0, "session_timeout_ms": 6_000, "heartbeat_ms": 500, "rebalance_timeout_ms": 6_000} | settings
        self._settings = RegistrySettings(bootstrap=bootstrap_servers, **given)
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._server: RegistryServer | None = None

    @property
    def url(self) -> str:
        if self._server is None:
            raise RuntimeError("the registry is not running: use `with Registry(...) as registry:` or call start()")
        return self._server.url

    def start(self) -> Self:
        if self._thread is not None:
            raise RuntimeError("this registry is running already")
        started: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, args=(started,), name="ottla-registry", daemon=True)
        self._thread.start()
        try:
            started.result()
        except BaseException:
            self._thread.join()
            self._thread = None
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
        server = RegistryServer(self._settings)
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
