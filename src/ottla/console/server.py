"""A console with its listener: started, serving, stopped."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.responses import PlainTextResponse, Response

from ottla.console.app import build
from ottla.console.settings import ConsoleSettings
from ottla.console.web.console import Console
from ottla.http.server import HttpServer


def _refusal(status: int, sentence: str) -> Response:
    return PlainTextResponse(f"{sentence}\n", status)


class ConsoleServer:
    """`await start()`, `await stop()`; `url` is where it answers."""

    def __init__(self, settings: ConsoleSettings) -> None:
        self.settings = settings
        self.console = Console(settings)
        self._app = build(self.console)
        # Tails and searches of open pages would go on for as long as they are let.
        self._http = HttpServer(
            _refusal, certificate=settings.certificate, key=settings.key, has_pages=True, leave_s_max=1
        )
        self.port = settings.port

    @property
    def url(self) -> str:
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(self.settings.host, self.settings.host)
        return f"{self.settings.scheme}://{f'[{host}]' if ':' in host and '[' not in host else host}:{self.port}"

    async def start(self) -> None:
        """Returns when pages are served; the cluster need not be there yet. Raises OttlaError."""
        self.port = self._http.bind(self.settings.host, self.settings.port)
        try:
            self.console.start()
            await self._http.start(self._app)
        except BaseException:
            self._http.release()
            await run_in_threadpool(self.console.stop)
            raise

    async def stop(self) -> None:
        await self._http.stop()
        await run_in_threadpool(self.console.stop)
