"""What every request passes before its path is looked at.

Clients write a slash within the name of a subject as `%2F`. Whoever decodes the path first cannot tell it from one
between names any more, so it is decoded here: slashes of names become a character that no path can have, and
`name_in` makes them slashes again.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from starlette.types import ASGIApp, Receive, Scope, Send

from ottla.http.connection import HEADER_BYTES_MAX
from ottla.registry.api.answers import answer

# Half of a character: nothing that is decoded from UTF-8 has it.
_SLASH = "\udc2f"
_ENCODED_SLASH = re.compile("%2f", re.IGNORECASE)


def name_in(text: str) -> str:
    """A name out of a path."""
    return text.replace(_SLASH, "/")


class Gate:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if sum(len(name) + len(value) for name, value in scope["headers"]) > HEADER_BYTES_MAX:
            refusal = answer({"error_code": 431, "message": "HTTP 431 Request Header Fields Too Large"}, 431)
            await refusal(scope, receive, send)
            return
        raw = scope["raw_path"].decode("latin-1")
        if _ENCODED_SLASH.search(raw):
            path = _SLASH.join(unquote(part) for part in _ENCODED_SLASH.split(raw))
            scope = dict(scope) | {"path": path}
        await self._app(scope, receive, send)
