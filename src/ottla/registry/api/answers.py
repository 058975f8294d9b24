"""An answer: JSON of Confluent's media type; errors as `{"error_code": ..., "message": ...}`."""

from __future__ import annotations

import json
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from ottla.registry.errors import RegistryError

MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
_PHRASES = {404: "HTTP 404 Not Found", 405: "HTTP 405 Method Not Allowed"}


def answer(tree: Any, status: int = 200) -> Response:
    body = json.dumps(tree, ensure_ascii=False, separators=(",", ":")).encode()
    return Response(body, status, media_type=MEDIA_TYPE)


def refusal(error: RegistryError) -> Response:
    reply = answer({"error_code": error.code, "message": error.message}, error.status)
    if error.status == 408:
        reply.headers["Connection"] = "close"  # the rest of the request may still come
    return reply


async def on_registry_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RegistryError)
    return refusal(error)


async def on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status = error.status_code
    return answer({"error_code": status, "message": _PHRASES.get(status, error.detail)}, status)


async def on_any_error(request: Request, error: Exception) -> Response:
    return answer({"error_code": 500, "message": "Internal Server Error"}, 500)
