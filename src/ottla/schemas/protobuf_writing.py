"""The Protobuf message that follows from columns, as a file (proto3) with that one message.

A field is its number, so numbers are kept: what the last version of the subject has under the same name keeps its own,
a column that is new gets the next one that was never given, and numbers of columns that are gone stay reserved.
Every column may be null, so fields are `optional`.
"""

from __future__ import annotations

import base64
import re
from typing import Any

import pyarrow as pa

from ottla.common.errors import OttlaError
from ottla.schemas.registered import PROTOBUF, Registered

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)
_TIMESTAMP = "google/protobuf/timestamp.proto"
_KEYS = (pa.types.is_string, pa.types.is_boolean, pa.types.is_int32, pa.types.is_int64)
# Numbers that protobuf keeps for itself, and the first that is too large.
_KEPT, _NUMBER_END = (19_000, 20_000), 1 << 29


def message_name(topic: str) -> str:
    name = re.sub(r"[^A-Za-z0-9_]", "_", topic)
    return name if _NAME.fullmatch(name) else f"M{name}"


def protobuf_of(kind: Any, name: str, last: Registered | None) -> str:
    """The bytes of the file's descriptor, in base64. `last`: the version that is registered, if there is one. Raises
    OttlaError for columns that Protobuf has no words for."""
    try:
        from google.protobuf import descriptor_pb2
    except ImportError:
        raise OttlaError("schemas of Protobuf need protobuf: run `pip install 'protobuf>=5'`.") from None
    if not pa.types.is_struct(kind):
        raise OttlaError(
            f"Protobuf has messages only, and no single {kind}: write a struct, or several columns, or take Avro."
        )
    file = descriptor_pb2.FileDescriptorProto(syntax="proto3")
    before = None
    if last is not None and last.type == PROTOBUF:
        earlier = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(last.text))
        file.package = earlier.package
        before = next((each for each in earlier.message_type if each.name == name), None)
    maker = _Maker(file)
    maker.message(file.message_type.add(name=name), kind, before, f".{file.package}.{name}".replace("..", "."))
    if maker.has_timestamp:
        file.dependency.append(_TIMESTAMP)
    return base64.b64encode(file.SerializeToString()).decode()


class _Maker:
    def __init__(self, file: Any) -> None:
        self._file = file
        self.has_timestamp = False

    def message(self, message: Any, kind: Any, before: Any, path: str) -> None:
        """`path`: its full name. `before`: what it was in the last version."""
        known = {} if before is None else {field.name: field.number for field in before.field}
        reserved = [] if before is None else [(each.start, each.end) for each in before.reserved_range]
        parts = [kind.field(index) for index in range(kind.num_fields)]
        names = {part.name for part in parts}
        reserved += ((number, number + 1) for name, number in sorted(known.items()) if name not in names)
        following = max(known.values(), default=0)
        for part in parts:
            if not _NAME.fullmatch(part.name):
                raise OttlaError(
                    f"a field of a Protobuf message cannot be called '{part.name}': rename the column to letters, "
                    "digits and '_'."
                )
            number = known.get(part.name)
            if number is None:
                number = following = _free(following + 1, reserved)
            self._field(message, part, number, before, path)
        for start, end in sorted(reserved):
            message.reserved_range.add(start=start, end=end)
        self._optional(message)

    def _field(self, message: Any, part: Any, number: int, before: Any, path: str) -> None:
        types = pa.types
        field = message.field.add(name=part.name, number=number, label=1)
        kind = part.type
        if types.is_map(kind):
            if not any(is_one(kind.key_type) for is_one in _KEYS):
                raise OttlaError(f"a map of Protobuf cannot have keys of {kind.key_type}, as '{part.name}' has.")
            entry = message.nested_type.add(name=_entry_name(part.name))
            entry.options.map_entry = True
            field.label, field.type, field.type_name = 3, 11, f"{path}.{entry.name}"
            key = entry.field.add(name="key", number=1, label=1)
            value = entry.field.add(name="value", number=2, label=1)
            self._type(message, key, kind.key_type, part.name, before, path)
            self._type(message, value, kind.item_type, part.name, before, path)
            return
        if types.is_list(kind):
            field.label, kind = 3, kind.value_type
        self._type(message, field, kind, part.name, before, path)

    def _type(self, message: Any, field: Any, kind: Any, name: str, before: Any, path: str) -> None:
        types = pa.types
        if types.is_struct(kind):
            inner = message.nested_type.add(name=_inner_name(name))
            earlier = None if before is None else next((m for m in before.nested_type if m.name == inner.name), None)
            field.type, field.type_name = 11, f"{path}.{inner.name}"
            self.message(inner, kind, earlier, f"{path}.{inner.name}")
            return
        if types.is_timestamp(kind):
            field.type, field.type_name, self.has_timestamp = 11, ".google.protobuf.Timestamp", True
            return
        for is_one, number in (
            (types.is_boolean, 8),
            (types.is_int64, 3),
            (types.is_signed_integer, 5),
            (types.is_float32, 2),
            (types.is_float64, 1),
            (types.is_string, 9),
            (types.is_binary, 12),
        ):
            if is_one(kind):
                field.type = number
                return
        nested = types.is_list(kind) or types.is_map(kind)
        what = "a list or a map within another" if nested else str(kind)
        raise OttlaError(f"Protobuf has no type for '{name}', which is {what}: cast the column, or leave it out.")

    def _optional(self, message: Any) -> None:
        """Single fields that are no messages say by a oneof of their own whether they are there."""
        for field in message.field:
            if field.label == 1 and field.type != 11 and not message.options.map_entry:
                field.proto3_optional = True
                field.oneof_index = len(message.oneof_decl)
                message.oneof_decl.add(name=f"_{field.name}")


def _free(number: int, reserved: list[tuple[int, int]]) -> int:
    """The first from this one on that nobody has, or had."""
    for start, end in sorted([*reserved, _KEPT]):
        if start <= number < end:
            number = end
    if number >= _NUMBER_END:
        raise OttlaError("the message has no number left for another field: reserve fewer of them.")
    return number


def _inner_name(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_")) or "Value"


def _entry_name(name: str) -> str:
    """Protobuf wants it to be called so."""
    return f"{_inner_name(name)}Entry"
