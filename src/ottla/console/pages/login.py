"""Who logs in: somebody of the file of users, or a user of the cluster with the password that it knows."""

from __future__ import annotations

import math

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ottla.client.access.security import AccessRefused
from ottla.client.cluster import ClusterClient
from ottla.client.retrying import as_sentence
from ottla.common.errors import OttlaError
from ottla.common.passwords import NOBODY, is_password
from ottla.console.cluster.link import Link
from ottla.console.settings import ConsoleSettings
from ottla.console.web.console import Console, console_of
from ottla.console.web.cookies import cookie
from ottla.console.web.handling import page, token_refusal
from ottla.console.web.requests import Form, read_form
from ottla.console.web.rights import ADMIN, VIEWER
from ottla.console.web.routing import Route
from ottla.console.web.sessions import Session
from ottla.console.web.words import plural

# Strangers send it.
_FORM_BYTES_MAX = 64 * 1024


def login_page(console: Console, request: Request) -> Response:
    if not console.settings.has_login or console.visitor(request).name is not None:
        return RedirectResponse("/", 303)
    return console.page(request, "login.html", problem_of_login=None, to=request.query_params.get("to", "/"))


async def login(request: Request) -> Response:
    console = console_of(request)
    try:
        form = await read_form(request, _FORM_BYTES_MAX)
    except OttlaError as error:
        return console.page(request, "trouble.html", 413, title="Too long", sentence=str(error))
    return await run_in_threadpool(_login, console, request, form)


def _login(console: Console, request: Request, form: Form) -> Response:
    if (refused := token_refusal(console, request, form)) is not None:
        return refused
    name, password, to = form.text("user"), form.text("password"), form.text("to", "/")
    address = request.client.host if request.client else ""
    keys = f"user {name}", f"address {address}"
    problem, status = None, 401
    if (wait_s := console.login_limit.attempt(*keys)) > 0:
        minutes = plural(math.ceil(wait_s / 60), "minute")
        problem, status = f"Too many wrong passwords: try again in {minutes}.", 429
    else:
        try:
            session = _session(console, name, password)
        except (OttlaError, OSError) as error:
            console.login_limit.unjudged(*keys)
            problem = f"The cluster cannot be asked who you are: {as_sentence(error)}"
            return console.page(request, "login.html", 503, problem_of_login=problem, to=to)
        if session is not None:
            console.login_limit.succeeded(*keys)
            console.sessions.end(console.visitor(request).session)
            answer = RedirectResponse(to if to.startswith("/") and not to.startswith(("//", "/\\")) else "/", 303)
            answer.headers.append("set-cookie", cookie(console, session))
            return answer
        problem = "The name or the password is wrong."
    return console.page(request, "login.html", status, problem_of_login=problem, to=to)


def _session(console: Console, name: str, password: str) -> Session | None:
    """Somebody who is let in; a new session for them."""
    settings = console.settings
    link: Link | None = None
    client: dict[str, str] | None = None
    if settings.has_sasl_login:
        own = settings.as_user(name, password)
        if not name or not _is_of_cluster(own):
            return None
        link, client = Link(own.client_settings()), dict(own.client)
        role, may_unmask = (ADMIN if name in settings.admins else VIEWER), False
    else:
        user = console.users.get(name)
        if not is_password(password, NOBODY if user is None else user.password) or user is None:
            return None
        role, may_unmask = user.role, user.may_unmask
    session = console.sessions.begin()
    session.user, session.role, session.may_unmask, session.link, session.client = name, role, may_unmask, link, client
    return session


def _is_of_cluster(own: ConsoleSettings) -> bool:
    """Raises OttlaError when the cluster cannot be asked."""
    try:
        with ClusterClient(own.client_settings().address, timeout_s=10.0) as cluster:
            cluster.any_broker()
    except AccessRefused:
        return False
    return True


async def logout(request: Request) -> Response:
    console = console_of(request)
    try:
        form = await read_form(request, _FORM_BYTES_MAX)
    except OttlaError as error:
        return console.page(request, "trouble.html", 413, title="Too long", sentence=str(error))
    if (refused := token_refusal(console, request, form)) is not None:
        return refused
    console.sessions.end(console.visitor(request).session)
    return RedirectResponse("/login", 303)


routes = [
    Route("/login", page(login_page), name="login"),
    Route("/login", login, methods=["POST"]),
    Route("/logout", logout, methods=["POST"]),
]
