"""The application: every page behind the gate, with a session for every visitor."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from ottla.console.pages import PAGES
from ottla.console.pages.login import routes as login_routes
from ottla.console.web.console import Console
from ottla.console.web.cookies import cookie, cookie_name
from ottla.console.web.gate import Gate
from ottla.console.web.routing import Route
from ottla.console.web.sessions import Session

STATIC = Path(__file__).parent / "static"
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_OPEN = ("/static/", "/login", "/health")


class Visits:
    """Gives every request its session, and sends those who have not logged in to do so."""

    def __init__(self, app: ASGIApp, console: Console) -> None:
        self._app = app
        self._console = console

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith("/static/"):
            await self._app(scope, receive, send)
            return
        console, request = self._console, Request(scope)
        name = cookie_name(console)
        session = console.sessions.find(request.cookies.get(name))
        is_new = session is None
        if session is None:
            session = console.sessions.begin()
        scope.setdefault("state", {})["session"] = session
        if console.settings.has_login and session.user is None and not scope["path"].startswith(_OPEN):
            await self._to_login(request, session, is_new)(scope, receive, send)
            return

        async def sending(message: dict[str, object]) -> None:
            if message["type"] == "http.response.start" and is_new:
                header = (b"set-cookie", cookie(console, session).encode())
                message["headers"] = [*message["headers"], header]  # type: ignore[misc]
            await send(message)

        await self._app(scope, receive, sending)  # type: ignore[arg-type]

    def _to_login(self, request: Request, session: Session, is_new: bool) -> Response:
        if request.method not in ("GET", "HEAD") or "text/html" not in request.headers.get("accept", ""):
            answer: Response = PlainTextResponse("Log in first.\n", 401)
        else:
            wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            answer = RedirectResponse("/login" if wanted == "/" else f"/login?to={quote(wanted, safe='')}", 303)
        if is_new:
            answer.headers.append("set-cookie", cookie(self._console, session))
        return answer


async def static(request: Request) -> Response:
    name = request.path_params["name"]
    path = STATIC / name
    if path.parent != STATIC or path.suffix not in _TYPES or not path.is_file():
        return PlainTextResponse("There is no such file.\n", 404)
    headers = {"cache-control": "public, max-age=86400"}
    return FileResponse(path, media_type=_TYPES[path.suffix], headers=headers)


async def health(request: Request) -> Response:
    return PlainTextResponse("ok\n")


async def on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if not hasattr(request.state, "session"):
        return PlainTextResponse(f"{error.detail}\n", error.status_code)
    console: Console = request.app.state.console
    sentence = "There is no such page." if error.status_code == 404 else str(error.detail)
    return console.page(request, "trouble.html", error.status_code, title="Not here", sentence=sentence)


async def on_any_error(request: Request, error: Exception) -> Response:
    """Starlette has it in the log."""
    return PlainTextResponse(f"The console failed at this page: {type(error).__name__}. Its log says more.\n", 500)


def build(console: Console) -> Starlette:
    routes: list[BaseRoute] = [
        Route("/static/{name}", static),
        Route("/health", health),
        *login_routes,
        *(route for page in PAGES for route in page.routes),
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: on_http_error, Exception: on_any_error})
    app.state.console = console
    app.add_middleware(Visits, console=console)
    # The last that is added is the first to be passed.
    app.add_middleware(Gate, host_names=console.settings.host_names, is_secure=console.settings.certificate is not None)
    return app
