"""Records of the topic `_schemas`, as Confluent's registry writes and reads them: JSON in key and value.

A key's bytes decide what compaction takes for the same, so its fields come in Confluent's order. A value that is null
removes what the key names.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple, TypeVar

from ottla.registry.schemas import AVRO, Reference, SchemaText, Version, frozen_json

T = TypeVar("T")

SCHEMA, CONFIG, MODE = "SCHEMA", "CONFIG", "MODE"
DELETE_SUBJECT, CLEAR_SUBJECT, CONTEXT, NOOP = "DELETE_SUBJECT", "CLEAR_SUBJECT", "CONTEXT", "NOOP"
_MAGIC = {SCHEMA: 1}
# Confluent's own records name a tenant; outside of its cloud there is one.
_TENANT = "default"


class Key(NamedTuple):
    type: str
    subject: str | None = None
    version: int | None = None
    context: str | None = None

    def encode(self) -> bytes:
        tree: dict[str, Any] = {"keytype": self.type}
        if self.type == CONTEXT:
            tree |= {"tenant": _TENANT, "context": self.context}
        elif self.type != NOOP:
            tree["subject"] = self.subject
        if self.type == SCHEMA:
            tree["version"] = self.version
        return _dump(tree | {"magic": _MAGIC.get(self.type, 0)})


class StoredRecord(NamedTuple):
    key: Key
    value: dict[str, Any] | None

    def encode(self) -> tuple[bytes, bytes | None]:
        return self.key.encode(), None if self.value is None else _dump(self.value)


class UnreadableRecord(ValueError):
    """A record that is none of a registry's."""


def decode(key: bytes | None, value: bytes | None) -> StoredRecord:
    try:
        tree = json.loads(key or b"null")
        content = None if value is None else json.loads(value)
    except (ValueError, RecursionError) as error:
        raise UnreadableRecord(f"no JSON: {error}") from None
    if not isinstance(tree, dict) or not isinstance(tree.get("keytype"), str):
        raise UnreadableRecord("the key names no keytype")
    if content is not None and not isinstance(content, dict):
        raise UnreadableRecord("the value is no JSON object")
    subject, version, context = tree.get("subject"), tree.get("version"), tree.get("context")
    if not all(isinstance(text, str | None) for text in (subject, context)) or not isinstance(version, int | None):
        raise UnreadableRecord("the key names a subject, a context or a version of another type")
    return StoredRecord(Key(tree["keytype"], subject, version, context), content)


# --- schemas


def schema_record(version: Version) -> StoredRecord:
    value: dict[str, Any] = {
        "subject": version.subject,
        "version": version.version,
        "id": version.id,
        "guid": version.guid,
    }
    value |= version.schema.as_json() | {"deleted": version.is_deleted}
    return StoredRecord(Key(SCHEMA, version.subject, version.version), value)


def version_of(subject: str, number: int, value: dict[str, Any], timestamp_ms: int | None = None) -> Version:
    """Where it belongs says the key, by which the topic is compacted."""
    try:
        schema = SchemaText(
            _of(str, value.get("schemaType") or AVRO),
            _of(str, value["schema"]),
            tuple(
                Reference(_of(str, one["name"]), _of(str, one["subject"]), _of(int, one["version"]))
                for one in value.get("references") or ()
            ),
            frozen_json(_of(dict, value.get("metadata") or {})),
            frozen_json(_of(dict, value.get("ruleSet") or {})),
        )
        schema.text.encode()
        return Version(
            subject,
            number,
            int(value["id"]),
            schema,
            bool(value.get("deleted")),
            _of(str, value.get("guid") or "") or None,
            _of(int, value.get("ts") or 0) or timestamp_ms,
        )
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise UnreadableRecord(f"a schema without what it needs: {error!r}") from None


def _of(kind: type[T], value: Any) -> T:
    if not isinstance(value, kind):
        raise TypeError(f"{str(value)[:100]} is no {kind.__name__}")
    return value


def tombstone(subject: str, version: int) -> StoredRecord:
    return StoredRecord(Key(SCHEMA, subject, version), None)


def delete_subject(subject: str, version: int) -> StoredRecord:
    """Versions up to this one."""
    return StoredRecord(Key(DELETE_SUBJECT, subject), {"subject": subject, "version": version})


def clear_subject(subject: str | None) -> StoredRecord:
    """Its deleted versions, or those of a whole context, or all."""
    return StoredRecord(Key(CLEAR_SUBJECT, subject), {"subject": subject})


def context_record(context: str) -> StoredRecord:
    return StoredRecord(Key(CONTEXT, context=context), {"tenant": _TENANT, "context": context})


# --- settings


def config_record(subject: str | None, config: dict[str, Any] | None) -> StoredRecord:
    return StoredRecord(Key(CONFIG, subject), None if config is None else {"subject": subject} | config)


def mode_record(subject: str | None, mode: str | None) -> StoredRecord:
    return StoredRecord(Key(MODE, subject), None if mode is None else {"subject": subject, "mode": mode})


def noop() -> StoredRecord:
    return StoredRecord(Key(NOOP), None)


def _dump(tree: dict[str, Any]) -> bytes:
    return json.dumps(tree, ensure_ascii=False, separators=(",", ":")).encode()
