"""Records of the topic `_schemas`, as Confluent's registry writes and reads them: JSON in key and value.

A key's bytes decide what compaction takes for the same, so its fields come in Confluent's order. A value that is null
removes what the key names.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from ottla.registry.schemas import AVRO, Reference, SchemaText, Version, frozen_json

SCHEMA, CONFIG, MODE = "SCHEMA", "CONFIG", "MODE"
DELETE_SUBJECT, CLEAR_SUBJECT, NOOP = "DELETE_SUBJECT", "CLEAR_SUBJECT", "NOOP"
_MAGIC = {SCHEMA: 1}


class Key(NamedTuple):
    type: str
    subject: str | None = None
    version: int | None = None

    def encode(self) -> bytes:
        tree: dict[str, Any] = {"keytype": self.type}
        if self.type != NOOP:
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
    except ValueError as error:
        raise UnreadableRecord(f"no JSON: {error}") from None
    if not isinstance(tree, dict) or not isinstance(tree.get("keytype"), str):
        raise UnreadableRecord("the key names no keytype")
    if content is not None and not isinstance(content, dict):
        raise UnreadableRecord("the value is no JSON object")
    return StoredRecord(Key(tree["keytype"], tree.get("subject"), tree.get("version")), content)


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


def version_of(value: dict[str, Any], timestamp_ms: int | None = None) -> Version:
    try:
        schema = SchemaText(
            value.get("schemaType") or AVRO,
            value["schema"],
            tuple(Reference(one["name"], one["subject"], one["version"]) for one in value.get("references") or ()),
            frozen_json(value.get("metadata")),
            frozen_json(value.get("ruleSet")),
        )
        return Version(
            value["subject"],
            int(value["version"]),
            int(value["id"]),
            schema,
            bool(value.get("deleted")),
            value.get("guid"),
            value.get("ts") or timestamp_ms,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise UnreadableRecord(f"a schema without what it needs: {error!r}") from None


def tombstone(subject: str, version: int) -> StoredRecord:
    return StoredRecord(Key(SCHEMA, subject, version), None)


def delete_subject(subject: str, version: int) -> StoredRecord:
    """Versions up to this one."""
    return StoredRecord(Key(DELETE_SUBJECT, subject), {"subject": subject, "version": version})


# --- settings


def config_record(subject: str | None, config: dict[str, Any] | None) -> StoredRecord:
    return StoredRecord(Key(CONFIG, subject), None if config is None else {"subject": subject} | config)


def mode_record(subject: str | None, mode: str | None) -> StoredRecord:
    return StoredRecord(Key(MODE, subject), None if mode is None else {"subject": subject, "mode": mode})


def noop() -> StoredRecord:
    return StoredRecord(Key(NOOP), None)


def _dump(tree: dict[str, Any]) -> bytes:
    return json.dumps(tree, ensure_ascii=False, separators=(",", ":")).encode()
