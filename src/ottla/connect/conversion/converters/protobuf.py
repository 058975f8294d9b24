"""ProtobufConverter: messages with the id of their file before them.

| Protobuf | Kafka Connect |
|---|---|
| a message | STRUCT of its full name; optional within another |
| `repeated`, `map` | ARRAY, MAP |
| 32 bits; 64 bits, and 32 without a sign | INT32; INT64 |
| `float`, `double`, `bool`, `string`, `bytes` | FLOAT32, FLOAT64, BOOLEAN, STRING, BYTES |
| an enum | STRING, its name |
| `google.protobuf.Timestamp` | Timestamp |
| the wrappers, and `optional` | the same, optional |

What is written is a message of the schema's name, or ConnectDefault1: INT8 and INT16 are int32, Date and Time the
numbers that they are. Decimals and arrays in arrays have no type of Protobuf's own and are refused. protobuf's own
runtime reads and writes messages, so executors need it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import pyarrow as pa

from ottla.common.errors import OttlaError
from ottla.connect.api.data import DATE, DECIMAL, TIME, TIMESTAMP, Column, Schema, SchemaType
from ottla.connect.conversion.arrow import readable
from ottla.connect.conversion.converters.base import OnFailure, Piece, pieces_of
from ottla.connect.conversion.converters.registered import RegisteredConverter
from ottla.connect.conversion.errors import DataError
from ottla.connect.conversion.java_text import MILLIS_PER_DAY, millis_of, moment_of, wrapped
from ottla.connect.conversion.schemas import TIMESTAMP_SCHEMA, array_schema, logical, map_schema, struct_schema
from ottla.schemas.framing import HEAD, message_indexes
from ottla.schemas.registered import PROTOBUF, Registered, by_id

_KINDS = {
    1: SchemaType.FLOAT64, 2: SchemaType.FLOAT32, 3: SchemaType.INT64, 4: SchemaType.INT64, 5: SchemaType.INT32,
    6: SchemaType.INT64, 7: SchemaType.INT64, 8: SchemaType.BOOLEAN, 9: SchemaType.STRING, 12: SchemaType.BYTES,
    13: SchemaType.INT64, 14: SchemaType.STRING, 15: SchemaType.INT32, 16: SchemaType.INT64, 17: SchemaType.INT32,
    18: SchemaType.INT64,
}  # fmt: skip
_WORDS = {
    SchemaType.INT8: "int32", SchemaType.INT16: "int32", SchemaType.INT32: "int32", SchemaType.INT64: "int64",
    SchemaType.FLOAT32: "float", SchemaType.FLOAT64: "double", SchemaType.BOOLEAN: "bool", SchemaType.STRING: "string",
    SchemaType.BYTES: "bytes",
}  # fmt: skip
_ENUM, _MESSAGES = 14, (10, 11)
_TIMESTAMP, _WRAPPERS = "google.protobuf.Timestamp", "google/protobuf/wrappers.proto"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)

Get = Callable[[Any], Any]


class ProtobufConverter(RegisteredConverter):
    class_name = "io.confluent.connect.protobuf.ProtobufConverter"
    kind = PROTOBUF

    # --- bytes to columns

    def read(self, schema: Registered, data: Any, on_failure: OnFailure) -> Piece:
        from google.protobuf.message import DecodeError

        found: dict[Schema | None, tuple[list[int], list[Any]]] = {}
        for at, value in enumerate(data.to_pylist()):
            try:
                place, begin = message_indexes(value, HEAD.size)
                message, made, get = _reader(schema, place)
                read = get(message.FromString(value[begin:]))
            except (DecodeError, IndexError) as error:
                on_failure(at, DataError(f"the value is no message of its schema: {error}."))
                continue
            places, values = found.setdefault(made, ([], []))
            places.append(at)
            values.append(read)
        if len(found) > 1:
            raise DataError("a topic with several messages of one Protobuf file is not known here.")
        pieces = pieces_of(found, len(data), on_failure)
        return pieces[0] if pieces else Piece(Column(None, []), pa.array([], pa.int64()))

    # --- columns to bytes

    def text_of(self, schema: Schema) -> str:
        return _file_text(schema)

    def registered(self, number: int, text: str, subject: str) -> Registered:
        # As its descriptor, which only the registry has.
        return by_id(self.client, number, subject)

    def write(self, schema: Registered, column: Column, on_failure: OnFailure) -> Any:
        assert column.schema is not None
        head = HEAD.pack(0, schema.id) + b"\x00"
        message, fill = _classes(schema)[0], _filler(column.schema)
        found: list[bytes | None] = [None] * len(column)
        for at, value in readable(column, on_failure):
            try:
                made = message()
                fill(made, value)
                found[at] = head + made.SerializeToString()
            except (ValueError, TypeError, AttributeError, OttlaError) as error:
                on_failure(at, DataError(f"a value does not fit its message: {error}."))
        return pa.array(found, pa.binary())


@lru_cache(maxsize=64)
def _classes(schema: Registered) -> list[Any]:
    try:
        from ottla.schemas.messages import message_classes

        return message_classes(schema.text, dict(schema.references))
    except ImportError:
        raise OttlaError("ProtobufConverter needs protobuf: run `pip install 'protobuf>=5'`.") from None


@lru_cache(maxsize=64)
def _reader(schema: Registered, place: tuple[int, ...]) -> tuple[Any, Schema, Get]:
    from ottla.schemas.messages import class_of

    message = _classes(schema)[place[0]]
    for index in place[1:]:
        message = class_of(message.DESCRIPTOR.nested_types[index])
    made, get = _message(message.DESCRIPTOR, ())
    return message, made, get


def _message(descriptor: Any, above: tuple[str, ...]) -> tuple[Schema, Get]:
    if descriptor.full_name in above:
        raise DataError(f"the message '{descriptor.full_name}' contains itself: there are no columns for that.")
    parts = [(field.name, *_field(field, (*above, descriptor.full_name))) for field in descriptor.fields]
    made = struct_schema([(name, schema) for name, schema, _ in parts])
    gets = [(name, get) for name, _, get in parts]
    return replace(made, name=descriptor.full_name), lambda message: {name: get(message) for name, get in gets}


def _field(field: Any, above: tuple[str, ...]) -> tuple[Schema, Get]:
    name = field.name
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        parts = field.message_type.fields_by_name
        (key, key_of), (value, of) = _single(parts["key"], above), _single(parts["value"], above)
        return map_schema(key, value), lambda message: [
            (key_of(each), of(item)) for each, item in getattr(message, name).items()
        ]
    made, of = _single(field, above)
    repeated = field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED
    if repeated:
        return array_schema(made), lambda message: [of(each) for each in getattr(message, name)]
    if field.has_presence:
        return replace(
            made, optional=True
        ), lambda message: of(getattr(message, name)) if message.HasField(name) else None
    return made, lambda message: of(getattr(message, name))


def _single(field: Any, above: tuple[str, ...]) -> tuple[Schema, Get]:
    if field.type == _ENUM:
        names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
        return Schema(SchemaType.STRING), lambda value: names.get(value, str(value))
    if field.type in (4, 6):
        return Schema(SchemaType.INT64), lambda value: wrapped(value, 64)
    if field.type not in _MESSAGES:
        return Schema(_KINDS[field.type]), lambda value: value
    if field.message_type.full_name == _TIMESTAMP:
        return TIMESTAMP_SCHEMA, lambda value: moment_of(value.seconds * 1000 + value.nanos // 1_000_000)
    if field.message_type.file.name == _WRAPPERS:
        made, _ = _single(field.message_type.fields[0], above)
        return replace(made, optional=True), lambda value: value.value
    return _message(field.message_type, above)


# --- what is written


def _file_text(schema: Schema) -> str:
    if schema.type is not SchemaType.STRUCT:
        raise DataError("ProtobufConverter writes structs only: HoistField makes one.")
    space, _, simple = (schema.name or "ConnectDefault1").rpartition(".")
    if not all(_NAME.fullmatch(part) for part in (schema.name or "ConnectDefault1").split(".")):
        raise DataError(f"'{schema.name}' is no name of a message in Protobuf: SetSchemaMetadata gives another.")
    body = "\n".join(_message_text(simple, schema, "", [0]))
    imports = 'import "google/protobuf/timestamp.proto";\n' if _TIMESTAMP in body else ""
    package = f"package {space};\n" if space else ""
    return f'syntax = "proto3";\n{package}{imports}\n{body}\n'


def _message_text(name: str, schema: Schema, indent: str, count: list[int]) -> list[str]:
    lines, inner = [], f"{indent}  "
    fields = []
    for number, each in enumerate(schema.fields, 1):
        if not _NAME.fullmatch(each.name):
            raise DataError(f"'{each.name}' is no name of a field in Protobuf: ReplaceField gives another.")
        nested: list[str] = []
        word = _type_text(each.schema, each.name, inner, nested, count)
        lines += nested
        fields.append(f"{inner}{word} {each.name} = {number};")
    return [f"{indent}message {name} {{", *lines, *fields, f"{indent}}}"]


def _type_text(
    schema: Schema, name: str, indent: str, nested: list[str], count: list[int], *, inside: bool = False
) -> str:
    if schema.type in (SchemaType.ARRAY, SchemaType.MAP) and inside:
        raise DataError("an array or a map within another has no type of Protobuf's: Flatten or Cast it first.")
    if schema.type is SchemaType.ARRAY:
        assert schema.value_schema is not None
        item = replace(schema.value_schema, optional=False)
        return f"repeated {_type_text(item, name, indent, nested, count, inside=True)}"
    if schema.type is SchemaType.MAP:
        assert schema.key_schema is not None and schema.value_schema is not None
        key = _WORDS.get(schema.key_schema.type, "")
        if key not in ("int32", "int64", "bool", "string"):
            raise DataError("keys of a map are integers, booleans or strings in Protobuf.")
        value = _type_text(replace(schema.value_schema, optional=False), name, indent, nested, count, inside=True)
        return f"map<{key}, {value}>"
    if schema.type is SchemaType.STRUCT:
        count[0] += 1
        simple = (schema.name or "").rpartition(".")[2]
        kind = simple if _NAME.fullmatch(simple) and simple != name else f"ConnectDefault{count[0] + 1}"
        nested += _message_text(kind, schema, indent, count)
        return kind
    if logical(schema) == DECIMAL:
        raise DataError("ProtobufConverter writes no decimals: Cast them to string or float64 first.")
    word = _TIMESTAMP if logical(schema) == TIMESTAMP else _WORDS[schema.type]
    return f"optional {word}" if schema.optional and word != _TIMESTAMP else word


def _filler(schema: Schema) -> Callable[[Any, Any], None]:
    def fill(message: Any, value: dict[str, Any]) -> None:
        for each in schema.fields:
            part = value.get(each.name)
            if part is None:
                if each.schema.default is None:
                    if not each.schema.optional:
                        raise DataError(f"the field '{each.name}' is null, and its schema is not optional")
                    continue
                part = each.schema.default
            _put(message, each.name, each.schema, part)

    return fill


def _put(message: Any, name: str, schema: Schema, value: Any) -> None:
    if schema.type is SchemaType.ARRAY:
        assert schema.value_schema is not None
        into = getattr(message, name)
        for item in value:
            if _is_message(schema.value_schema):
                _fill(into.add(), schema.value_schema, item)
            else:
                into.append(_plain(schema.value_schema, item))
    elif schema.type is SchemaType.MAP:
        assert schema.key_schema is not None and schema.value_schema is not None
        into = getattr(message, name)
        for key, item in value:
            if _is_message(schema.value_schema):
                _fill(into[key], schema.value_schema, item)
            else:
                into[key] = _plain(schema.value_schema, item)
    elif _is_message(schema):
        part = getattr(message, name)
        part.SetInParent()
        _fill(part, schema, value)
    else:
        setattr(message, name, _plain(schema, value))


def _is_message(schema: Schema) -> bool:
    return schema.type is SchemaType.STRUCT or logical(schema) == TIMESTAMP


def _fill(message: Any, schema: Schema, value: Any) -> None:
    if value is None:
        raise DataError("an element is null, which Protobuf does not have")
    if schema.type is SchemaType.STRUCT:
        _filler(schema)(message, value)
    else:
        millis = millis_of(value)
        message.seconds, message.nanos = millis // 1000, millis % 1000 * 1_000_000


def _plain(schema: Schema, value: Any) -> Any:
    name = logical(schema)
    if name == DATE:
        return millis_of(value) // MILLIS_PER_DAY
    return millis_of(value) if name == TIME else value
