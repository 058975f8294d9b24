"""An instance with its listener: started, serving, stopped."""

from __future__ import annotations

from starlette.responses import Response

from ottla.http.server import HttpServer
from ottla.registry.api.answers import answer
from ottla.registry.api.app import build
from ottla.registry.instance import Instance
from ottla.registry.settings import RegistrySettings


def _refusal(status: int, sentence: str) -> Response:
    return answer({"error_code": status, "message": sentence}, status)


class RegistryServer:
    """`await start()`, `await stop()`; `url` is where it answers."""

    def __init__(self, settings: RegistrySettings) -> None:
        self.settings = settings
        self.instance = Instance(settings)
        self._app = build(self.instance)
        self._http = HttpServer(
            _refusal,
            certificate=settings.certificate,
            key=settings.key,
            client_ca=settings.client_ca,
            requires_client=settings.users_file is None,
            leave_s_max=1,
        )
        self.port = settings.port

    @property
    def url(self) -> str:
        return self.instance.identity.url

    async def start(self) -> None:
        """Returns when everything is read and questions are answered. Raises OttlaError."""
        self.port = self._http.bind(self.settings.host, self.settings.port)
        try:
            await self.instance.start(self.port)
            await self._http.start(self._app)
        except BaseException:
            self._http.release()
            await self.instance.stop()
            raise

    async def stop(self) -> None:
        await self._http.stop()
        await self._app.state.forwarding.aclose()
        await self.instance.stop()
