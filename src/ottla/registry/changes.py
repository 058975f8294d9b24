"""Requests that change something: each becomes records and a reply, from the state alone.

Nothing here writes, waits or changes the state. Whoever is the writer appends the records, reads them back, and gives
the reply then. Errors are those of the API.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ottla.registry import errors, levels, records
from ottla.registry.checking import compatibility_messages
from ottla.registry.metadata import inherited, without_version
from ottla.registry.names import DEFAULT_CONTEXT, meant_in, parse_subject, valid_subject
from ottla.registry.parsing import parse, resolve
from ottla.registry.records import StoredRecord
from ottla.registry.schemas import SchemaText, Version
from ottla.registry.state import RegistryState

MODES = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "FORWARD", "IMPORT")
_READ_ONLY = ("READONLY", "READONLY_OVERRIDE")
CONFIG_FIELDS = (
    "alias",
    "normalize",
    "validateFields",
    "compatibilityGroup",
    "defaultMetadata",
    "overrideMetadata",
    "defaultRuleSet",
    "overrideRuleSet",
)
# Schemas come with their ids, from another registry.
_IMPORTING = ("IMPORT", "FORWARD")
_ID_MAX = _VERSION_MAX = 2**31 - 1


class Change(NamedTuple):
    records: list[StoredRecord]
    reply: Any


Decision = Callable[[RegistryState], Change]


@dataclass(frozen=True)
class Registration:
    """What a client sends to register a schema. `id` and `version` are for imports; version -1 asks for a new one,
    whatever is there."""

    subject: str
    schema: SchemaText
    normalises: bool = False
    id: int | None = None
    version: int | None = None


def register(state: RegistryState, asked: Registration) -> Change:
    subject = valid_subject(asked.subject)
    mode = state.mode(subject)
    if (there := already_there(state, asked)) is not None:
        return Change([], registered(there))
    asked = _with_text(state, asked)
    _require_writable(state, subject)
    _require_mode(asked, mode)
    config = state.config(subject)
    schema = canonical(state, subject, asked.schema, normalises=asked.normalises or bool(config.get("normalize")))
    if mode not in _IMPORTING:
        before = state.latest(subject)
        schema = inherited(
            schema,
            before.schema if before is not None else None,
            config,
            state.last_number(subject) + 1,
            names_version=asked.version not in (None, 0),
        )
        existing = find(state, subject, schema)
        if existing is not None and existing.schema == schema and _is_where_asked(asked, existing):
            return Change([], registered(existing))
        if messages := compatibility_messages(state, subject, schema):
            raise errors.incompatible(f'"{subject}", details: [{", ".join(messages)}]')
    version = Version(
        subject, _next_version(state, subject, asked, mode), _id_for(state, subject, schema, asked), schema
    )
    if version.id > _ID_MAX or version.version > _VERSION_MAX:
        raise errors.store_error(f"No id or version is left for {subject}: the last one there can be is in use")
    version = replace(version, stored_guid=schema.guid)
    # The same schema, deleted before, is there again: its old places are not needed any more.
    again = [
        records.tombstone(subject, number)
        for number, old in state.versions(subject, deleted=True).items()
        if old.is_deleted and old.schema == schema and old.id == version.id and number != version.version
    ]
    context = parse_subject(subject).context
    is_saved = context == DEFAULT_CONTEXT or context in state.saved_contexts
    saved = [] if is_saved else [records.context_record(context)]
    return Change([*saved, records.schema_record(version), *again], registered(version))


def already_there(state: RegistryState, asked: Registration) -> Version | None:
    """The version that has the schema already: serialisers register whatever they write, and that changes nothing,
    so it needs no writer and is allowed in every mode. Raises what the API answers for a schema that is not valid."""
    subject = valid_subject(asked.subject)
    asked = _with_text(state, asked)
    config = state.config(subject)
    schema = canonical(state, subject, asked.schema, normalises=asked.normalises or bool(config.get("normalize")))
    existing = find(state, subject, schema, number=asked.version or None)
    is_same = existing is not None and _is_where_asked(asked, existing) and _says_nothing_new(asked.schema, existing)
    return existing if is_same else None


def _with_text(state: RegistryState, asked: Registration) -> Registration:
    """Whoever sends metadata or rules without a schema means that of the version before."""
    before = state.latest(asked.subject)
    if asked.schema.text.strip() or before is None or state.mode(asked.subject) in _IMPORTING:
        return asked
    its = before.schema
    return replace(asked, schema=replace(asked.schema, type=its.type, text=its.text, references=its.references))


def _is_where_asked(asked: Registration, existing: Version) -> bool:
    return asked.id in (None, existing.id) and asked.version in (None, 0, existing.version)


def registered(version: Version) -> dict[str, Any]:
    """Not the text: clients that sent it in another form keep theirs."""
    return {"id": version.id, "version": version.version, "guid": version.guid}


def canonical(
    state: RegistryState, subject: str, schema: SchemaText, *, normalises: bool, is_new: bool = True
) -> SchemaText:
    """As it is stored. Raises what the API answers for one that is not valid."""
    context = parse_subject(subject).context
    if not schema.text.strip():
        raise errors.invalid_schema("Empty schema")
    pinned = tuple(
        reference._replace(version=latest.version)
        if reference.version < 0 and (latest := state.latest(meant_in(context, reference.subject))) is not None
        else reference
        for reference in schema.references
    )
    schema = replace(schema, references=pinned)
    parsed = parse(schema, resolve(state, schema, context), is_new=is_new)
    text = parsed.normalised() if normalises else parsed.canonical()
    if not _is_text(text):
        raise errors.invalid_schema(
            f"Invalid schema of type {schema.type}, details: it has halves of characters, which are no text"
        )
    return schema.with_text(text)


def _is_text(text: str) -> bool:
    """JSON may have escapes of halves, which cannot be stored."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def find(
    state: RegistryState, subject: str, schema: SchemaText, *, deleted: bool = False, number: int | None = None
) -> Version | None:
    """The last version of the subject with this schema; one that names no metadata and no rules fits any.
    `number`: only this version."""
    for version in reversed(state.versions(subject, deleted=deleted).values()):
        if number not in (None, version.version):
            continue
        its = version.schema
        if schema.metadata is None:
            its = replace(its, metadata=None)
        else:
            its = replace(its, metadata=without_version(its.metadata, schema.metadata))
        if schema.rule_set is None:
            its = replace(its, rule_set=None)
        if its == schema:
            return version
    return None


def _says_nothing_new(asked: SchemaText, existing: Version) -> bool:
    its = existing.schema.metadata
    return asked.metadata in (None, its, without_version(its, asked.metadata)) and asked.rule_set in (
        None,
        existing.schema.rule_set,
    )


def _require_mode(asked: Registration, mode: str) -> None:
    if asked.id is None and mode != "READWRITE":
        raise errors.not_permitted(
            f"Subject {asked.subject} is not in read-write mode: in mode {mode} the id of the schema has to be named"
        )
    if asked.id is not None and mode not in _IMPORTING:
        raise errors.not_permitted(f"Subject {asked.subject} is not in import mode")
    if asked.id is not None and not 0 <= asked.id <= _ID_MAX:
        raise errors.not_permitted(f"The id {asked.id} is not between 0 and {_ID_MAX}")


def _id_for(state: RegistryState, subject: str, schema: SchemaText, asked: Registration) -> int:
    ids = state.ids(parse_subject(subject).context)
    if asked.id is not None and asked.id >= 0:
        if asked.id in ids.schemas and ids.schemas[asked.id].text != schema.text:
            raise errors.not_permitted(f"Overwrite new schema with id {asked.id} is not permitted.")
        return asked.id
    known = ids.of_schema.get(schema)
    return state.next_id(subject) if known is None else known


def _next_version(state: RegistryState, subject: str, asked: Registration, mode: str) -> int:
    following = state.last_number(subject) + 1
    if asked.version is None or asked.version <= 0:
        return following
    if asked.version > _VERSION_MAX:
        raise errors.invalid_version(str(asked.version))
    if mode not in _IMPORTING and asked.version != following:
        raise errors.invalid_schema("Version is not one more than previous version")
    if asked.version in state.subjects.get(subject, {}):
        raise errors.not_permitted(f"Overwrite of version {asked.version} of subject {subject} is not permitted.")
    return asked.version


# --- delete


def delete_version(state: RegistryState, subject: str, number: int, *, permanent: bool) -> Change:
    _require_writable(state, subject)
    found = (
        state.version(subject, number, deleted=True) if number >= 0 else state.version(subject, -1, deleted=permanent)
    )
    _require_unreferenced(state, subject, found.version)
    if not permanent:
        if found.is_deleted:
            raise errors.version_soft_deleted(subject, found.version)
        return Change([records.schema_record(found.deleted())], found.version)
    if not found.is_deleted:
        raise errors.version_not_soft_deleted(subject, found.version)
    is_last = len(state.versions(subject, deleted=True)) == 1
    settings = _without_settings(state, subject) if is_last else []
    return Change([records.tombstone(subject, found.version), *settings], found.version)


def delete_subject(state: RegistryState, subject: str, *, permanent: bool) -> Change:
    _require_writable(state, subject)
    alive, all_versions = state.versions(subject), state.versions(subject, deleted=True)
    if not all_versions:
        raise errors.subject_not_found(subject)
    if not permanent and not alive:
        raise errors.subject_soft_deleted(subject)
    if permanent and alive:
        raise errors.subject_not_soft_deleted(subject)
    for number in alive or all_versions:
        _require_unreferenced(state, subject, number)
    if permanent:
        gone = [records.tombstone(subject, number) for number in all_versions]
        return Change([*gone, *_without_settings(state, subject)], list(all_versions))
    return Change([records.delete_subject(subject, max(alive))], list(alive))


def _without_settings(state: RegistryState, subject: str) -> list[StoredRecord]:
    """A subject that is gone for good takes its settings along; one that may come back keeps them."""
    mode = [records.mode_record(subject, None)] if subject in state.modes else []
    return mode + ([records.config_record(subject, None)] if subject in state.configs else [])


def _require_unreferenced(state: RegistryState, subject: str, number: int) -> None:
    if state.is_referred_to(subject, number):
        raise errors.reference_exists(f"{{magic=1,keytype=SCHEMA,subject={subject},version={number}}}")


# --- settings


def put_config(state: RegistryState, subject: str | None, asked: dict[str, Any]) -> Change:
    """Fields that are not named stay as they are; null removes one."""
    _require_writable(state, subject)
    config = dict(state.configs.get(subject, {}))
    if "compatibility" in asked and asked["compatibility"] is not None:
        level = str(asked["compatibility"]).upper()
        if level not in levels.LEVELS:
            raise errors.invalid_level()
        config["compatibilityLevel"] = level
    for name in CONFIG_FIELDS:
        if name in asked:
            config[name] = asked[name]
    config = {name: value for name, value in config.items() if value is not None}
    return Change([records.config_record(subject, config)], asked)


def delete_config(state: RegistryState, subject: str | None) -> Change:
    _require_writable(state, subject)
    config = state.configs.get(subject)
    if config is None and subject is not None:
        raise errors.subject_not_found(subject)
    reply = {"compatibilityLevel": state.default_level} | (config or {})
    return Change([records.config_record(subject, None)], reply)


def put_mode(state: RegistryState, subject: str | None, mode: Any, *, force: bool) -> Change:
    if not isinstance(mode, str) or mode.upper() not in MODES:
        raise errors.invalid_mode(str(mode))
    mode = mode.upper()
    current = state.mode(subject) if subject is not None else state.modes.get(None)
    cleared = _cleared_for_import(state, subject) if mode == "IMPORT" != current and not force else []
    return Change([*cleared, records.mode_record(subject, mode)], {"mode": mode})


def delete_mode(state: RegistryState, subject: str | None) -> Change:
    mode = state.modes.get(subject)
    if mode is None and subject is not None:
        raise errors.subject_not_found(subject)
    return Change([records.mode_record(subject, None)], {"mode": mode or "READWRITE"})


def _cleared_for_import(state: RegistryState, scope: str | None) -> list[StoredRecord]:
    """Ids come from outside, so none may be in use: what is deleted goes for good, what is not stands in the way."""
    gone: list[StoredRecord] = []
    for subject in state.subjects_in(scope):
        if state.versions(subject):
            raise errors.not_permitted("Cannot import since found existing subjects")
        for number in state.versions(subject, deleted=True):
            _require_unreferenced(state, subject, number)
            gone.append(records.tombstone(subject, number))
    return [*gone, records.clear_subject(scope)]


def _require_writable(state: RegistryState, subject: str | None) -> None:
    mode = state.mode(subject) if subject is not None else state.modes.get(None)
    if mode in _READ_ONLY:
        raise errors.not_permitted(
            f"Subject {subject} is in read-only mode" if subject else "The registry is read-only"
        )
