"""An instance with its listener: started, serving, stopped."""

from __future__ import annotations

import asyncio
import socket

import uvicorn

from ottla.common.errors import OttlaError
from ottla.registry.api.app import build
from ottla.registry.api.connection import Connection
from ottla.registry.instance import Instance
from ottla.registry.settings import RegistrySettings

_BACKLOG = 1_024
_LEAVE_S_MAX = 5


class RegistryServer:
    """`await start()`, `await stop()`; `url` is where it answers."""

    def __init__(self, settings: RegistrySettings) -> None:
        self.settings = settings
        self.instance = Instance(settings)
        self._app = build(self.instance)
        self._server: uvicorn.Server | None = None
        self._serving: asyncio.Task[None] | None = None
        self.port = settings.port

    @property
    def url(self) -> str:
        return self.instance.identity.url

    async def start(self) -> None:
        """Returns when everything is read and questions are answered. Raises OttlaError."""
        listener = _bind(self.settings.host, self.settings.port)
        try:
            self.port = listener.getsockname()[1]
            await self.instance.start(self.port)
            config = uvicorn.Config(
                self._app,
                http=Connection,
                ws="none",
                log_config=None,
                access_log=False,
                lifespan="off",
                ssl_certfile=self.settings.certificate,
                ssl_keyfile=self.settings.key,
                timeout_graceful_shutdown=_LEAVE_S_MAX,
                backlog=_BACKLOG,
                server_header=False,
            )
            self._server = _Server(config)
            self._serving = asyncio.get_running_loop().create_task(self._server.serve([listener]))
            while not self._server.started and not self._serving.done():
                await asyncio.sleep(0.01)
            if self._serving.done():
                self._serving.result()
        except BaseException:
            listener.close()
            await self.instance.stop()
            raise

    async def stop(self) -> None:
        if self._server is not None and self._serving is not None:
            self._server.should_exit = True
            await self._serving
        await self._app.state.forwarding.aclose()
        await self.instance.stop()


class _Server(uvicorn.Server):
    """Signals are whoever's who runs us."""

    def capture_signals(self):  # type: ignore[no-untyped-def]
        from contextlib import nullcontext

        return nullcontext()


def _bind(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        raise OttlaError(f"cannot listen on {host}:{port}: {error.strerror or error}.") from None
    listener.setblocking(False)
    return listener
