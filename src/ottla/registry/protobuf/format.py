"""Protobuf as one of the registry's formats: text, or the bytes of a FileDescriptorProto in base64."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence

from google.protobuf import descriptor_pb2 as pb
from google.protobuf.message import DecodeError

from ottla.common.schemas import Difference, InvalidSchema, Sides
from ottla.registry.parsed import Parsed, Resolved
from ottla.registry.protobuf import compatibility
from ottla.registry.protobuf.linking import check, link, well_known
from ottla.registry.protobuf.text import to_text
from ottla.registry.protobuf.text_parse import parse_text

_NAME = "default"


class ProtobufSchema(Parsed):
    def __init__(self, file: pb.FileDescriptorProto, imports: dict[str, pb.FileDescriptorProto]) -> None:
        self.file = file
        self.imports = imports

    def canonical(self) -> str:
        return to_text(self.file)

    def normalised(self) -> str:
        return to_text(self.file, normalises=True)

    def serialised(self) -> str:
        """As clients of protobuf's own runtime want it."""
        return base64.b64encode(self.file.SerializeToString(deterministic=True)).decode()

    def reads(self, writer: Parsed, sides: Sides) -> list[Difference]:
        assert isinstance(writer, ProtobufSchema)
        files = (self.file, *self.imports.values()), (writer.file, *writer.imports.values())
        return compatibility.differences(*files, sides)


def parse_protobuf(schema: str, references: Sequence[Resolved], *, is_new: bool) -> ProtobufSchema:
    files: dict[str, pb.FileDescriptorProto] = {}
    for reference in references:
        _load(reference, files)
    file = _read(schema, _NAME)
    _add_well_known(file, files)
    missing = [name for name in file.dependency if name not in files]
    if missing:
        raise InvalidSchema(f'the import "{missing[0]}" has no reference')
    link(file, files)
    check(file, list(files.values()))
    return ProtobufSchema(file, files)


def _load(reference: Resolved, files: dict[str, pb.FileDescriptorProto]) -> None:
    if reference.name in files:
        return
    for below in reference.references:
        _load(below, files)
    file = _read(reference.text, reference.name)
    file.name = reference.name
    _add_well_known(file, files)
    link(file, files)
    files[reference.name] = file


def _add_well_known(file: pb.FileDescriptorProto, files: dict[str, pb.FileDescriptorProto]) -> None:
    for name in file.dependency:
        if name not in files and (found := well_known(name)) is not None:
            _add_well_known(found, files)
            files[name] = found


def _read(schema: str, name: str) -> pb.FileDescriptorProto:
    file = _from_base64(schema)
    if file is None:
        file = parse_text(schema)
    if not file.name:
        file.name = name
    return file


def _from_base64(schema: str) -> pb.FileDescriptorProto | None:
    """None for what is no base64 of a file: text has spaces in it, and semicolons."""
    try:
        return pb.FileDescriptorProto.FromString(base64.b64decode(schema, validate=True))
    except (binascii.Error, ValueError, DecodeError):
        return None
