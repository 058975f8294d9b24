"""An answer: JSON; errors as `{"error_code": ..., "message": ...}`."""

from __future__ import annotations

import json
import logging
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

from ottla.common.errors import OttlaError
from ottla.connect.worker.errors import Refused

_LOG = logging.getLogger("ottla.connect.rest")
_PHRASES = {404: "HTTP 404 Not Found", 405: "HTTP 405 Method Not Allowed"}


def answer(tree: Any, status: int = 200, **headers: str) -> Response:
    body = json.dumps(tree, ensure_ascii=False, separators=(",", ":")).encode()
    return Response(body, status, headers, media_type="application/json")


def nothing(status: int) -> Response:
    return Response(b"", status)


def refusal(status: int, sentence: str, **headers: str) -> Response:
    return answer({"error_code": status, "message": sentence}, status, **headers)


async def on_refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return refusal(error.status, error.message)


async def on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = {"Allow": ", ".join(_verbs(request))} if error.status_code == 405 else {}
    return refusal(error.status_code, _PHRASES.get(error.status_code, error.detail), **headers)


def _verbs(request: Request) -> list[str]:
    """Each is a route of its own, and Starlette names those of the first one only."""
    routes = [route for route in request.app.routes if isinstance(route, Route)]
    return sorted(
        {verb for route in routes if route.matches(request.scope)[0] is not Match.NONE for verb in route.methods or ()}
    )


async def on_ottla_error(request: Request, error: Exception) -> Response:
    """The cluster has trouble, or a target: the sentence says what."""
    assert isinstance(error, OttlaError)
    return refusal(500, str(error))


async def on_any_error(request: Request, error: Exception) -> Response:
    _LOG.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return refusal(500, "Internal Server Error")
