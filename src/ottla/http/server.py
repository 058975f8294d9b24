"""An application behind a listener: bound, serving, stopped."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import Any

import uvicorn
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from ottla.common.errors import OttlaError
from ottla.common.renewed_tls import RenewedContext, from_files
from ottla.http.connection import Refusal, connection_class
from ottla.http.other_sites import NoOtherSites

_LOG = logging.getLogger("ottla.http")
_BACKLOG = 1_024
_LEAVE_S_MAX = 5


class HttpServer:
    """`bind`, then `await start(app)`, then `await stop()`. The port is known before anybody is served."""

    def __init__(
        self,
        refusal: Refusal,
        *,
        certificate: str | None = None,
        key: str | None = None,
        key_password: str | None = None,
        client_ca: str | None = None,
        requires_client: bool = False,
        has_pages: bool = False,
        leave_s_max: int = _LEAVE_S_MAX,
    ) -> None:
        """`client_ca`: who may vouch for clients that show a certificate, which they must if it is required;
        `has_pages`: it is for browsers, too, and looks itself at whose pages they show; `leave_s_max`: how long `stop`
        waits for answers that are under way."""
        self._refusal = None if has_pages else refusal
        self._connection = connection_class(refusal)
        self._tls: Callable[[], RenewedContext] | None = None
        if certificate is not None:
            self._tls = partial(
                from_files,
                certificate,
                key,
                key_password,
                client_ca=client_ca,
                requires_client=requires_client,
                log=_LOG,
            )
        self._leave_s_max = leave_s_max
        self._listener: socket.socket | None = None
        self._server: uvicorn.Server | None = None
        self._serving: asyncio.Task[None] | None = None

    def bind(self, host: str, port: int) -> int:
        """The port, also where any was asked for (0). Raises OttlaError."""
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            listener = socket.socket(family, kind, protocol)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
        except OSError as error:
            raise OttlaError(f"cannot listen on {host}:{port}: {error.strerror or error}.") from None
        listener.setblocking(False)
        self._listener = listener
        return int(listener.getsockname()[1])

    def release(self) -> None:
        """Whoever has bound it does not serve after all."""
        if self._listener is not None:
            self._listener.close()

    async def start(self, app: Any) -> None:
        """Returns when requests are answered. Raises OttlaError for files of TLS that cannot be used."""
        assert self._listener is not None
        config = uvicorn.Config(
            _Heard(app if self._refusal is None else NoOtherSites(app, self._refusal)),
            http=self._connection,
            ws="none",
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=self._leave_s_max,
            backlog=_BACKLOG,
            server_header=False,
        )
        config.load()
        if self._tls is not None:
            config.ssl = self._tls().served()
        self._server = _Server(config)
        self._serving = asyncio.get_running_loop().create_task(self._server.serve([self._listener]))
        while not self._server.started and not self._serving.done():
            await asyncio.sleep(0.01)
        if self._serving.done():
            self._serving.result()

    async def stop(self) -> None:
        if self._server is not None and self._serving is not None:
            self._server.should_exit = True
            await self._serving


class _Heard:
    """A client that leaves amid its request is nobody's mistake: without this each would be a traceback in the log."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with suppress(ClientDisconnect):
            await self._app(scope, receive, send)


class _Server(uvicorn.Server):
    """Signals are whoever's who runs us."""

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]
        return nullcontext()
