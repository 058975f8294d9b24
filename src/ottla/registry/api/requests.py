"""What clients send: names in paths, flags in queries, schemas in bodies. Each mistake has Confluent's answer."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.requests import Request

from ottla.common.turns_by_address import TurnsByAddress, client_of
from ottla.registry import errors
from ottla.registry.api import access
from ottla.registry.api.bodies import Bodies, json_object
from ottla.registry.api.gate import name_in
from ottla.registry.api.shapes import metadata_of, rules_of
from ottla.registry.changes import Registration
from ottla.registry.errors import RegistryError
from ottla.registry.instance import Instance
from ottla.registry.names import DEFAULT_CONTEXT, context_name, in_context, meant_in, parse_subject, valid_subject
from ottla.registry.schemas import AVRO, Reference, SchemaText, frozen_json
from ottla.registry.state import RegistryState

_VERSION_MAX = 2**31 - 1
_DIGITS_MAX = 20
_NUMBER = re.compile("[+-]?[0-9]+")
_SHOWN_MAX = 100
_MEDIA_TYPES = (
    "application/vnd.schemaregistry.v1+json",
    "application/vnd.schemaregistry+json",
    "application/json",
    "application/octet-stream",
)
_SCHEMA_FIELDS = frozenset(
    """schema schemaType references metadata ruleSet id version guid subject deleted ts schemaTagsToAdd
    schemaTagsToRemove propagateSchemaTags""".split()  # noqa: SIM905
)
# Who sends these wants another schema than the one that is sent.
_TAGGING = ("schemaTagsToAdd", "schemaTagsToRemove")


def instance_of(request: Request) -> Instance:
    instance: Instance = request.app.state.instance
    return instance


def context_of(request: Request) -> str:
    """Of a path below /contexts."""
    if "context" in request.path_params:
        name = context_name(name_in(request.path_params["context"]))
        return DEFAULT_CONTEXT if name == "." else name
    return DEFAULT_CONTEXT


def subject_of(request: Request, right: str = access.READ, *, may_be_context: bool = False) -> str:
    """The subject of the path, or the one that it is an alias of; settings are an alias's own. Raises for a user who
    has not this right on it."""
    subject = in_context(context_of(request), name_in(request.path_params["subject"]))
    subject = valid_subject(subject, may_be_context=may_be_context)
    if not may_be_context:
        subject = aliased(instance_of(request).state, subject)
    access.require(request, right, subject)
    return subject


def aliased(state: RegistryState, subject: str) -> str:
    """One step only: an alias of an alias is none."""
    alias = state.configs.get(subject, {}).get("alias")
    return meant_in(parse_subject(subject).context, alias) if alias else subject


def version_of(request: Request) -> int:
    """-1 is the latest."""
    text = name_in(request.path_params["version"])
    if text.lower() in ("latest", "-1"):
        return -1
    if not _is_number(text) or not 1 <= int(text) <= _VERSION_MAX:
        raise errors.invalid_version(text[:_SHOWN_MAX])
    return int(text)


def id_of(request: Request) -> int:
    text = name_in(request.path_params["id"])
    if not _is_number(text):
        raise RegistryError(404, "HTTP 404 Not Found")
    return int(text)


def _is_number(text: str) -> bool:
    """Of a length that Python reads: more digits than these are no id and no version of anything."""
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX


def flag(request: Request, name: str) -> bool:
    return request.query_params.get(name, "").lower() == "true"


def page(request: Request, listed: list[Any]) -> list[Any]:
    """What `offset` and `limit` choose; a limit below 1 is none."""
    first = max(0, _number(request, "offset", 0))
    limit = _number(request, "limit", -1)
    return listed[first : first + limit] if limit > 0 else listed[first:]


def _number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name)
    try:
        if text is not None and not _NUMBER.fullmatch(text):
            raise ValueError(text)
        return default if text is None else int(text)
    except ValueError:
        raise RegistryError(404, "HTTP 404 Not Found") from None


def _require_json(request: Request) -> None:
    """What says that it is something else is refused, as by Confluent's; clients that say nothing are believed."""
    stated = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if stated and stated not in _MEDIA_TYPES:
        raise RegistryError(415, "HTTP 415 Unsupported Media Type")


async def body_of(request: Request) -> dict[str, Any]:
    _require_json(request)
    bodies: Bodies = request.app.state.bodies
    request.state.body = await bodies.receive(request)  # another instance may have to be asked
    return json_object(request.state.body)


async def registration_of(request: Request, right: str = access.READ) -> Registration:
    subject = subject_of(request, right)
    tree = await body_of(request)
    for name in tree:
        if name not in _SCHEMA_FIELDS:
            raise RegistryError(422, f"Unrecognized field: {name}")
    for name in _TAGGING:
        if tree.get(name):
            raise RegistryError(422, f"{name} is not supported: write the tags into the schema, or into its metadata")
    normalises = flag(request, "normalize")
    references = tuple(_reference(one) for one in _listed(tree, "references"))
    for reference in references:
        # What a schema refers to could be guessed from what is refused.
        access.require(request, access.READ, meant_in(parse_subject(subject).context, reference.subject))
    schema = SchemaText(
        _text(tree, "schemaType") or AVRO,
        _text(tree, "schema") or "",
        references,
        frozen_json(metadata_of(tree.get("metadata"))),
        frozen_json(rules_of(tree.get("ruleSet"))),
    )
    await instance_of(request).require_fits(schema.text)
    return Registration(subject, schema, normalises, _whole(tree, "id"), _version(tree))


@asynccontextmanager
async def turn_of(request: Request) -> AsyncIterator[None]:
    """To parse and compare a schema may take seconds: who sends many leaves room for others."""
    turns: TurnsByAddress = request.app.state.turns
    async with turns.of(client_of(request.scope)) as is_let:
        if not is_let:
            raise RegistryError(503, "HTTP 503 Service Unavailable")
        yield


def _text(tree: dict[str, Any], name: str) -> str | None:
    value = tree.get(name)
    if value is not None and not isinstance(value, str):
        raise RegistryError(422, f"{name} has to be text")
    return value


def _whole(tree: dict[str, Any], name: str) -> int | None:
    value = tree.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise RegistryError(422, f"{name} has to be a whole number")
    return value if value is None or value >= 0 else None


def _version(tree: dict[str, Any]) -> int | None:
    return -1 if tree.get("version") == -1 else _whole(tree, "version")


def _listed(tree: dict[str, Any], name: str) -> list[Any]:
    value = tree.get(name) or []
    if not isinstance(value, list):
        raise RegistryError(422, f"{name} has to be a list")
    return value


def _reference(tree: Any) -> Reference:
    if not isinstance(tree, dict):
        raise RegistryError(422, "a reference has to be an object")
    version = _whole(tree, "version")
    return Reference(_text(tree, "name") or "", _text(tree, "subject") or "", -1 if version is None else version)
