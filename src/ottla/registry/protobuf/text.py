"""A FileDescriptorProto as the text of a .proto file: the form that is stored and shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from google.protobuf import descriptor_pb2 as pb

from ottla.registry.protobuf.text_parse import SCALARS, entry_name, json_name, quoted

_SCALAR_NAMES = {number: name for name, number in SCALARS.items()}
_FIELD_NUMBER_MAX, _ENUM_NUMBER_MAX = 536_870_911, 2**31 - 1
_FIELD = pb.FieldDescriptorProto


def to_text(file: pb.FileDescriptorProto, *, normalises: bool = False) -> str:
    """`normalises`: what has no order in its meaning is sorted."""
    return "\n".join(_Writer(file, normalises).file_lines()) + "\n"


class _Writer:
    def __init__(self, file: pb.FileDescriptorProto, normalises: bool) -> None:
        self._file = file
        self._normalises = normalises
        self._is_proto3 = file.syntax == "proto3"

    def file_lines(self) -> Iterator[str]:
        file = self._file
        yield f'syntax = "{file.syntax or "proto2"}";'
        if file.package:
            yield f"package {file.package};"
        imports = [self._import(number, name) for number, name in enumerate(file.dependency)]
        yield from _block(self._sorted(imports))
        yield from _block(f"option {option};" for option in self._options(file.options))
        for message in file.message_type:
            yield ""
            yield from self._message(message, f".{file.package}" if file.package else "")
        for enum in file.enum_type:
            yield ""
            yield from self._enum(enum)
        yield from _block(self._extensions(file.extension))
        for service in file.service:
            yield ""
            yield from self._service(service)

    def _sorted(self, lines: Sequence[str]) -> Sequence[str]:
        return sorted(lines) if self._normalises else lines

    def _import(self, number: int, name: str) -> str:
        file = self._file
        kind = "public " if number in file.public_dependency else "weak " if number in file.weak_dependency else ""
        return f'import {kind}"{name}";'

    # --- messages

    def _message(self, message: pb.DescriptorProto, scope: str) -> Iterator[str]:
        full = f"{scope}.{message.name}"
        yield f"message {message.name} {{"
        yield from _indented(self._body(message, full))
        yield "}"

    def _body(self, message: pb.DescriptorProto, full: str) -> Iterator[str]:
        yield from (f"option {option};" for option in self._options(message.options))
        yield from _reserved(message, _FIELD_NUMBER_MAX, end_is_excluded=True)
        for its in message.extension_range:
            yield f"extensions {_range(its.start, its.end - 1, _FIELD_NUMBER_MAX)};"
        nested = {f"{full}.{each.name}": each for each in message.nested_type}
        yield from self._fields(message, nested)
        groups = {field.type_name for field in message.field if field.type == _FIELD.TYPE_GROUP}
        yield from self._extensions(message.extension)
        for name, each in nested.items():
            if not each.options.map_entry and name not in groups:
                yield ""
                yield from self._message(each, full)
        for enum in message.enum_type:
            yield ""
            yield from self._enum(enum)

    def _fields(self, message: pb.DescriptorProto, nested: dict[str, pb.DescriptorProto]) -> Iterator[str]:
        fields = sorted(message.field, key=lambda field: field.number) if self._normalises else list(message.field)
        written: set[int] = set()
        for field in fields:
            if not field.HasField("oneof_index") or field.proto3_optional:
                yield from self._field(field, nested)
            elif field.oneof_index not in written:
                written.add(field.oneof_index)
                yield f"oneof {message.oneof_decl[field.oneof_index].name} {{"
                for each in fields:
                    if each.HasField("oneof_index") and each.oneof_index == field.oneof_index:
                        yield from _indented(self._field(each, nested, in_one_of=True))
                yield "}"

    def _field(
        self, field: pb.FieldDescriptorProto, nested: dict[str, pb.DescriptorProto], *, in_one_of: bool = False
    ) -> Iterator[str]:
        entry = nested.get(field.type_name)
        options = self._field_options(field)
        more = f" [{', '.join(options)}]" if options else ""
        if entry is not None and entry.options.map_entry and entry.name == entry_name(field.name):
            yield f"map<{_type(entry.field[0])}, {_type(entry.field[1])}> {field.name} = {field.number}{more};"
            return
        label = "" if in_one_of else self._label(field)
        if field.type == _FIELD.TYPE_GROUP and entry is not None:
            yield f"{label}group {entry.name} = {field.number}{more} {{"
            yield from _indented(self._body(entry, field.type_name))
            yield "}"
            return
        yield f"{label}{_type(field)} {field.name} = {field.number}{more};"

    def _label(self, field: pb.FieldDescriptorProto) -> str:
        if field.label == _FIELD.LABEL_REPEATED:
            return "repeated "
        if field.label == _FIELD.LABEL_REQUIRED:
            return "required "
        return "optional " if field.proto3_optional or not self._is_proto3 else ""

    def _field_options(self, field: pb.FieldDescriptorProto) -> list[str]:
        options = []
        if field.HasField("default_value"):
            shown = {
                _FIELD.TYPE_STRING: quoted(field.default_value),
                _FIELD.TYPE_BYTES: f'"{field.default_value}"',
            }.get(field.type, field.default_value)
            options.append(f"default = {shown}")
        if field.json_name and field.json_name != json_name(field.name):
            options.append(f"json_name = {quoted(field.json_name)}")
        return options + self._options(field.options)

    def _extensions(self, fields: Iterable[pb.FieldDescriptorProto]) -> Iterator[str]:
        for field in fields:
            yield f"extend {field.extendee} {{"
            yield from _indented(self._field(field, {}))
            yield "}"

    # --- enums, services, options

    def _enum(self, enum: pb.EnumDescriptorProto) -> Iterator[str]:
        yield f"enum {enum.name} {{"
        yield from _indented(f"option {option};" for option in self._options(enum.options))
        yield from _indented(_reserved(enum, _ENUM_NUMBER_MAX, end_is_excluded=False))
        for value in enum.value:
            options = self._options(value.options)
            more = f" [{', '.join(options)}]" if options else ""
            yield f"  {value.name} = {value.number}{more};"
        yield "}"

    def _service(self, service: pb.ServiceDescriptorProto) -> Iterator[str]:
        yield f"service {service.name} {{"
        yield from _indented(f"option {option};" for option in self._options(service.options))
        for method in service.method:
            takes = f"{'stream ' if method.client_streaming else ''}{method.input_type}"
            gives = f"{'stream ' if method.server_streaming else ''}{method.output_type}"
            options = self._options(method.options)
            end = " {" if options else ";"
            yield f"  rpc {method.name} ({takes}) returns ({gives}){end}"
            if options:
                yield from (f"    option {option};" for option in options)
                yield "  }"
        yield "}"

    def _options(self, options: Any) -> list[str]:
        lines = []
        for field, value in options.ListFields():
            if field.name == "uninterpreted_option":
                lines += [f"{each.name[0].name_part} = {each.aggregate_value}" for each in value]
            elif field.name != "map_entry" and not field.is_repeated and field.message_type is None:
                shown = field.enum_type.values_by_number[value].name if field.enum_type is not None else _literal(value)
                lines.append(f"{field.name} = {shown}")
        return sorted(lines) if self._normalises else lines


def _type(field: pb.FieldDescriptorProto) -> str:
    return str(_SCALAR_NAMES.get(field.type, field.type_name))


def _reserved(element: Any, largest: int, *, end_is_excluded: bool) -> Iterator[str]:
    ranges = [_range(its.start, its.end - end_is_excluded, largest) for its in element.reserved_range]
    if ranges:
        yield f"reserved {', '.join(ranges)};"
    if element.reserved_name:
        yield f"reserved {', '.join(quoted(name) for name in element.reserved_name)};"


def _range(first: int, last: int, largest: int) -> str:
    return str(first) if first == last else f"{first} to {'max' if last == largest else last}"


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return quoted(value) if isinstance(value, str) else str(value)


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" if line else "" for line in lines)


def _block(lines: Iterable[str]) -> Iterator[str]:
    listed = list(lines)
    if listed:
        yield ""
        yield from listed
