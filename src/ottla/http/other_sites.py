"""Changes that a page of somebody else's site makes a browser ask for.

Without a login, on a machine of one's own, whoever reaches a port is believed; and every page that is open in a browser
reaches it. Browsers say where a page is from, in headers that no page can leave out; other programs do not send them.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from ottla.http.connection import Refusal

_SAFE = ("GET", "HEAD", "OPTIONS")
_SENTENCE = "A change that a page of another site asks for is refused"


class NoOtherSites:
    """For services that have no pages of their own."""

    def __init__(self, app: ASGIApp, refusal: Refusal) -> None:
        self._app = app
        self._refusal = refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app
        if scope["type"] == "http" and scope["method"] not in _SAFE and _is_of_another(dict(scope["headers"])):
            app = self._refusal(403, _SENTENCE)
        await app(scope, receive, send)


def _is_of_another(headers: dict[bytes, bytes]) -> bool:
    if headers.get(b"sec-fetch-site", b"same-origin") not in (b"same-origin", b"none"):
        return True
    origin = headers.get(b"origin")
    if origin is None or b"sec-fetch-site" in headers:
        return False
    try:
        place = urlsplit(origin.decode("latin-1")).netloc
    except ValueError:
        return True
    return place.lower() != headers.get(b"host", b"").decode("latin-1").lower()
