"""Columns to values with the id of a schema before them: by a registered schema, or by one that follows from them."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache
from typing import Any, Protocol

import pyarrow as pa

from ottla.common.errors import OttlaError
from ottla.common.schemas import InvalidSchema
from ottla.schemas.avro.writing import Written, record_name, schema_of, type_of, written
from ottla.schemas.framing import HEAD
from ottla.schemas.json_writing import json_schema_of
from ottla.schemas.protobuf_writing import message_name, protobuf_of
from ottla.schemas.registered import AVRO, JSON, PROTOBUF, Registered, parse_avro
from ottla.schemas.registry import SchemaRegistry


class ColumnEncoder(Protocol):
    # What rows have to be converted to first; None: they are taken as they are.
    type: Any

    def encode(self, rows: Any) -> Any:
        """Of an array of structs, bytes for each. Raises OttlaError for a row that does not fit."""


def registered_for(
    registry: SchemaRegistry, kind: Any, topic: str, *, part: str = "value", registers: bool = True
) -> Registered:
    """The schema that rows of this type are written with: registered here, if that is asked for. Without `registers`
    it is only seen whether it could be, and has no id. `kind`: a struct is a record, anything else its own type."""
    where = registry.for_topic(topic, part)
    assert where.subject is not None
    if not registry.auto_register:
        return where.schema()
    text = _schema_from(where, kind, topic if part == "value" else f"{topic}_{part}")
    body = {"schema": text, "schemaType": registry.format}
    if not registers:
        _require_compatible(where, body)
        return Registered(0, registry.format, text, (), where.subject)
    number = int(where.client().post(body, "subjects", where.subject, "versions")["id"])
    return Registered(number, registry.format, text, (), where.subject)


def _schema_from(where: SchemaRegistry, kind: Any, called: str) -> str:
    """The text of the schema that follows from columns."""
    if where.format == JSON:
        return json.dumps(json_schema_of(kind, record_name(called)), separators=(",", ":"), ensure_ascii=False)
    if where.format == PROTOBUF:
        return protobuf_of(kind, message_name(called), replace(where, version="latest").schema_if_any())
    name = record_name(called)
    tree = schema_of(kind, name) if pa.types.is_struct(kind) else type_of(kind, name)
    return json.dumps(tree, separators=(",", ":"))


def _require_compatible(where: SchemaRegistry, body: dict[str, str]) -> None:
    path = ("compatibility", "subjects", where.subject, "versions")
    reply = where.client().post(body, *path, verbose=True)
    if not reply["is_compatible"]:
        messages = "; ".join(reply.get("messages") or ["it is not compatible"])
        raise OttlaError(f"the subject '{where.subject}' would refuse the schema of these columns: {messages}.")


def is_plain(schema: Registered) -> bool:
    """Of one type that has no fields: what is written is a struct whose one part is called `value`."""
    if schema.type == AVRO:
        return not parse_avro(schema).is_record
    if schema.type != JSON:
        return False
    tree = json.loads(schema.text)
    named = tree.get("type", "object") if isinstance(tree, dict) else "object"
    return named != "object" and not (isinstance(named, list) and "object" in named)


@lru_cache(maxsize=64)
def encoder_for(registry: SchemaRegistry, schema: Registered, names: tuple[str, ...]) -> ColumnEncoder:
    """`names`: of the columns. Raises OttlaError where they do not fit the schema."""
    if schema.type == AVRO:
        return AvroRows(schema, list(names))
    if schema.type == PROTOBUF:
        from ottla.schemas.protobuf_rows import ProtobufRows

        return ProtobufRows(schema, registry.message, list(names))
    from ottla.schemas.json_rows import JsonRows

    return JsonRows(schema, is_plain=is_plain(schema))


class AvroRows:
    def __init__(self, schema: Registered, names: list[str]) -> None:
        self._head = HEAD.pack(0, schema.id)
        try:
            self._written: Written = written(parse_avro(schema), names)
        except InvalidSchema as error:
            raise OttlaError(f"the schema {schema.id} of the registry cannot be read: {error}.") from None
        self.type = self._written.type

    def encode(self, rows: Any) -> Any:
        return self._written.encode(rows, self._head)
