"""Values of records as people write them (JSON) to bytes with the id of a schema before them, and back.

The first byte is 0, the id follows in four; Protobuf also says which message of its file it is. Values are JSON as
everybody writes it: bytes are text of the same code points, and a branch of a union is not named.
"""

from __future__ import annotations

import base64
import io
import json
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from ottla.common.errors import OttlaError
from ottla.registry.client import RegistryClient
from ottla.registry.schemas import AVRO, JSON, PROTOBUF

_HEAD = struct.Struct(">bI")
_FIRST_MESSAGE = b"\x00"

Encode = Callable[[Any], bytes]
Decode = Callable[[bytes], Any]


class BadValue(OttlaError):
    """A value that does not fit its schema, or bytes that are none."""


class Values:
    """Encodes and decodes with the schemas of a registry, each of which is asked for once."""

    def __init__(self, client: RegistryClient) -> None:
        self._client = client
        self._decoders: dict[int, Decode] = {}

    def encoder(self, subject: str) -> Encode:
        """By the latest version of the subject."""
        latest = self._client.get("subjects", subject, "versions", "latest", format="serialized")
        kind, head = latest.get("schemaType", AVRO), _HEAD.pack(0, latest["id"])
        encode = _encoder(kind, latest["schema"], self._references(latest))

        def framed(value: Any) -> bytes:
            try:
                return head + encode(value)
            except BadValue:
                raise
            except Exception as error:  # whatever a library finds wrong with a value
                raise BadValue(f"the value does not fit the schema of {subject}: {error}.") from None

        return framed

    def decode(self, data: bytes) -> Any:
        if len(data) < _HEAD.size or data[0] != 0:
            raise BadValue("the value has no id of a schema before it: it was not written with a registry.")
        _, number = _HEAD.unpack_from(data)
        if number not in self._decoders:
            schema = self._client.get("schemas", "ids", number, format="serialized")
            kind = schema.get("schemaType", AVRO)
            self._decoders[number] = _decoder(kind, schema["schema"], self._references(schema))
        try:
            return self._decoders[number](data[_HEAD.size :])
        except Exception as error:
            raise BadValue(f"the value does not fit its schema {number}: {error}.") from None

    def _references(self, schema: dict[str, Any]) -> dict[str, str]:
        """The texts behind the references, deepest first."""
        found: dict[str, str] = {}
        for reference in schema.get("references") or ():
            where = ("subjects", reference["subject"], "versions", reference["version"])
            referred = self._client.get(*where, format="serialized", deleted=True)
            found |= self._references(referred)
            found[reference["name"]] = referred["schema"]
        return found


def _encoder(kind: str, text: str, references: dict[str, str]) -> Encode:
    if kind == AVRO:
        return _avro(text, references)[0]
    if kind == JSON:
        validator = _validator(text, references)

        def checked(value: Any) -> bytes:
            validator.validate(value)
            return json.dumps(value, ensure_ascii=False).encode()

        return checked
    from google.protobuf import json_format

    message = _messages(text, references)[0]
    return lambda value: _FIRST_MESSAGE + json_format.ParseDict(value, message()).SerializeToString()


def _decoder(kind: str, text: str, references: dict[str, str]) -> Decode:
    if kind == AVRO:
        return _avro(text, references)[1]
    if kind == JSON:
        return json.loads
    if kind != PROTOBUF:
        raise BadValue(f"schemas of type {kind} are not known here.")
    from google.protobuf import json_format

    file = _messages(text, references)

    def decode(data: bytes) -> Any:
        indexes, at = _indexes(data)
        message = file[indexes[0]]
        for index in indexes[1:]:
            message = _class_of(message.DESCRIPTOR.nested_types[index])
        return json_format.MessageToDict(message.FromString(data[at:]), preserving_proto_field_name=True)

    return decode


# --- Avro


def _avro(text: str, references: dict[str, str]) -> tuple[Encode, Decode]:
    from fastavro import parse_schema, schemaless_reader, schemaless_writer

    named: dict[str, Any] = {}
    for referred in references.values():
        parse_schema(json.loads(referred), named_schemas=named)
    schema = parse_schema(json.loads(text), named_schemas=named)

    def encode(value: Any) -> bytes:
        out = io.BytesIO()
        schemaless_writer(out, schema, _with_bytes(value, schema, named))
        return out.getvalue()

    def decode(data: bytes) -> Any:
        return _as_json(schemaless_reader(io.BytesIO(data), schema, None))

    return encode, decode


def _with_bytes(value: Any, schema: Any, named: dict[str, Any]) -> Any:
    """Text to bytes where the schema has bytes."""
    kind = schema.get("type") if isinstance(schema, dict) else schema
    if isinstance(schema, list):
        has_text = any((one.get("type") if isinstance(one, dict) else one) == "string" for one in schema)
        for branch in schema:
            converted = _with_bytes(value, branch, named)
            if converted is not value and not (isinstance(value, str) and has_text):
                return converted
        return value
    if kind in ("bytes", "fixed") and isinstance(value, str):
        return Decimal(value) if schema_is_decimal(schema) else value.encode("latin-1")
    if isinstance(kind, str) and kind in named and not isinstance(schema, dict):
        return _with_bytes(value, named[kind], named)
    if kind == "record" and isinstance(value, dict):
        types = {one["name"]: one["type"] for one in schema["fields"]}
        if unknown := value.keys() - types.keys():
            raise BadValue(f"the schema has no field '{min(unknown)}'.")
        return {name: _with_bytes(one, types[name], named) for name, one in value.items()}
    if kind == "array" and isinstance(value, list):
        return [_with_bytes(one, schema["items"], named) for one in value]
    if kind == "map" and isinstance(value, dict):
        return {name: _with_bytes(one, schema["values"], named) for name, one in value.items()}
    return value


def schema_is_decimal(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("logicalType") == "decimal"


def _as_json(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, dict):
        return {name: _as_json(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_as_json(one) for one in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


# --- JSON Schema and Protobuf


def _validator(text: str, references: dict[str, str]) -> Any:
    from jsonschema.validators import Draft7Validator, validator_for
    from referencing import Registry, Resource
    from referencing.jsonschema import DRAFT7

    tree = json.loads(text)
    resources = [
        (name, Resource.from_contents(json.loads(referred), default_specification=DRAFT7))
        for name, referred in references.items()
    ]
    registry: Any = Registry().with_resources(resources)
    return validator_for(tree, default=Draft7Validator)(tree, registry=registry)


def _messages(text: str, references: dict[str, str]) -> list[Any]:
    """The classes of the messages of a file, in their order."""
    from google.protobuf import descriptor_pb2, descriptor_pool

    from ottla.registry.protobuf.linking import well_known

    pool = descriptor_pool.DescriptorPool()
    files = {
        name: descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(one)) for name, one in references.items()
    }
    file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text))
    added: set[str] = set()

    def add(name: str, each: Any) -> None:
        if name in added:
            return
        added.add(name)
        each.name = name
        for dependency in each.dependency:
            found = files.get(dependency) or well_known(dependency)
            if found is not None:
                add(dependency, found)
        pool.Add(each)

    add("default", file)
    return [_class_of(one) for one in pool.FindFileByName("default").message_types_by_name.values()]


def _class_of(descriptor: Any) -> Any:
    from google.protobuf.message_factory import GetMessageClass

    return GetMessageClass(descriptor)


def _indexes(data: bytes) -> tuple[list[int], int]:
    """The place of the message in its file: a count and numbers, zigzag; one zero byte is the first message."""
    count, at = _zigzag(data, 0)
    indexes = []
    for _ in range(count):
        index, at = _zigzag(data, at)
        indexes.append(index)
    return indexes or [0], at


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return (value >> 1) ^ -(value & 1), at
