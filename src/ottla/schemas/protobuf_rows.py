"""Columns as messages of a registered Protobuf schema: the program that the kernel writes them with."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ottla.common.errors import OttlaError
from ottla.kernel.avro_steps import WRITE_SENTENCES, Fault, Unwritable
from ottla.kernel.protobuf_encode import ProtobufEncoder
from ottla.kernel.protobuf_steps import FieldWrite, Label, MessageWrite, Type
from ottla.schemas.framing import HEAD, place_bytes
from ottla.schemas.protobuf_columns import chosen, columns_of, enum_edges, is_repeated, kind_of, label_of
from ottla.schemas.registered import Registered

_ONEOFS_MAX = 256
_IN_LISTS = "has an item that is null, and Protobuf has no word for that"
_TAKEN = "is not null, and neither is another column of the same oneof"


class ProtobufRows:
    """`type`: what rows have to be converted to before they are encoded."""

    def __init__(self, schema: Registered, message: str | None, names: list[str]) -> None:
        """`names`: the columns that there are. Raises OttlaError where they do not fit the message."""
        descriptor, place = chosen(schema, message)
        self._head = HEAD.pack(0, schema.id) + place_bytes(place)
        known = {field.name: field for field in descriptor.fields}
        if unknown := [name for name in names if name not in known]:
            raise OttlaError(
                f"the message '{descriptor.full_name}' has no field '{unknown[0]}': it has {', '.join(known)}."
            )
        if missing := [name for name, field in known.items() if _is_required(field) and name not in names]:
            raise OttlaError(f"the message '{descriptor.full_name}' needs a column '{missing[0]}', which is not there.")
        all_columns = columns_of(descriptor).type
        self.type = pa.struct([all_columns.field(name) for name in names])
        maker = _Maker()
        maker.message(descriptor, {name: place for place, name in enumerate(names)}, "")
        self._paths = [path for paths in maker.paths for path in paths]
        self._lists = [field.label >= Label.REPEATED for message in maker.messages for field in message.fields]
        self._encoder = ProtobufEncoder(maker.messages, maker.edges, bytes(maker.constants))

    def encode(self, rows: Any) -> Any:
        """Raises OttlaError for a row that does not fit."""
        try:
            return self._encoder.encode(rows, self._head)
        except Unwritable as error:
            sentence = WRITE_SENTENCES.get(Fault(error.fault), _TAKEN)
            if error.fault == Fault.BAD_BRANCH and self._lists[error.step]:
                sentence = _IN_LISTS
            raise OttlaError(
                f"a row cannot be written with its schema: the column '{self._paths[error.step]}' {sentence}."
            ) from None


class _Maker:
    def __init__(self) -> None:
        self.messages: list[MessageWrite] = []
        # Of each field of each message, the column that it is about.
        self.paths: list[list[str]] = []
        self.edges: list[int] = []
        self.constants = bytearray()

    def _reserve(self) -> int:
        self.messages.append(MessageWrite(0, ()))
        self.paths.append([])
        return len(self.messages) - 1

    def message(self, descriptor: Any, places: dict[str, int], path: str) -> int:
        """`places`: of the fields that have columns, where these are in their struct."""
        number = self._reserve()
        # A field alone in its oneof is there or not, and that is all.
        shared = [oneof.name for oneof in descriptor.oneofs if len(oneof.fields) > 1]
        if len(shared) > _ONEOFS_MAX:
            raise OttlaError(f"the message '{descriptor.full_name}' has more than {_ONEOFS_MAX} oneofs.")
        steps: list[FieldWrite] = []
        for field in sorted(descriptor.fields, key=lambda each: each.number):
            if field.name not in places:
                continue
            within = f"{path}.{field.name}" if path else field.name
            oneof = field.containing_oneof
            step = self._field(field, within)._replace(
                place=places[field.name],
                oneof=shared.index(oneof.name) if oneof is not None and oneof.name in shared else -1,
            )
            steps.append(step)
            self.paths[number].append(within)
        self.messages[number] = MessageWrite(len(shared), tuple(steps))
        return number

    def _field(self, field: Any, path: str) -> FieldWrite:
        label = label_of(field)
        if label == Label.MAP:
            number = self._reserve()
            parts = [field.message_type.fields_by_name[name] for name in ("key", "value")]
            steps = tuple(self._single(part, Label.PRESENT, path) for part in parts)
            self.paths[number] = [path, path]
            self.messages[number] = MessageWrite(0, steps)
            return FieldWrite(field.number, int(Type.MESSAGE), int(label), -1, 0, a=number)
        step = self._single(field, label, path)
        return step._replace(is_packed=int(_is_packed(field)), is_required=int(_is_required(field)))

    def _single(self, field: Any, label: Label, path: str) -> FieldWrite:
        kind = kind_of(field)
        step = FieldWrite(field.number, int(kind), int(label), -1, 0)
        if kind == Type.ENUM:
            start, count = enum_edges(field, self.edges, self.constants)
            return step._replace(a=start, b=count, is_closed=int(field.enum_type.is_closed))
        if kind == Type.WRAPPER:
            number = self._reserve()
            inner = self._single(field.message_type.fields_by_name["value"], Label.IMPLICIT, path)
            self.paths[number] = [path]
            self.messages[number] = MessageWrite(0, (inner,))
            return step._replace(a=number)
        if kind in (Type.MESSAGE, Type.GROUP):
            places = {each.name: place for place, each in enumerate(field.message_type.fields)}
            return step._replace(a=self.message(field.message_type, places, path))
        return step


def _is_required(field: Any) -> bool:
    # Newer versions of protobuf have a word for it, and warn of the label.
    return bool(field.is_required) if hasattr(field, "is_required") else field.label == field.LABEL_REQUIRED


def _is_packed(field: Any) -> bool:
    return is_repeated(field) and bool(field.is_packed)
