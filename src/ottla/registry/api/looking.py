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
    aliased,
    context_of,
    flag,
    id_of,
    instance_of,
    page,
    registration_of,
    subject_of,
    turn_of,
    version_of,
)
from ottla.registry.changes import canonical, find
from ottla.registry.checking import compatibility_messages
from ottla.registry.errors import RegistryError
from ottla.registry.names import ANY_CONTEXT, DEFAULT_CONTEXT, context_prefix, has_prefix, in_context, parse_subject
from ottla.registry.parsing import parse, resolve
from ottla.registry.protobuf.format import ProtobufSchema
from ottla.registry.schemas import PROTOBUF, TYPES, SchemaText, Version
from ottla.registry.state import RegistryState

_PREFIXES_MAX = 20


def state_of(request: Request) -> RegistryState:
    return instance_of(request).state


# --- schemas by id


async def schema_types(request: Request) -> Response:
    return answer(list(TYPES))


async def schema_by_id(request: Request) -> Response:
    number = id_of(request)
    schema, context = _by_id(request, number)
    tree: dict[str, Any] = {"schemaType": schema.type} | schema.as_json() | {"guid": schema.guid}
    tree["schema"] = await formatted(request, schema, context)
    if flag(request, "fetchMaxId"):
        tree["maxId"] = state_of(request).ids(context).largest
    return answer(tree)


async def schema_text_by_id(request: Request) -> Response:
    schema, context = _by_id(request, id_of(request))
    return PlainTextResponse(await formatted(request, schema, context), media_type=MEDIA_TYPE)


async def schema_by_guid(request: Request) -> Response:
    guid, found = _with_guid(request)
    schema, context = found[0].schema, parse_subject(found[0].subject).context
    text = await formatted(request, schema, context)
    return answer({"schemaType": schema.type} | schema.as_json() | {"schema": text, "guid": guid})


async def ids_by_guid(request: Request) -> Response:
    _, found = _with_guid(request)
    places = dict.fromkeys((parse_subject(version.subject).context, version.id) for version in found)
    return answer([{"context": context, "id": number} for context, number in places])


def _with_guid(request: Request) -> tuple[str, list[Version]]:
    """The versions that the user may see; there is at least one."""
    guid, state = name_in(request.path_params["guid"]), state_of(request)
    places = [place for place in state.guids.get(guid, {}) if _may_see(request, place[0])]
    if not places:
        raise errors.schema_not_found(guid)
    return guid, [state.subjects[subject][number] for subject, number in places]


def _by_id(request: Request, number: int) -> tuple[SchemaText, str]:
    """In the context of the query's subject, or of the path."""
    state = state_of(request)
    context = _context_of_id(request, number)
    places = state.ids(context).places.get(number, {})
    if not any(_may_see(request, subject) for subject, _ in places):
        raise errors.schema_not_found(number)
    return state.ids(context).schemas[number], context


def _context_of_id(request: Request, number: int) -> str:
    """Clients that know of no contexts name a subject only: if the id is none of its ids in the default context, it is
    looked for in the other contexts that have such a subject."""
    state, context = state_of(request), context_of(request)
    if not (given := request.query_params.get("subject")):
        return context
    named = parse_subject(aliased(state, in_context(context, given)))
    if named.context != DEFAULT_CONTEXT:
        return named.context
    for other in (DEFAULT_CONTEXT, *sorted(state.contexts)):
        if any(parse_subject(subject).name == named.name for subject, _ in state.ids(other).places.get(number, {})):
            return other
    return DEFAULT_CONTEXT


async def formatted(request: Request, schema: SchemaText, context: str) -> str:
    """`format=serialized`: Protobuf as the bytes of its descriptor, in base64."""
    if request.query_params.get("format") != "serialized" or schema.type != PROTOBUF:
        return schema.text
    # To read a large file takes seconds.
    return await asyncio.to_thread(_serialised, state_of(request), schema, context)


def _serialised(state: RegistryState, schema: SchemaText, context: str) -> str:
    parsed = parse(schema, resolve(state, schema, context), is_new=False)
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
    found = []
    for subject in _listed(request):
        versions = list(state.versions(subject, deleted=deleted).values())
        found += versions[-1:] if flag(request, "latestOnly") else versions
    return answer([version.as_json() for version in page(request, found)])


# --- subjects


async def subjects(request: Request) -> Response:
    state, deleted = state_of(request), flag(request, "deleted")
    only_deleted = flag(request, "deletedOnly") or flag(request, "deleted_only")
    names = [name for name in _listed(request) if state.versions(name, deleted=deleted or only_deleted)]
    if only_deleted:
        names = [name for name in names if not state.versions(name)]
    return answer(page(request, names))


def _listed(request: Request) -> list[str]:
    """Subjects that the user may see, in order: those with one of the prefixes of the query. Without a prefix those of
    the context of the path, or of all."""
    prefixes = list(dict.fromkeys(request.query_params.getlist("subjectPrefix")))
    if len(prefixes) > _PREFIXES_MAX:
        # Each is looked for in the name of every subject, while everybody waits.
        raise RegistryError(422, f"subjectPrefix is given more than {_PREFIXES_MAX} times")
    if prefixes or "context" in request.path_params:
        prefixes = [in_context(context_of(request), prefix) for prefix in prefixes or [""]]
    else:
        prefixes = [ANY_CONTEXT]
    return [
        subject
        for subject in sorted(state_of(request).subjects)
        if any(has_prefix(subject, prefix) for prefix in prefixes) and _may_see(request, subject)
    ]


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
    return answer(await _whole(request, found))


async def version_text(request: Request) -> Response:
    whole = await _whole(request, _version(request))
    return PlainTextResponse(whole["schema"], media_type=MEDIA_TYPE)


async def _whole(request: Request, found: Version) -> dict[str, Any]:
    return found.as_json() | {"schema": await formatted(request, found.schema, parse_subject(found.subject).context)}


def _version(request: Request) -> Version:
    return state_of(request).version(subject_of(request), version_of(request), deleted=flag(request, "deleted"))


async def referenced_by(request: Request) -> Response:
    state, found = state_of(request), _version(request)
    places = state.referrers.get((found.subject, found.version), {})
    ids = [state.subjects[subject][number] for subject, number in places if _may_see(request, subject)]
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
            return answer(await _whole(request, each))
    raise errors.schema_not_found()


async def look_up(request: Request) -> Response:
    asked, state = await registration_of(request), state_of(request)
    deleted = flag(request, "deleted")
    if not state.versions(asked.subject, deleted=deleted):
        raise errors.subject_not_found(asked.subject)
    normalises = asked.normalises or bool(state.config(asked.subject).get("normalize"))
    async with turn_of(request):
        schema = await asyncio.to_thread(
            canonical, state, asked.subject, asked.schema, normalises=normalises, is_new=False
        )
    found = find(state, asked.subject, schema, deleted=deleted)
    if found is None:
        raise errors.schema_not_found()
    return answer(await _whole(request, found))


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
        schema = canonical(state, asked.subject, asked.schema, normalises=asked.normalises)
        return compatibility_messages(state, asked.subject, schema, only)

    async with turn_of(request):
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
    seen = {parse_subject(subject).context for subject in state.subjects if _may_see(request, subject)}
    hidden = {parse_subject(subject).context for subject in state.subjects} - seen
    return answer(page(request, sorted(state.context_names() - hidden | {DEFAULT_CONTEXT})))


async def root(request: Request) -> Response:
    return answer({})


async def cluster_id(request: Request) -> Response:
    settings = instance_of(request).settings
    return answer({"scope": {"path": [], "clusters": {"schema-registry-cluster": settings.group}}, "id": ""})


async def server_version(request: Request) -> Response:
    return answer({"version": f"ottla {__version__}", "commitId": ""})
