"""What protobuf's own runtime reads from bytes, as the row that they should become."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from ottla.schemas.messages import class_of

# By the number of a type in protobuf's descriptors.
_TYPES = {
    1: pa.float64(), 2: pa.float32(), 3: pa.int64(), 4: pa.decimal128(20, 0), 5: pa.int32(), 6: pa.decimal128(20, 0),
    7: pa.int64(), 8: pa.bool_(), 9: pa.string(), 12: pa.binary(), 13: pa.int64(), 15: pa.int32(), 16: pa.int64(),
    17: pa.int32(), 18: pa.int64(),
}  # fmt: skip
_MESSAGES, _ENUM = (10, 11), 14
_TIMESTAMP = "google.protobuf.Timestamp"
_WRAPPERS = "google/protobuf/wrappers.proto"
_MICROS_MAX = 2**63 - 1

Get = Callable[[Any], Any]


def by_library(descriptor: Any, data: bytes) -> Any:
    """The row that a message is, or the exception that says that it is none."""
    from google.protobuf.message import DecodeError

    try:
        message = class_of(descriptor).FromString(data)
        return {name: get(message) for name, _, get in _fields(descriptor)}
    except (DecodeError, UnicodeDecodeError) as error:
        return error


def _fields(descriptor: Any) -> list[tuple[str, Any, Get]]:
    return [(field.name, *_field(field)) for field in descriptor.fields]


def _field(field: Any) -> tuple[Any, Get]:
    name = field.name
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        entry = field.message_type
        key, value = entry.fields_by_name["key"], entry.fields_by_name["value"]
        (key_kind, key_of), (kind, of) = _single(key), _single(value)
        return pa.map_(key_kind, kind), lambda message: [
            (key_of(each), of(item)) for each, item in getattr(message, name).items()
        ]
    kind, of = _single(field)
    if _is_repeated(field):
        return pa.list_(pa.field("element", kind)), lambda message: [of(each) for each in getattr(message, name)]
    if field.has_presence:
        return kind, lambda message: of(getattr(message, name)) if message.HasField(name) else None
    return kind, lambda message: of(getattr(message, name))


def _micros(value: Any) -> int:
    """What does not fit becomes the last moment that does."""
    return int(min(max(value.seconds * 1_000_000 + value.nanos // 1000, -_MICROS_MAX), _MICROS_MAX))


def _is_repeated(field: Any) -> bool:
    # Newer versions of protobuf have a word for it, and warn of the label.
    return bool(field.is_repeated) if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED


def _single(field: Any) -> tuple[Any, Get]:
    if field.type == _ENUM:
        names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
        return pa.string(), lambda value: names.get(value, str(value))
    if field.type not in _MESSAGES:
        return _TYPES[field.type], lambda value: value
    if field.message_type.full_name == _TIMESTAMP:
        return pa.timestamp("us", tz="UTC"), _micros
    if field.message_type.file.name == _WRAPPERS:
        kind, _ = _single(field.message_type.fields[0])
        return kind, lambda value: value.value
    parts = _fields(field.message_type)
    kind = pa.struct([pa.field(name, part) for name, part, _ in parts])
    return kind, lambda message: {name: get(message) for name, _, get in parts}
