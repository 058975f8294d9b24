"""How requests become pages and changes.

A page is a plain function that runs in a thread, so it may ask the cluster. A change is checked first: the token of the
form, then the right to it; what it gives is a sentence that the next page shows, and so is what went wrong.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ottla.client.retrying import as_sentence
from ottla.common.errors import OttlaError
from ottla.console.web.console import Console, NotSeen, Visitor, console_of
from ottla.console.web.requests import Form, read_form
from ottla.console.web.rights import Forbidden

_log = logging.getLogger("ottla.console")

Page = Callable[[Console, Request], Response]
Endpoint = Callable[[Request], Awaitable[Response]]


class Done:
    """What a change says, and where to go then."""

    def __init__(self, sentence: str, to: str | None = None) -> None:
        self.sentence = sentence
        self.to = to


Work = Callable[[Console, Visitor, Form, Request], "Done | Response"]


class NotFound(OttlaError):
    """There is no such thing (any more)."""


def page(work: Page) -> Endpoint:
    async def answer(request: Request) -> Response:
        return await run_in_threadpool(_shown, work, request)

    return answer


def _shown(work: Page, request: Request) -> Response:
    console = console_of(request)
    try:
        return work(console, request)
    except NotFound as error:
        return console.page(request, "trouble.html", 404, title="Not here", sentence=str(error))
    except NotSeen as error:
        return console.page(request, "trouble.html", 503, title="The cluster does not answer", sentence=str(error))
    except Forbidden as error:
        return console.page(request, "trouble.html", 403, title="Not allowed", sentence=str(error))
    except (OttlaError, OSError) as error:
        return console.page(request, "trouble.html", 502, title="That did not work", sentence=str(as_sentence(error)))


def change(action: str, work: Work) -> Endpoint:
    """`action` as `rights.py` names it."""

    async def answer(request: Request) -> Response:
        console = console_of(request)
        try:
            form = await read_form(request)
        except OttlaError as error:
            return console.page(request, "trouble.html", 413, title="Too long", sentence=str(error))
        return await run_in_threadpool(_changed, action, work, request, form)

    return answer


def _changed(action: str, work: Work, request: Request, form: Form) -> Response:
    console = console_of(request)
    visitor = console.visitor(request)
    back = came_from(request)
    if (refused := token_refusal(console, request, form)) is not None:
        return refused
    try:
        visitor.require(action)
        done = work(console, visitor, form, request)
    except Forbidden as error:
        console.note(visitor, action, request.url.path, str(error))
        return console.page(request, "trouble.html", 403, title="Not allowed", sentence=str(error), back=back)
    except (OttlaError, OSError) as error:
        sentence = str(as_sentence(error))
        console.note(visitor, action, request.url.path, sentence)
        visitor.session.notices.append(("bad", sentence))
        return RedirectResponse(back, 303)
    if isinstance(done, Response):
        return done
    console.note(visitor, action, done.sentence)
    console.collector.look_now()
    visitor.session.notices.append(("ok", done.sentence))
    return RedirectResponse(done.to or back, 303)


def token_refusal(console: Console, request: Request, form: Form) -> Response | None:
    session = console.visitor(request).session
    if session.is_token(form.text("_csrf") or request.headers.get("x-csrf-token", "")):
        return None
    return console.page(
        request,
        "trouble.html",
        403,
        title="This form is too old",
        sentence="The page was opened before the console was restarted or you logged in: open it again, and send it "
        "once more. Nothing was changed.",
    )


def came_from(request: Request) -> str:
    """The page that the form was on; only ever one of our own."""
    form_page = urlsplit(request.headers.get("referer", ""))
    # Forms say it themselves; whoever hides where they come from has no referer.
    asked = request.query_params.get("back", "")
    target = asked or (form_page.path if form_page.netloc == request.headers.get("host") else "")
    return target if target.startswith("/") and not target.startswith(("//", "/\\")) else "/"
