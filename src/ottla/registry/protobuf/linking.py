"""Types of fields, by the names that were written, to full names; then protobuf's own checks of the whole file.

The names of a file are looked up as protoc does: from the innermost scope outwards, among the file's own types and
those of its imports.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from google.protobuf import descriptor_pb2 as pb
from google.protobuf.descriptor_pool import DescriptorPool

from ottla.common.schemas import InvalidSchema
from ottla.schemas.messages import well_known

__all__ = ["check", "kinds_of", "link", "look_up", "well_known"]

Kinds = dict[str, int]


def kinds_of(file: pb.FileDescriptorProto) -> Kinds:
    """Full names of its types, each a message or an enum."""
    found: Kinds = {}

    def walk(prefix: str, messages: Sequence[pb.DescriptorProto], enums: Sequence[pb.EnumDescriptorProto]) -> None:
        for enum in enums:
            found[f"{prefix}{enum.name}"] = pb.FieldDescriptorProto.TYPE_ENUM
        for message in messages:
            found[f"{prefix}{message.name}"] = pb.FieldDescriptorProto.TYPE_MESSAGE
            walk(f"{prefix}{message.name}.", message.nested_type, message.enum_type)

    walk(f"{file.package}." if file.package else "", file.message_type, file.enum_type)
    return found


def link(file: pb.FileDescriptorProto, imports: Mapping[str, pb.FileDescriptorProto]) -> None:
    """Changes `file`, whose imports are linked already. Raises InvalidSchema."""
    kinds = kinds_of(file)
    for name in imports:
        kinds |= kinds_of(imports[name])

    def resolve(field: pb.FieldDescriptorProto, scope: str) -> None:
        if field.type_name:
            field.type_name = look_up(field.type_name, scope, kinds)
            if field.type != pb.FieldDescriptorProto.TYPE_GROUP:
                field.type = kinds[field.type_name[1:]]
        if field.extendee:
            field.extendee = look_up(field.extendee, scope, kinds)

    for scope, fields in _scopes(file):
        for field in fields:
            resolve(field, scope)
    for service in file.service:
        for method in service.method:
            method.input_type = look_up(method.input_type, file.package, kinds)
            method.output_type = look_up(method.output_type, file.package, kinds)


def _scopes(file: pb.FileDescriptorProto) -> Iterator[tuple[str, Sequence[pb.FieldDescriptorProto]]]:
    def walk(scope: str, message: pb.DescriptorProto) -> Iterator[tuple[str, Sequence[pb.FieldDescriptorProto]]]:
        inner = f"{scope}.{message.name}" if scope else message.name
        yield inner, (*message.field, *message.extension)
        for nested in message.nested_type:
            yield from walk(inner, nested)

    yield file.package, tuple(file.extension)
    for message in file.message_type:
        yield from walk(file.package, message)


def look_up(name: str, scope: str, kinds: Kinds) -> str:
    if name.startswith("."):
        if name[1:] in kinds:
            return name
        raise InvalidSchema(f'"{name}" is not defined')
    parts = scope.split(".") if scope else []
    for depth in range(len(parts), -1, -1):
        full = ".".join((*parts[:depth], name))
        if full in kinds:
            return f".{full}"
    raise InvalidSchema(f'"{name}" is not defined')


def check(file: pb.FileDescriptorProto, imports: Sequence[pb.FileDescriptorProto]) -> None:
    """Numbers used twice, names that clash and whatever else protobuf refuses. Raises InvalidSchema."""
    pool = DescriptorPool()
    try:
        for each in (*imports, file):
            pool.AddSerializedFile(each.SerializeToString())
    except (TypeError, ValueError) as error:
        raise InvalidSchema(str(error).strip()) from None
