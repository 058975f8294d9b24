"""A console in a thread of the test, and a visitor that behaves as a browser does: cookies, tokens, redirects."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self

import httpx

from ottla.console.server import ConsoleServer
from ottla.console.settings import ConsoleSettings
from ottla.console.web.console import Console

_TOKEN = re.compile(r'data-csrf="([^"]+)"|name="_csrf" value="([^"]+)"')


class RunningConsole:
    def __init__(self, bootstrap: str, **settings: Any) -> None:
        self._settings = ConsoleSettings(bootstrap, **{"port": 0, "interval_s": 0.5, **settings})
        self._started: Future[None] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="test-console")
        self._server: ConsoleServer | None = None

    @property
    def url(self) -> str:
        assert self._server is not None
        return self._server.url

    @property
    def console(self) -> Console:
        assert self._server is not None
        return self._server.console

    async def _serve(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        try:
            self._server = ConsoleServer(self._settings)
            await self._server.start()
        except BaseException as error:
            self._started.set_exception(error)
            return
        self._started.set_result(None)
        await self._stopping.wait()
        await self._server.stop()

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.result(60)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._loop is not None and self._stopping is not None
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(60)

    def visitor(self) -> Visitor:
        return Visitor(self.url)


class Visitor:
    def __init__(self, url: str) -> None:
        self.http = httpx.Client(base_url=url, trust_env=False, timeout=60, headers={"accept": "text/html"})

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.http.get(path, follow_redirects=True, **more)

    def token(self) -> str:
        found = _TOKEN.search(self.get("/topics").text)
        assert found is not None
        return found[1] or found[2]

    def post(self, path: str, fields: dict[str, Any] | None = None, *, token: str | None = None) -> httpx.Response:
        sent = {"_csrf": self.token() if token is None else token, **(fields or {})}
        return self.http.post(path, data=sent, follow_redirects=True)

    def events(self, path: str, until: Callable[[str], bool] = lambda kind: kind == "done") -> list[tuple[str, str]]:
        """Server-sent events up to the one that is waited for."""
        found: list[tuple[str, str]] = []
        with self.http.stream("GET", path) as answer:
            kind, data = "", []
            for line in answer.iter_lines():
                if line.startswith("event: "):
                    kind = line[7:]
                elif line.startswith("data: "):
                    data.append(line[6:])
                elif not line and kind:
                    found.append((kind, "\n".join(data)))
                    if until(kind) or kind == "trouble":
                        break
                    kind, data = "", []
        return found
