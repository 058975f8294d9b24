"""Protobuf with the id of a schema before it, to columns that follow from the reader's message.

| Protobuf | Arrow, and so Spark |
|---|---|
| a message | a struct of its fields; null where it is not there |
| `repeated`, `map` | a list, a map |
| 32 bits with a sign; without, and 64 bits with one; 64 bits without | int; long; decimal(20, 0) |
| `float`, `double`, `bool`, `string`, `bytes` | the same |
| an enum | the name, or the number of one that the reader does not know, as text |
| `google.protobuf.Timestamp` | timestamp, in microseconds |
| the wrappers, as `google.protobuf.StringValue` | what they wrap |

Fields go by their numbers, so the schema of the writer does not matter: what the reader does not know is passed over,
what the writer does not have is null where the field can tell that (`optional`, a oneof, a message), else its default.
protobuf's own runtime reads the messages, so executors need it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from ottla.common.errors import OttlaError
from ottla.schemas.framing import HEAD, message_indexes
from ottla.schemas.registered import Registered

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


class ProtobufColumns:
    def __init__(self, reader: Registered, message: str | None) -> None:
        try:
            from ottla.schemas.messages import message_classes

            classes = message_classes(reader.text, dict(reader.references))
        except ImportError:
            raise OttlaError("schemas of Protobuf need protobuf: run `pip install 'protobuf>=5'`.") from None
        self._message, self._place = _chosen(classes, message, reader.id)
        self._fields = _fields(self._message.DESCRIPTOR, ())
        self.type = pa.struct([pa.field(name, kind) for name, kind, _ in self._fields])

    def decode(self, values: Any) -> tuple[Any, Any]:
        from google.protobuf.message import DecodeError

        messages: list[Any] = []
        reasons: list[str | None] = []
        for value in values.to_pylist():
            message, reason = None, None
            if value is not None:
                try:
                    message, reason = self._read(value)
                except (DecodeError, IndexError) as error:
                    reason = f"the value is no message '{self._message.DESCRIPTOR.full_name}': {error}"
            messages.append(message)
            reasons.append(reason)
        is_null = pa.array([message is None for message in messages])
        columns = [
            pa.array([None if message is None else get(message) for message in messages], kind)
            for _, kind, get in self._fields
        ]
        return pa.StructArray.from_arrays(columns, fields=list(self.type), mask=is_null), pa.array(reasons, pa.string())

    def _read(self, data: bytes) -> tuple[Any, str | None]:
        if len(data) < HEAD.size or data[0] != 0:
            return None, "the value has no id of a schema before it: it was not written with a registry"
        place, at = message_indexes(data, HEAD.size)
        if place != self._place:
            name = self._message.DESCRIPTOR.full_name
            return None, f"the value is another message of its file than '{name}'"
        return self._message.FromString(data[at:]), None


def _chosen(classes: list[Any], name: str | None, number: int) -> tuple[Any, tuple[int, ...]]:
    """The message, and where it is in its file."""
    from ottla.schemas.messages import class_of

    found: dict[str, tuple[Any, tuple[int, ...]]] = {}

    def walk(each: Any, place: tuple[int, ...]) -> None:
        found[each.DESCRIPTOR.full_name] = (each, place)
        for index, nested in enumerate(each.DESCRIPTOR.nested_types):
            walk(class_of(nested), (*place, index))

    for index, each in enumerate(classes):
        walk(each, (index,))
    if not found:
        raise OttlaError(f"the schema {number} has no message.")
    if name is None:
        return classes[0], (0,)
    for full, chosen in found.items():
        if name in (full, full.rpartition(".")[2]):
            return chosen
    raise OttlaError(f"the schema {number} has no message '{name}': it has {', '.join(found)}.")


def _fields(descriptor: Any, above: tuple[str, ...]) -> list[tuple[str, Any, Get]]:
    if descriptor.full_name in above:
        raise OttlaError(
            f"the message '{descriptor.full_name}' contains itself: Spark has no columns for that. Read the topic "
            "without a schema."
        )
    within = (*above, descriptor.full_name)
    return [(field.name, *_field(field, within)) for field in descriptor.fields]


def _field(field: Any, above: tuple[str, ...]) -> tuple[Any, Get]:
    name = field.name
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        entry = field.message_type
        key, value = entry.fields_by_name["key"], entry.fields_by_name["value"]
        (key_kind, key_of), (kind, of) = _single(key, above), _single(value, above)
        return pa.map_(key_kind, kind), lambda message: [
            (key_of(each), of(item)) for each, item in getattr(message, name).items()
        ]
    kind, of = _single(field, above)
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


def _single(field: Any, above: tuple[str, ...]) -> tuple[Any, Get]:
    if field.type == _ENUM:
        names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
        return pa.string(), lambda value: names.get(value, str(value))
    if field.type not in _MESSAGES:
        return _TYPES[field.type], lambda value: value
    if field.message_type.full_name == _TIMESTAMP:
        return pa.timestamp("us", tz="UTC"), _micros
    if field.message_type.file.name == _WRAPPERS:
        kind, _ = _single(field.message_type.fields[0], above)
        return kind, lambda value: value.value
    parts = _fields(field.message_type, above)
    kind = pa.struct([pa.field(name, part) for name, part, _ in parts])
    return kind, lambda message: {name: get(message) for name, _, get in parts}
