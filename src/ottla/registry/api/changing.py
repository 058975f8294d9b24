"""Requests that change something: to the writer here, or to the instance that is it."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import httpx
from starlette.requests import Request
from starlette.responses import Response

from ottla.registry import changes, errors
from ottla.registry.api import access
from ottla.registry.api.answers import MEDIA_TYPE, answer
from ottla.registry.api.requests import (
    body_of,
    context_of,
    flag,
    instance_of,
    registration_of,
    subject_of,
    turn_of,
    version_of,
)
from ottla.registry.api.shapes import config_of, mode_of
from ottla.registry.changes import Decision, Registration
from ottla.registry.errors import RegistryError
from ottla.registry.instance import Forwarded
from ottla.registry.names import DEFAULT_CONTEXT, context_prefix

# As Confluent's: a request that was forwarded is not forwarded again.
_FORWARD = "x-forward"
_PASSED_ON = ("authorization", "content-type", "accept")


async def register(request: Request) -> Response:
    asked = await registration_of(request, access.WRITE)
    async with turn_of(request):
        if (there := await _already_there(request, asked)) is not None:
            return answer(there)
        return await _change(request, lambda state: changes.register(state, asked))


async def _already_there(request: Request, asked: Registration) -> dict[str, Any] | None:
    """Every instance answers for what it knows. It may know less than the writer, who refuses what is to be refused."""
    try:
        found = await asyncio.to_thread(changes.already_there, instance_of(request).state, asked)
    except RegistryError:
        return None
    return None if found is None else changes.registered(found)


async def delete_version(request: Request) -> Response:
    subject, number, permanent = subject_of(request, access.WRITE), version_of(request), flag(request, "permanent")
    return await _change(request, lambda state: changes.delete_version(state, subject, number, permanent=permanent))


async def delete_subject(request: Request) -> Response:
    subject, permanent = subject_of(request, access.WRITE), flag(request, "permanent")
    return await _change(request, lambda state: changes.delete_subject(state, subject, permanent=permanent))


async def put_config(request: Request) -> Response:
    scope, body = _scope(request), config_of(await body_of(request))
    return await _change(request, lambda state: changes.put_config(state, scope, body))


async def delete_config(request: Request) -> Response:
    scope = _scope(request)
    return await _change(request, lambda state: changes.delete_config(state, scope))


async def put_mode(request: Request) -> Response:
    scope, body, force = _scope(request), mode_of(await body_of(request)), flag(request, "force")
    return await _change(request, lambda state: changes.put_mode(state, scope, body.get("mode"), force=force))


async def delete_mode(request: Request) -> Response:
    scope = _scope(request)
    return await _change(request, partial(changes.delete_mode, subject=scope))


def _scope(request: Request) -> str | None:
    """A subject, a context as a whole, or all."""
    if "subject" in request.path_params:
        return subject_of(request, access.ADMIN, may_be_context=True)
    context = context_of(request)
    access.require(request, access.ADMIN, context_prefix(context))
    return None if context == DEFAULT_CONTEXT else context_prefix(context)


async def _change(request: Request, decide: Decision) -> Response:
    may_forward = request.headers.get(_FORWARD, "true").lower() != "false"
    try:
        return answer(await instance_of(request).change(decide, may_forward=may_forward))
    except Forwarded as forwarded:
        return await _forward(request, forwarded.url)


async def _forward(request: Request, url: str) -> Response:
    if instance_of(request).settings.scheme == "https" and not url.startswith("https:"):
        # Who writes is what the group says. A login that came over TLS goes nowhere else.
        raise errors.forwarding_failed(f"The instance that writes, {url}, has no HTTPS, and this one has")
    client: httpx.AsyncClient = request.app.state.forwarding
    headers = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
    headers |= access.passed_on(request)
    path = request.scope["raw_path"].decode("ascii")
    query = request.scope["query_string"].decode("ascii")
    target = f"{url}{path}{'?' if query else ''}{query}"
    try:
        reply = await client.request(
            request.method,
            target,
            content=getattr(request.state, "body", b""),
            headers=headers | {_FORWARD: "false"},
        )
    except httpx.HTTPError as error:
        raise errors.forwarding_failed(f"Unexpected error while forwarding the request to {url}: {error!r}") from None
    return Response(reply.content, reply.status_code, media_type=reply.headers.get("content-type", MEDIA_TYPE))
