"""Values of records as people write them (JSON) to bytes with the id of a schema before them, and back.

The first byte is 0, the id follows in four; Protobuf also says which message of its file it is. Values are JSON as
everybody writes it: bytes are text of the same code points, and a branch of a union is not named.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from ottla.client.access.bearer import BearerLogin
from ottla.client.schema_registry import DEFAULT_URL, URL_VARIABLE, Refused, RegistryClient
from ottla.common.errors import OttlaError
from ottla.schemas.framing import HEAD, message_indexes
from ottla.schemas.messages import class_of, message_classes
from ottla.schemas.registered import AVRO, JSON, PROTOBUF, Registered, by_id, by_version

_FIRST_MESSAGE = b"\x00"
_NO_SUBJECT = 40401

Encode = Callable[[Any], bytes]
Decode = Callable[[bytes], Any]


class BadValue(OttlaError):
    """A value that does not fit its schema, or bytes that are none."""


class Values:
    """Encodes and decodes with the schemas of a registry, each of which is asked for once."""

    def __init__(self, client: RegistryClient, *, reader: str | None = None) -> None:
        """`reader`: a schema of Avro that everything is read by, whatever it was written with."""
        self._client = client
        self._reader = reader
        self._decoders: dict[int, Decode] = {}

    def encoder(self, subject: str) -> Encode:
        """By the latest version of the subject. Raises OttlaError, which says what to do, if there is none."""
        try:
            return self.encoder_of(by_version(self._client, subject, "latest"))
        except Refused as error:
            if error.code != _NO_SUBJECT:
                raise
            raise OttlaError(
                f"the registry has no schema '{subject}': register one with `ottla schema register {subject} FILE`."
            ) from None

    def encoder_of(self, schema: Registered) -> Encode:
        return encode_by(schema)

    def decode(self, data: bytes, subject: str | None = None) -> Any:
        """`subject`: whose context the id belongs to."""
        if len(data) < HEAD.size or data[0] != 0:
            raise BadValue("the value has no id of a schema before it: it was not written with a registry.")
        _, number = HEAD.unpack_from(data)
        if number not in self._decoders:
            schema = by_id(self._client, number, subject)
            self._decoders[number] = _decoder(schema.type, schema.text, dict(schema.references), self._reader)
        try:
            return self._decoders[number](data[HEAD.size :])
        except Exception as error:
            raise BadValue(f"the value does not fit its schema {number}: {error}.") from None


def encode_by(schema: Registered) -> Encode:
    """Writes values with the id of this schema before them. It raises BadValue for those that do not fit."""
    head = HEAD.pack(0, schema.id)
    encode = _encoder(schema.type, schema.text, dict(schema.references))

    def framed(value: Any) -> bytes:
        try:
            return head + encode(value)
        except BadValue:
            raise
        except Exception as error:  # whatever a library finds wrong with a value
            # Some say it in many lines: the first is what is wrong.
            why = str(error).strip().partition("\n")[0].rstrip(".")
            raise BadValue(f"the value does not fit the schema of {schema.subject}: {why}.") from None

    return framed


class SubjectValues:
    """Of the topics of one program: what it writes has one schema for each subject, what it reads any."""

    def __init__(
        self, url: str | None, ca: str | None, schema: str | None = None, bearer: BearerLogin | None = None
    ) -> None:
        """`schema`: Avro; what is written has it, and what is read is read by it."""
        self._client = RegistryClient(url or os.environ.get(URL_VARIABLE) or DEFAULT_URL, ca=ca, bearer=bearer)
        self._values = Values(self._client, reader=schema)
        self._schema = schema
        self._encoders: dict[str, Encode] = {}

    def encode(self, subject: str, value: Any) -> bytes:
        if subject not in self._encoders:
            self._encoders[subject] = self._values.encoder_of(self._written(subject))
        return self._encoders[subject](value)

    def decode(self, subject: str, data: bytes) -> Any:
        return self._values.decode(data, subject)

    def _written(self, subject: str) -> Registered:
        if self._schema is None:
            return by_version(self._client, subject, "latest")
        reply = self._client.post({"schema": self._schema}, "subjects", subject, "versions")
        return Registered(int(reply["id"]), AVRO, self._schema, (), subject)


def _encoder(kind: str, text: str, references: Mapping[str, str]) -> Encode:
    if kind == AVRO:
        return _avro(text, references)[0]
    if kind == JSON:
        validator = _validator(text, references)

        def checked(value: Any) -> bytes:
            problem = next(validator.iter_errors(value), None)
            if problem is not None:
                where = "".join(f"/{part}" for part in problem.absolute_path)
                raise ValueError(f"{where}: {problem.message}" if where else problem.message)
            return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()

        return checked
    from google.protobuf import json_format

    message = message_classes(text, references)[0]
    return lambda value: _FIRST_MESSAGE + json_format.ParseDict(value, message()).SerializeToString()


def _decoder(kind: str, text: str, references: Mapping[str, str], reader: str | None = None) -> Decode:
    if kind == AVRO:
        return _avro(text, references, reader)[1]
    if kind == JSON:
        return json.loads
    if kind != PROTOBUF:
        raise BadValue(f"schemas of type {kind} are not known here.")
    from google.protobuf import json_format

    file = message_classes(text, references)

    def decode(data: bytes) -> Any:
        indexes, at = message_indexes(data)
        message = file[indexes[0]]
        for index in indexes[1:]:
            message = class_of(message.DESCRIPTOR.nested_types[index])
        return json_format.MessageToDict(message.FromString(data[at:]), preserving_proto_field_name=True)

    return decode


# --- Avro


def _avro(text: str, references: Mapping[str, str], reader: str | None = None) -> tuple[Encode, Decode]:
    from fastavro import parse_schema, schemaless_reader, schemaless_writer

    named: dict[str, Any] = {}
    for referred in references.values():
        parse_schema(json.loads(referred), named_schemas=named)
    schema = parse_schema(json.loads(text), named_schemas=named)

    wanted = None if reader is None else parse_schema(json.loads(reader))

    def encode(value: Any) -> bytes:
        out = io.BytesIO()
        exact = _with_bytes(value, schema, named)
        try:
            schemaless_writer(out, schema, exact)
        except Exception as error:
            raise ValueError(_place_of(exact, schema) or str(error)) from None
        return out.getvalue()

    def decode(data: bytes) -> Any:
        return _as_json(schemaless_reader(io.BytesIO(data), schema, wanted))

    return encode, decode


def _place_of(value: Any, schema: Any) -> str | None:
    """Which field of a value it is that its schema does not take, as far as fastavro can say."""
    from fastavro.validation import ValidationError, validate

    try:
        validate(value, schema)
    except ValidationError as error:
        first = error.errors[0]
        return f"{first.field} is {first.datum!r}, and the schema has {first.schema!r}" if first.field else None
    except Exception:  # what it does not know of, the writer has named
        return None
    return None


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


# --- JSON Schema


def _validator(text: str, references: Mapping[str, str]) -> Any:
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
