"""All that a registry knows: what replaying the topic gives. Only `replay` changes it.

Ids belong to a context. A schema that is in several subjects of a context has one id there; an id is never used for
another schema, not even when all versions that had it are gone: the largest that was ever seen is remembered. (A
compacted topic forgets what was removed for good, so after a restart the largest is that of what is left. A version
that is removed for good was deleted before, and whoever asks for that knows that its records cannot be read any more.)
"""

from __future__ import annotations

from typing import Any

from ottla.registry import errors, records
from ottla.registry.levels import LEVELS
from ottla.registry.names import DEFAULT_CONTEXT, context_prefix, meant_in, parse_subject
from ottla.registry.records import Key, StoredRecord, UnreadableRecord
from ottla.registry.schemas import Reference, SchemaText, Version

DEFAULT_LEVEL = "BACKWARD"
DEFAULT_MODE = "READWRITE"


class Ids:
    """Those of one context."""

    def __init__(self) -> None:
        self.largest = 0
        self.of_schema: dict[SchemaText, int] = {}
        self.schemas: dict[int, SchemaText] = {}
        self.places: dict[int, dict[tuple[str, int], None]] = {}


class RegistryState:
    def __init__(self, default_level: str = DEFAULT_LEVEL) -> None:
        self.default_level = default_level
        self.subjects: dict[str, dict[int, Version]] = {}
        self.contexts: dict[str, Ids] = {DEFAULT_CONTEXT: Ids()}
        # By subject; None is for all.
        self.configs: dict[str | None, dict[str, Any]] = {}
        self.modes: dict[str | None, str] = {}
        # The places of schemas with this guid, in whatever contexts.
        self.guids: dict[str, dict[tuple[str, int], None]] = {}
        # Those that Confluent's registry would know of: it finds a context by a record of its own.
        self.saved_contexts: set[str] = set()
        # Who refers to a version of a subject.
        self.referrers: dict[tuple[str, int], dict[tuple[str, int], None]] = {}

    # --- replay

    def replay(self, record: StoredRecord, timestamp_ms: int | None = None) -> None:
        """Raises UnreadableRecord, and has changed nothing then."""
        key, value = record
        if key.type == records.SCHEMA:
            self._replay_schema(key, value, timestamp_ms)
        elif key.type == records.CONTEXT:
            self._replay_context(key, value)
        elif key.type == records.CONFIG:
            _put(self.configs, key.subject or None, value and config_in(value))
        elif key.type == records.MODE:
            _put(self.modes, key.subject or None, value and str(value.get("mode")).upper())
        elif key.type == records.DELETE_SUBJECT and value is not None:
            if not isinstance(value.get("version"), int) or key.subject is None:
                raise UnreadableRecord("a deletion without subject or version")
            self._delete_up_to(key.subject, value["version"])
        elif key.type == records.CLEAR_SUBJECT and value is not None:
            self._clear(key.subject)

    def _replay_schema(self, key: Key, value: dict[str, Any] | None, timestamp_ms: int | None) -> None:
        if key.subject is None or key.version is None:
            raise UnreadableRecord("a schema whose key has no subject or no version")
        if value is None:
            self._remove(key.subject, key.version)
            return
        version = records.version_of(key.subject, key.version, value, timestamp_ms)
        ids = self._ids_of(version.subject)
        if ids.schemas.get(version.id, version.schema) != version.schema and _has_text(ids, version):
            raise UnreadableRecord(f"id {version.id} belongs to another schema already")
        self._remove(version.subject, version.version)
        self.subjects.setdefault(version.subject, {})[version.version] = version
        ids.largest = max(ids.largest, version.id)
        ids.schemas[version.id] = version.schema
        ids.of_schema.setdefault(version.schema, version.id)
        place = (version.subject, version.version)
        ids.places.setdefault(version.id, {})[place] = None
        self.guids.setdefault(version.guid, {})[place] = None
        for reference in version.schema.references:
            self.referrers.setdefault(_place(version.subject, reference), {})[place] = None

    def _remove(self, subject: str, number: int) -> None:
        versions = self.subjects.get(subject, {})
        version = versions.pop(number, None)
        if version is None:
            return
        if not versions:
            del self.subjects[subject]
        ids, place = self._ids_of(subject), (subject, number)
        ids.places[version.id].pop(place, None)
        if not ids.places[version.id]:
            del ids.places[version.id], ids.schemas[version.id]
            if ids.of_schema.get(version.schema) == version.id:
                del ids.of_schema[version.schema]
        del self.guids[version.guid][place]
        if not self.guids[version.guid]:
            del self.guids[version.guid]
        for reference in version.schema.references:
            self.referrers.get(_place(subject, reference), {}).pop(place, None)

    def _replay_context(self, key: Key, value: dict[str, Any] | None) -> None:
        if not key.context:
            raise UnreadableRecord("a context without a name")
        if value is None:
            self.saved_contexts.discard(key.context)
        else:
            self.saved_contexts.add(key.context)

    def _delete_up_to(self, subject: str, number: int) -> None:
        versions = self.subjects.get(subject, {})
        for each, version in versions.items():
            if each <= number:
                versions[each] = version.deleted()

    def _clear(self, scope: str | None) -> None:
        for subject in self.subjects_in(scope):
            for number, version in list(self.subjects[subject].items()):
                if version.is_deleted:
                    self._remove(subject, number)

    def _ids_of(self, subject: str) -> Ids:
        return self.contexts.setdefault(parse_subject(subject).context, Ids())

    # --- look

    def next_id(self, subject: str) -> int:
        return self.ids(parse_subject(subject).context).largest + 1

    def ids(self, context: str) -> Ids:
        return self.contexts.get(context) or Ids()

    def versions(self, subject: str, *, deleted: bool = False) -> dict[int, Version]:
        """In their order; empty for a subject that is not there."""
        # A copy, since other threads than the one that replays look, too.
        its = self.subjects.get(subject, {}).copy()
        return {number: its[number] for number in sorted(its) if deleted or not its[number].is_deleted}

    def latest(self, subject: str, *, deleted: bool = False) -> Version | None:
        versions = self.versions(subject, deleted=deleted)
        return versions[max(versions)] if versions else None

    def last_number(self, subject: str) -> int:
        return max(self.subjects.get(subject, {}), default=0)

    def version(self, subject: str, number: int, *, deleted: bool = False) -> Version:
        """-1 is the latest. Raises what the API answers."""
        if not self.versions(subject, deleted=True) or (not deleted and not self.versions(subject)):
            raise errors.subject_not_found(subject)
        found = self.latest(subject, deleted=deleted) if number < 0 else self.subjects[subject].get(number)
        if found is None or (found.is_deleted and not deleted):
            raise errors.version_not_found(number)
        return found

    def is_referred_to(self, subject: str, number: int) -> bool:
        return any(
            not self.subjects[place[0]][place[1]].is_deleted for place in self.referrers.get((subject, number), {})
        )

    def subjects_in(self, scope: str | None) -> list[str]:
        """Those that a setting is for: one, those of a context, or all; deleted ones too."""
        if scope is None:
            return list(self.subjects)
        its = parse_subject(scope)
        if its.name:
            return [scope] if scope in self.subjects else []
        return [subject for subject in self.subjects if parse_subject(subject).context == its.context]

    def context_names(self) -> set[str]:
        used = {parse_subject(subject).context for subject in self.subjects}
        return {DEFAULT_CONTEXT} | used | self.saved_contexts

    # --- settings, each from the nearest that has one: the subject, its context, all

    def scope(self, subject: str) -> tuple[str | None, ...]:
        context = parse_subject(subject).context
        between = () if context == DEFAULT_CONTEXT else (context_prefix(context),)
        return (subject, *between, None)

    def mode(self, subject: str) -> str:
        if self.modes.get(None) == "READONLY_OVERRIDE":
            return "READONLY_OVERRIDE"
        return next((self.modes[scope] for scope in self.scope(subject) if scope in self.modes), DEFAULT_MODE)

    def config(self, subject: str) -> dict[str, Any]:
        """Field by field."""
        merged: dict[str, Any] = {"compatibilityLevel": self.default_level}
        for scope in reversed(self.scope(subject)):
            merged |= self.configs.get(scope, {})
        return merged

    def level(self, subject: str) -> str:
        return str(self.config(subject)["compatibilityLevel"])


def config_in(value: dict[str, Any]) -> dict[str, Any]:
    """The settings of a record. Levels were written in small letters once."""
    config = {name: setting for name, setting in value.items() if name != "subject"}
    level = config.get("compatibilityLevel")
    if level is None:
        config.pop("compatibilityLevel", None)
    elif isinstance(level, str) and level.upper() in LEVELS:
        config["compatibilityLevel"] = level.upper()
    else:
        raise UnreadableRecord(f"a level that is none: {str(level)[:100]}")
    return config


def _place(referrer: str, reference: Reference) -> tuple[str, int]:
    return meant_in(parse_subject(referrer).context, reference.subject), reference.version


def _put(table: dict[str | None, Any], name: str | None, value: Any) -> None:
    if value is None:
        table.pop(name, None)
    else:
        table[name] = value


def _has_text(ids: Ids, version: Version) -> bool:
    """Another text under this id: a version that takes the same place anew may change its own."""
    others = set(ids.places.get(version.id, {})) - {(version.subject, version.version)}
    return bool(others) and ids.schemas[version.id].text != version.schema.text
