"""What every request passes first, and what every answer carries.

A page of somebody else's site may make a browser send requests here under a name of its own that points to this address
(DNS rebinding): so the name that was asked for must be an address, localhost, or one that we were told. What changes
something must come from our own pages, and other sites may link to them and no more. Answers forbid scripts, styles,
frames and connections of anybody else.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_HEADERS = (
    (b"content-security-policy", CSP.encode()),
    (b"x-frame-options", b"DENY"),
    (b"x-content-type-options", b"nosniff"),
    # With `no-referrer` browsers send the origin `null` even to our own pages.
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
_SAFE = ("GET", "HEAD")


class Gate:
    def __init__(self, app: ASGIApp, host_names: tuple[str, ...], *, is_secure: bool) -> None:
        self._app = app
        self._names = {name.lower() for name in host_names} | {"localhost"}
        self._more = ((b"strict-transport-security", b"max-age=31536000"),) if is_secure else ()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message["headers"]}
                added = [one for one in (*_HEADERS, *self._more) if one[0] not in given]
                if b"cache-control" not in given:
                    added.append((b"cache-control", b"no-store"))
                message["headers"] = [*message["headers"], *added]
            await send(message)

        refusal = self._refusal(scope["method"], headers)
        if refusal is not None:
            await PlainTextResponse(refusal + "\n", 421 if "Host" in refusal else 403)(scope, receive, sending)
            return
        await self._app(scope, receive, sending)

    def _refusal(self, method: str, headers: dict[str, str]) -> str | None:
        host = headers.get("host", "")
        if not self.is_known(host):
            return (
                f"This console is not known by the name in the Host header ({_printable(host)}): "
                "start it with --host-name NAME if it is yours."
            )
        if method in _SAFE:
            return (
                None if _is_own_or_link(headers) else "Another site may link to this page, and not load it by itself."
            )
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return "A change must come from a page of this console, and this one comes from another site."
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            return "A change must come from a page of this console, and this one comes from another site."
        return None

    def is_known(self, host: str) -> bool:
        try:
            name = (urlsplit(f"//{host}").hostname or "").lower()
        except ValueError:
            return False
        if name in self._names:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


def _is_own_or_link(headers: dict[str, str]) -> bool:
    """A page of somebody else can neither read nor show what it loads from here; it would only let us work for it.
    Browsers say what for they ask, other programs say nothing."""
    if headers.get("sec-fetch-site", "none") in ("same-origin", "none"):
        return True
    return headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"


def _printable(text: str) -> str:
    return "".join(character for character in text[:100] if character.isprintable())
