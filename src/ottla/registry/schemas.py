"""What clients send and get: a schema's text with all that belongs to it, and a version of a subject."""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

AVRO, JSON, PROTOBUF = "AVRO", "JSON", "PROTOBUF"
TYPES = (JSON, PROTOBUF, AVRO)


class Reference(NamedTuple):
    """`name` is how the schema that refers calls it: a type, a `$ref` or an import."""

    name: str
    subject: str
    version: int

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "subject": self.subject, "version": self.version}


@dataclass(frozen=True)
class SchemaText:
    """One schema, wherever it is registered. Two that are equal have the same id within a context."""

    type: str
    text: str
    references: tuple[Reference, ...] = ()
    # As JSON text, so that they compare and hash.
    metadata: str | None = None
    rule_set: str | None = None

    def with_text(self, text: str) -> SchemaText:
        return replace(self, text=text)

    @property
    def guid(self) -> str:
        """The same in every registry that has the same schema."""
        digest = hashlib.md5(self.text.encode(), usedforsecurity=False)
        for name, subject, version in self.references:
            digest.update(name.encode() + subject.encode() + struct.pack(">i", version))
        for more in (self.metadata, self.rule_set):
            digest.update((more or "").encode())
        text = digest.hexdigest()
        return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))

    def as_json(self) -> dict[str, Any]:
        """The fields that every answer about a schema has; Avro is what a schema is unless it says otherwise."""
        tree: dict[str, Any] = {} if self.type == AVRO else {"schemaType": self.type}
        if self.references:
            tree["references"] = [reference.as_json() for reference in self.references]
        if self.metadata is not None:
            tree["metadata"] = json.loads(self.metadata)
        if self.rule_set is not None:
            tree["ruleSet"] = json.loads(self.rule_set)
        return tree | {"schema": self.text}


@dataclass(frozen=True)
class Version:
    """A schema as a version of a subject."""

    subject: str
    version: int
    id: int
    schema: SchemaText
    is_deleted: bool = False
    # What the record said; older ones do not.
    stored_guid: str | None = None
    timestamp_ms: int | None = None

    @property
    def guid(self) -> str:
        return self.stored_guid or self.schema.guid

    def deleted(self) -> Version:
        return replace(self, is_deleted=True)

    def as_json(self) -> dict[str, Any]:
        tree = {"subject": self.subject, "version": self.version, "id": self.id, "guid": self.guid}
        tree |= {"schemaType": self.schema.type} | self.schema.as_json()
        if self.timestamp_ms is not None:
            tree["ts"] = self.timestamp_ms
        return tree | ({"deleted": True} if self.is_deleted else {})


def frozen_json(tree: Any) -> str | None:
    """Equal for equal trees."""
    return None if not tree else json.dumps(tree, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
