"""Who may ask a worker: whoever has a user and a password, if there is a file of them; and other workers, who sign."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from ottla.common.basic_logins import BasicLogins
from ottla.common.turns_by_address import client_of
from ottla.connect.rest.answers import refusal
from ottla.connect.worker.signing import BETWEEN_WORKERS


class Login:
    """Kafka Connect's BasicAuthSecurityRestExtension: nobody gets past it without a login."""

    def __init__(self, app: ASGIApp, logins: BasicLogins) -> None:
        self._app = app
        self._logins = logins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not scope["path"].startswith(BETWEEN_WORKERS):
            given = dict(scope["headers"]).get(b"authorization")
            if given is None or await self._logins.name(given, client_of(scope)) is None:
                told = refusal(401, "User cannot access the resource.")
                told.headers["WWW-Authenticate"] = 'Basic realm="connect"'
                await told(scope, receive, send)
                return
        await self._app(scope, receive, send)
