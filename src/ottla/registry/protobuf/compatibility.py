"""Whether messages of an earlier Protobuf schema can be read with a newer one, by Confluent's rules and their names.

Fields are the same if their numbers are. Kinds of scalars that share a wire format may take each other's place. Added
and removed fields, enums, oneofs and services are no obstacle; a field that moves is, where two values of the past
could not both be kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from google.protobuf import descriptor_pb2 as pb

from ottla.common.schemas import NEW_READS_OLD, Difference, Sides

_FIELD = pb.FieldDescriptorProto
_GROUPS = (
    ("int32", "int64", "uint32", "uint64", "bool", "enum"),
    ("sint32", "sint64"),
    ("string", "bytes"),
    ("fixed32", "sfixed32"),
    ("fixed64", "sfixed64"),
    ("float",),
    ("double",),
)
_SCALAR_KIND = {getattr(_FIELD, f"TYPE_{name.upper()}"): number for number, its in enumerate(_GROUPS) for name in its}
_STRING_OR_BYTES = (_FIELD.TYPE_STRING, _FIELD.TYPE_BYTES)


def differences(
    reader: Sequence[pb.FileDescriptorProto],
    writer: Sequence[pb.FileDescriptorProto],
    sides: Sides = NEW_READS_OLD,
) -> list[Difference]:
    """Each with its imports behind it."""
    return _Comparison(reader, writer, sides).run()


class _Comparison:
    def __init__(
        self, reader: Sequence[pb.FileDescriptorProto], writer: Sequence[pb.FileDescriptorProto], sides: Sides
    ) -> None:
        self._files = reader[0], writer[0]
        self._mine, self._theirs = _messages(reader), _messages(writer)
        self._sides = sides
        self._seen: set[tuple[str, str]] = set()
        self._found: list[Difference] = []

    def run(self) -> list[Difference]:
        mine, theirs = self._files
        if mine.package != theirs.package:
            self._refuse("PACKAGE_CHANGED", "#/", f"The package was '{theirs.package}' and is '{mine.package}'")
        prefix = [f".{file.package}" if file.package else "" for file in self._files]
        self._types(mine.message_type, theirs.message_type, prefix[0], prefix[1], "#/")
        return list(dict.fromkeys(self._found))

    def _refuse(self, rule: str, path: str, what: str) -> None:
        seen = "" if self._sides.writer == "old" else ", seen from the new schema to the old one"
        self._found.append(Difference(rule, path, f"{what} at path '{path}'{seen}"))

    def _types(
        self,
        mine: Iterable[pb.DescriptorProto],
        theirs: Iterable[pb.DescriptorProto],
        my_scope: str,
        their_scope: str,
        path: str,
    ) -> None:
        now = {message.name: message for message in mine}
        for before in theirs:
            at = f"{path}{'' if path.endswith('/') else '.'}{before.name}"
            if before.name in now:
                self._message(f"{my_scope}.{before.name}", f"{their_scope}.{before.name}", at)
            elif not before.options.map_entry:
                self._refuse("MESSAGE_REMOVED", at, f"The message {before.name} is gone")

    def _message(self, my_name: str, their_name: str, path: str) -> None:
        if (my_name, their_name) in self._seen:
            return
        self._seen.add((my_name, their_name))
        mine, theirs = self._mine[my_name], self._theirs[their_name]
        self._one_ofs(mine, theirs, path)
        now = {field.number: field for field in mine.field}
        before = {field.number: field for field in theirs.field}
        for number in sorted(now.keys() | before.keys()):
            at = f"{path}/{number}"
            if number not in now:
                if before[number].label == _FIELD.LABEL_REQUIRED:
                    self._refuse("REQUIRED_FIELD_REMOVED", at, f"The required field {before[number].name} is gone")
                elif before[number].HasField("oneof_index") and not before[number].proto3_optional:
                    self._lost_of_one_of(mine, theirs, before[number], path)
            elif number not in before:
                if now[number].label == _FIELD.LABEL_REQUIRED:
                    self._refuse("REQUIRED_FIELD_ADDED", at, f"The required field {now[number].name} is new")
            else:
                self._field(now[number], before[number], at)
        self._types(mine.nested_type, theirs.nested_type, my_name, their_name, path)

    def _lost_of_one_of(
        self, mine: pb.DescriptorProto, theirs: pb.DescriptorProto, field: pb.FieldDescriptorProto, path: str
    ) -> None:
        name = theirs.oneof_decl[field.oneof_index].name
        if any(one_of.name == name for one_of in mine.oneof_decl):
            what = f"The field {field.name} of the oneof {name} is gone"
            self._refuse("ONEOF_FIELD_REMOVED", f"{path}/{name}/{field.number}", what)

    def _one_ofs(self, mine: pb.DescriptorProto, theirs: pb.DescriptorProto, path: str) -> None:
        before = {field.number: field for field in theirs.field}
        for index, one_of in enumerate(mine.oneof_decl):
            members = [field for field in mine.field if _is_in(field, index)]
            known = [before[field.number] for field in members if field.number in before]
            moved = [field for field in known if not _is_in(field)]
            if len(moved) > 1:
                what = f"The fields {', '.join(field.name for field in moved)} moved to the oneof {one_of.name}"
                self._refuse("MULTIPLE_FIELDS_MOVED_TO_ONEOF", f"{path}/{one_of.name}", what)
            elif moved and len(known) > 1:
                what = f"The field {moved[0].name} moved to the oneof {one_of.name}, which was there before"
                self._refuse("FIELD_MOVED_TO_EXISTING_ONEOF", f"{path}/{one_of.name}", what)

    def _field(self, mine: pb.FieldDescriptorProto, theirs: pb.FieldDescriptorProto, path: str) -> None:
        my_entry, their_entry = _map_entry(self._mine, mine), _map_entry(self._theirs, theirs)
        if my_entry is not None and their_entry is not None:
            for now, before in zip(my_entry.field, their_entry.field, strict=True):
                self._type(now, before, path)
            return
        if (my_entry is None) != (their_entry is None):
            self._refuse("FIELD_KIND_CHANGED", path, f"The field {mine.name} became another kind of field")
            return
        is_text = mine.type in _STRING_OR_BYTES or mine.type_name
        if not is_text and (mine.label == _FIELD.LABEL_REPEATED) != (theirs.label == _FIELD.LABEL_REPEATED):
            what = f"The field {mine.name} of numbers became repeated, or stopped to be"
            self._refuse("FIELD_NUMERIC_LABEL_CHANGED", path, what)
        self._type(mine, theirs, path)

    def _type(self, mine: pb.FieldDescriptorProto, theirs: pb.FieldDescriptorProto, path: str) -> None:
        my_kind, their_kind = _SCALAR_KIND.get(mine.type), _SCALAR_KIND.get(theirs.type)
        if (my_kind is None) != (their_kind is None):
            self._refuse("FIELD_KIND_CHANGED", path, f"The field {mine.name} became another kind of field")
        elif my_kind is not None:
            if my_kind != their_kind:
                what = f"The type of field {mine.name} was {_word(theirs)} and is {_word(mine)}"
                self._refuse("FIELD_SCALAR_KIND_CHANGED", path, what)
        elif _local(self._files[0], mine.type_name) != _local(self._files[1], theirs.type_name):
            what = f"The type of field {mine.name} was {theirs.type_name} and is {mine.type_name}"
            self._refuse("FIELD_NAMED_TYPE_CHANGED", path, what)
        else:
            self._message(mine.type_name, theirs.type_name, path)


def _messages(files: Sequence[pb.FileDescriptorProto]) -> dict[str, pb.DescriptorProto]:
    found: dict[str, pb.DescriptorProto] = {}

    def walk(scope: str, messages: Iterable[pb.DescriptorProto]) -> None:
        for message in messages:
            found[f"{scope}.{message.name}"] = message
            walk(f"{scope}.{message.name}", message.nested_type)

    for file in files:
        walk(f".{file.package}" if file.package else "", file.message_type)
    return found


def _is_in(field: pb.FieldDescriptorProto, index: int | None = None) -> bool:
    """In a oneof, or in this one; an `optional` of proto3 is in none."""
    return field.HasField("oneof_index") and not field.proto3_optional and index in (None, field.oneof_index)


def _map_entry(messages: dict[str, pb.DescriptorProto], field: pb.FieldDescriptorProto) -> pb.DescriptorProto | None:
    message = messages.get(field.type_name)
    return message if message is not None and message.options.map_entry else None


def _local(file: pb.FileDescriptorProto, name: str) -> str:
    """Without the file's own package, which may change."""
    return name.removeprefix(f".{file.package}.") if file.package else name.removeprefix(".")


def _word(field: pb.FieldDescriptorProto) -> str:
    return str(_FIELD.Type.Name(field.type)).removeprefix("TYPE_").lower()
