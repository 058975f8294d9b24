"""Questions, answered by every instance from what it has replayed."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from ottla import __version__
from ottla.registry import errors
from ottla.registry.api import access
from ottla.registry.api.answers import MEDIA_TYPE, answer
from ottla.registry.api.gate import name_in
from ottla.registry.api.requests import (
    context_of,
    flag,
    id_of,
    instance_of,
    page,
    registration_of,
    subject_of,
    version_of,
)
from ottla.registry.changes import canonical, find
from ottla.registry.checking import compatibility_messages
from ottla.registry.names import DEFAULT_CONTEXT, context_prefix, parse_subject
from ottla.registry.parsing import parse, resolve
from ottla.registry.protobuf.format import ProtobufSchema
from ottla.registry.schemas import PROTOBUF, TYPES, SchemaText, Version
from ottla.registry.state import RegistryState


def state_of(request: Request) -> RegistryState:
    return instance_of(request).state


# --- schemas by id


async def schema_types(request: Request) -> Response:
    return answer(list(TYPES))


async def schema_by_id(request: Request) -> Response:
    number = id_of(request)
    schema, context = _by_id(request, number)
    tree: dict[str, Any] = {"schemaType": schema.type} | schema.as_json() | {"guid": schema.guid}
    tree["schema"] = formatted(request, schema)
    if flag(request, "fetchMaxId"):
        tree["maxId"] = state_of(request).ids(context).largest
    return answer(tree)


async def schema_text_by_id(request: Request) -> Response:
    schema, _ = _by_id(request, id_of(request))
    return PlainTextResponse(formatted(request, schema), media_type=MEDIA_TYPE)


async def schema_by_guid(request: Request) -> Response:
    guid, state = name_in(request.path_params["guid"]), state_of(request)
    if guid not in state.guids:
        raise errors.schema_not_found(guid)
    context, number = state.guids[guid]
    if not any(access.may(request, access.READ, subject) for subject, _ in state.ids(context).places[number]):
        raise errors.schema_not_found(guid)
    schema = state.ids(context).schemas[number]
    return answer({"schemaType": schema.type} | schema.as_json() | {"schema": formatted(request, schema), "guid": guid})


async def ids_by_guid(request: Request) -> Response:
    guid, state = name_in(request.path_params["guid"]), state_of(request)
    if guid not in state.guids:
        raise errors.schema_not_found(guid)
    found = [
        {"context": context, "id": number}
        for context, ids in state.contexts.items()
        for number, schema in ids.schemas.items()
        if schema.guid == guid
    ]
    return answer(found)


def _by_id(request: Request, number: int) -> tuple[SchemaText, str]:
    """In the context of the query's subject, or of the path."""
    state = state_of(request)
    named = request.query_params.get("subject")
    context = parse_subject(named).context if named else context_of(request)
    places = state.ids(context).places.get(number, {})
    if not any(access.may(request, access.READ, subject) for subject, _ in places):
        raise errors.schema_not_found(number)
    return state.ids(context).schemas[number], context


def formatted(request: Request, schema: SchemaText) -> str:
    """`format=serialized`: Protobuf as the bytes of its descriptor, in base64."""
    if request.query_params.get("format") != "serialized" or schema.type != PROTOBUF:
        return schema.text
    parsed = parse(schema, resolve(state_of(request), schema), is_new=False)
    assert isinstance(parsed, ProtobufSchema)
    return parsed.serialised()


async def places_of_id(request: Request) -> Response:
    return answer([{"subject": version.subject, "version": version.version} for version in _places(request)])


async def subjects_of_id(request: Request) -> Response:
    return answer(list(dict.fromkeys(version.subject for version in _places(request))))


def _places(request: Request) -> list[Version]:
    number = id_of(request)
    _, context = _by_id(request, number)
    state = state_of(request)
    places = state.ids(context).places[number]
    found = [state.subjects[subject][version] for subject, version in places if _may_see(request, subject)]
    wanted = sorted(found, key=lambda one: (one.subject, one.version))
    return page(request, [version for version in wanted if flag(request, "deleted") or not version.is_deleted])


async def all_schemas(request: Request) -> Response:
    state, deleted = state_of(request), flag(request, "deleted")
    prefix = request.query_params.get("subjectPrefix") or context_prefix(context_of(request))
    found = []
    for subject in sorted(state.subjects):
        if (subject.startswith(prefix) or prefix == ":*:") and _may_see(request, subject):
            versions = list(state.versions(subject, deleted=deleted).values())
            found += versions[-1:] if flag(request, "latestOnly") else versions
    return answer([version.as_json() for version in page(request, found)])


# --- subjects


async def subjects(request: Request) -> Response:
    state, deleted = state_of(request), flag(request, "deleted")
    only_deleted = flag(request, "deletedOnly") or flag(request, "deleted_only")
    prefix = request.query_params.get("subjectPrefix")
    if prefix is None:
        names = list(state.subject_names(context_of(request), deleted=deleted or only_deleted))
    else:
        wanted = "" if prefix == ":*:" else prefix
        names = [
            name
            for name in sorted(state.subjects)
            if name.startswith(wanted) and state.versions(name, deleted=deleted or only_deleted)
        ]
    if only_deleted:
        names = [name for name in names if not state.versions(name)]
    return answer(page(request, [name for name in names if _may_see(request, name)]))


def _may_see(request: Request, subject: str) -> bool:
    return access.may(request, access.READ, subject)


async def versions(request: Request) -> Response:
    subject, state = subject_of(request), state_of(request)
    only_deleted = flag(request, "deletedOnly") or flag(request, "deleted_only")
    found = state.versions(subject, deleted=flag(request, "deleted") or only_deleted)
    if not found:
        raise errors.subject_not_found(subject)
    numbers = [number for number, version in found.items() if version.is_deleted or not only_deleted]
    return answer(page(request, numbers))


async def version(request: Request) -> Response:
    found = _version(request)
    return answer(found.as_json() | {"schema": formatted(request, found.schema)})


async def version_text(request: Request) -> Response:
    return PlainTextResponse(formatted(request, _version(request).schema), media_type=MEDIA_TYPE)


def _version(request: Request) -> Version:
    return state_of(request).version(subject_of(request), version_of(request), deleted=flag(request, "deleted"))


async def referenced_by(request: Request) -> Response:
    state, found = state_of(request), _version(request)
    places = state.referrers.get((found.subject, found.version), {})
    ids = [state.subjects[subject][number] for subject, number in places]
    return answer(page(request, sorted({one.id for one in ids if flag(request, "deleted") or not one.is_deleted})))


async def latest_with_metadata(request: Request) -> Response:
    """The last version whose metadata has all properties that the query names."""
    subject, state = subject_of(request), state_of(request)
    wanted = dict(zip(request.query_params.getlist("key"), request.query_params.getlist("value"), strict=False))
    found = state.versions(subject, deleted=flag(request, "deleted"))
    if not found:
        raise errors.subject_not_found(subject)
    for each in reversed(found.values()):
        metadata = json.loads(each.schema.metadata) if each.schema.metadata else {}
        if wanted.items() <= (metadata.get("properties") or {}).items():
            return answer(each.as_json() | {"schema": formatted(request, each.schema)})
    raise errors.schema_not_found()


async def look_up(request: Request) -> Response:
    asked, state = await registration_of(request), state_of(request)
    deleted = flag(request, "deleted")
    if not state.versions(asked.subject, deleted=deleted):
        raise errors.subject_not_found(asked.subject)
    normalises = asked.normalises or bool(state.config(asked.subject).get("normalize"))
    schema = await asyncio.to_thread(canonical, state, asked.schema, normalises=normalises, is_new=False)
    found = find(state, asked.subject, schema, deleted=deleted)
    if found is None:
        raise errors.schema_not_found()
    return answer(found.as_json() | {"schema": formatted(request, found.schema)})


# --- compatibility


async def compatibility(request: Request) -> Response:
    """With all versions that the level looks at, or with the one of the path."""
    asked, state = await registration_of(request), state_of(request)
    only: list[Version] | None = None
    if "version" in request.path_params:
        number = version_of(request)
        if number < 0 and not state.versions(asked.subject):
            return answer({"is_compatible": True})
        only = [state.version(asked.subject, number)]

    def check() -> list[str]:
        schema = canonical(state, asked.schema, normalises=asked.normalises)
        return compatibility_messages(state, asked.subject, schema, only)

    messages = await asyncio.to_thread(check)
    tree: dict[str, Any] = {"is_compatible": not messages}
    if flag(request, "verbose"):
        tree["messages"] = messages
    return answer(tree)


# --- settings, contexts, the instance


async def global_config(request: Request) -> Response:
    state = state_of(request)
    return answer({"compatibilityLevel": state.default_level} | state.configs.get(_all_of(request), {}))


async def subject_config(request: Request) -> Response:
    subject, state = subject_of(request, may_be_context=True), state_of(request)
    if flag(request, "defaultToGlobal"):
        return answer(state.config(subject))
    if subject not in state.configs:
        raise errors.compatibility_not_configured(subject)
    return answer(state.configs[subject])


async def global_mode(request: Request) -> Response:
    state = state_of(request)
    return answer({"mode": state.modes.get(_all_of(request)) or state.modes.get(None, "READWRITE")})


async def subject_mode(request: Request) -> Response:
    subject, state = subject_of(request, may_be_context=True), state_of(request)
    if flag(request, "defaultToGlobal"):
        return answer({"mode": state.mode(subject)})
    if subject not in state.modes:
        raise errors.mode_not_configured(subject)
    return answer({"mode": state.modes[subject]})


def _all_of(request: Request) -> str | None:
    """Where the settings of a whole context are; None: those of all."""
    context = context_of(request)
    return None if context == DEFAULT_CONTEXT else context_prefix(context)


async def contexts(request: Request) -> Response:
    state = state_of(request)
    found = [name for name in state.contexts if name == DEFAULT_CONTEXT or any(state.subject_names(name, deleted=True))]
    return answer(page(request, sorted(found)))


async def root(request: Request) -> Response:
    return answer({})


async def cluster_id(request: Request) -> Response:
    settings = instance_of(request).settings
    return answer({"scope": {"path": [], "clusters": {"schema-registry-cluster": settings.group}}, "id": ""})


async def server_version(request: Request) -> Response:
    return answer({"version": f"ottla {__version__}", "commitId": ""})
