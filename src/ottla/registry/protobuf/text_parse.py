"""The text of a .proto file to a FileDescriptorProto, whose types are not looked up yet (`linking.py` does)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from antlr4.error.ErrorListener import ErrorListener
from google.protobuf import descriptor_pb2 as pb
from google.protobuf.text_encoding import CEscape, CUnescape
from proto_schema_parser import ast
from proto_schema_parser.parser import Parser

from ottla.common.schemas import InvalidSchema

SCALARS = {
    name: getattr(pb.FieldDescriptorProto, f"TYPE_{name.upper()}")
    for name in """double float int64 uint64 int32 fixed64 fixed32 bool string bytes uint32 sfixed32 sfixed64 sint32
    sint64""".split()  # noqa: SIM905
}
_LABELS = {
    ast.FieldCardinality.REQUIRED: pb.FieldDescriptorProto.LABEL_REQUIRED,
    ast.FieldCardinality.OPTIONAL: pb.FieldDescriptorProto.LABEL_OPTIONAL,
    ast.FieldCardinality.REPEATED: pb.FieldDescriptorProto.LABEL_REPEATED,
}
_FIELD_NUMBER_MAX, _ENUM_NUMBER_MAX = 536_870_911, 2**31 - 1


class _Refuse(ErrorListener):  # type: ignore[misc]
    """ANTLR goes on after a mistake, and prints it; a registry does neither."""

    def syntaxError(self, recognizer: Any, symbol: Any, line: int, column: int, msg: str, error: Any) -> None:
        raise InvalidSchema(f"Syntax error in line {line}, column {column}: {msg[:200]}")


def parse_text(text: str) -> pb.FileDescriptorProto:
    """Raises InvalidSchema."""

    def set_up(recogniser: Any) -> None:
        recogniser.removeErrorListeners()
        recogniser.addErrorListener(_Refuse())

    try:
        return _File(Parser(setup_lexer=set_up, setup_parser=set_up).parse(text)).build()
    except (ValueError, TypeError, AttributeError, KeyError, IndexError) as error:
        raise InvalidSchema(f"the text is no .proto file: {error}") from None


class _File:
    def __init__(self, parsed: ast.File) -> None:
        if parsed.edition is not None:
            raise InvalidSchema('editions are not supported: write syntax = "proto3" or "proto2"')
        if parsed.syntax not in (None, "proto2", "proto3"):
            raise InvalidSchema(f'the syntax "{parsed.syntax}" is not known: write syntax = "proto3" or "proto2"')
        self._parsed = parsed
        self._is_proto3 = parsed.syntax == "proto3"
        self.file = pb.FileDescriptorProto(syntax="proto3") if self._is_proto3 else pb.FileDescriptorProto()

    def build(self) -> pb.FileDescriptorProto:
        for element in self._parsed.file_elements:
            if isinstance(element, ast.Package):
                self.file.package = element.name
            elif isinstance(element, ast.Import):
                if element.public:
                    self.file.public_dependency.append(len(self.file.dependency))
                if element.weak:
                    self.file.weak_dependency.append(len(self.file.dependency))
                self.file.dependency.append(element.name)
            elif isinstance(element, ast.Option):
                _set_option(self.file.options, element)
            elif isinstance(element, ast.Message):
                self._message(self.file.message_type.add(), element.name, element.elements)
            elif isinstance(element, ast.Enum):
                _enum(self.file.enum_type.add(), element)
            elif isinstance(element, ast.Extension):
                self._extension(element, self.file.extension.add, self.file.message_type.add)
            elif isinstance(element, ast.Service):
                _service(self.file.service.add(), element)
        return self.file

    def _message(self, message: pb.DescriptorProto, name: str, elements: Iterable[Any]) -> None:
        message.name = name
        for element in elements:
            if isinstance(element, ast.Field):
                self._field(message.field.add(), element)
            elif isinstance(element, ast.MapField):
                self._map(message, element)
            elif isinstance(element, ast.Group):
                self._group(message.field.add(), message.nested_type.add(), element)
            elif isinstance(element, ast.OneOf):
                self._one_of(message, element)
            elif isinstance(element, ast.Option):
                _set_option(message.options, element)
            elif isinstance(element, ast.Message):
                self._message(message.nested_type.add(), element.name, element.elements)
            elif isinstance(element, ast.Enum):
                _enum(message.enum_type.add(), element)
            elif isinstance(element, ast.Extension):
                self._extension(element, message.extension.add, message.nested_type.add)
            elif isinstance(element, ast.Reserved):
                for first, last in _ranges(element.ranges, _FIELD_NUMBER_MAX):
                    message.reserved_range.add(start=first, end=last + 1)
                message.reserved_name.extend(element.names)
            elif isinstance(element, ast.ExtensionRange):
                for first, last in _ranges(element.ranges, _FIELD_NUMBER_MAX):
                    message.extension_range.add(start=first, end=last + 1)
        _add_synthetic_one_ofs(message)

    def _field(self, field: pb.FieldDescriptorProto, element: ast.Field) -> None:
        field.name, field.number = element.name, element.number
        field.label = _LABELS[element.cardinality or ast.FieldCardinality.OPTIONAL]
        field.json_name = json_name(element.name)
        if element.type in SCALARS:
            field.type = SCALARS[element.type]
        else:
            field.type_name = element.type
        if self._is_proto3 and element.cardinality is ast.FieldCardinality.OPTIONAL:
            field.proto3_optional = True
        for option in element.options:
            if option.name == "default":
                field.default_value = _default(option.value, is_bytes=element.type == "bytes")
            elif option.name == "json_name":
                if not isinstance(option.value, str):
                    raise InvalidSchema(f"json_name of {element.name} is no text")
                field.json_name = unescaped(option.value)
            else:
                _set_option(field.options, option)

    def _map(self, message: pb.DescriptorProto, element: ast.MapField) -> None:
        if element.key_type not in SCALARS or element.key_type in ("float", "double", "bytes"):
            raise InvalidSchema(f"the key of the map {element.name} cannot be of type {element.key_type}")
        entry = message.nested_type.add(name=entry_name(element.name))
        entry.options.map_entry = True
        self._field(entry.field.add(), ast.Field("key", 1, element.key_type))
        self._field(entry.field.add(), ast.Field("value", 2, element.value_type))
        repeated = ast.Field(element.name, element.number, entry.name, ast.FieldCardinality.REPEATED, element.options)
        self._field(message.field.add(), repeated)

    def _group(self, field: pb.FieldDescriptorProto, nested: pb.DescriptorProto, element: ast.Group) -> None:
        self._field(field, ast.Field(element.name.lower(), element.number, element.name, element.cardinality))
        field.type = pb.FieldDescriptorProto.TYPE_GROUP
        self._message(nested, element.name, element.elements)

    def _one_of(self, message: pb.DescriptorProto, element: ast.OneOf) -> None:
        number = len(message.oneof_decl)
        one_of = message.oneof_decl.add(name=element.name)
        for each in element.elements:
            if isinstance(each, ast.Option):
                _set_option(one_of.options, each)
            elif isinstance(each, ast.Field | ast.Group):
                field = message.field.add()
                if isinstance(each, ast.Group):
                    self._group(field, message.nested_type.add(), each)
                else:
                    self._field(field, each)
                field.oneof_index = number

    def _extension(self, element: ast.Extension, add_field: Callable[..., Any], add_type: Callable[..., Any]) -> None:
        for each in element.elements:
            if isinstance(each, ast.Field | ast.Group):
                field = add_field(extendee=element.typeName)
                if isinstance(each, ast.Group):
                    self._group(field, add_type(), each)
                else:
                    self._field(field, each)


def _add_synthetic_one_ofs(message: pb.DescriptorProto) -> None:
    """An `optional` field of proto3 is in a oneof of its own; they come after those that were written."""
    for field in message.field:
        if field.proto3_optional and not field.HasField("oneof_index"):
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{field.name}")


def _enum(enum: pb.EnumDescriptorProto, element: ast.Enum) -> None:
    enum.name = element.name
    for each in element.elements:
        if isinstance(each, ast.EnumValue):
            value = enum.value.add(name=each.name, number=each.number)
            for option in each.options:
                _set_option(value.options, option)
        elif isinstance(each, ast.Option):
            _set_option(enum.options, each)
        elif isinstance(each, ast.EnumReserved):
            for first, last in _ranges(each.ranges, _ENUM_NUMBER_MAX):
                enum.reserved_range.add(start=first, end=last)
            enum.reserved_name.extend(each.names)


def _service(service: pb.ServiceDescriptorProto, element: ast.Service) -> None:
    service.name = element.name
    for each in element.elements:
        if isinstance(each, ast.Option):
            _set_option(service.options, each)
        elif isinstance(each, ast.Method):
            method = service.method.add(
                name=each.name,
                input_type=each.input_type.type,
                output_type=each.output_type.type,
                client_streaming=each.input_type.stream,
                server_streaming=each.output_type.stream,
            )
            for option in each.elements:
                if isinstance(option, ast.Option):
                    _set_option(method.options, option)


def _ranges(texts: Iterable[str], largest: int) -> Iterable[tuple[int, int]]:
    for text in texts:
        first, _, last = text.partition(" to ")
        yield int(first), largest if last.strip() == "max" else int(last or first)


def _set_option(options: Any, option: ast.Option) -> None:
    """Protobuf's own by their names; others as they were written."""
    known = options.DESCRIPTOR.fields_by_name.get(option.name)
    value = option.value
    if known is None or isinstance(value, ast.MessageLiteral | list) or known.is_repeated:
        kept = options.uninterpreted_option.add()
        kept.name.add(name_part=option.name, is_extension=False)
        kept.aggregate_value = literal(value)
        return
    try:
        if known.enum_type is not None:
            assert isinstance(value, ast.Identifier)
            setattr(options, option.name, known.enum_type.values_by_name[value.name].number)
        else:
            setattr(options, option.name, unescaped(value) if isinstance(value, str) else value)
    except (TypeError, ValueError, KeyError, AssertionError):
        raise InvalidSchema(f"the option {option.name} cannot be {literal(value)}") from None


def literal(value: Any) -> str:
    if isinstance(value, ast.Identifier):
        return value.name
    if isinstance(value, ast.MessageLiteral):
        fields = (one for one in value.elements if isinstance(one, ast.MessageLiteralField))
        inside = (f"{one.name}: {literal(one.value)}" for one in fields)
        return f"{{ {', '.join(inside)} }}"
    if isinstance(value, list):
        return f"[{', '.join(literal(one) for one in value)}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return quoted(unescaped(value)) if isinstance(value, str) else str(value)


def _default(value: Any, *, is_bytes: bool) -> str:
    """Bytes stay escaped in a descriptor."""
    if not isinstance(value, str):
        return literal(value)
    return value if is_bytes else unescaped(value)


def unescaped(text: str) -> str:
    """Of what stands between quotes in the file."""
    return bytes(CUnescape(text)).decode("utf-8", "replace")


def quoted(text: str) -> str:
    return f'"{CEscape(text, as_utf8=True)}"'


def json_name(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def entry_name(field: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in field.split("_")) + "Entry"
