"""Arrow columns to Protobuf messages with the id of a schema before them, in plain Python.

`ProtobufEncoder(messages, edges, constants).encode(rows, head)`: one value for each row of a struct array, null for
those that are null. Arrays have the types of `ottla.schemas.protobuf_columns`: whoever calls has converted them. A
column that is null is not written, nor is a default where the field cannot tell it from nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ottla.kernel.avro_encode_pure import _plain
from ottla.kernel.avro_steps import Fault, Unwritable
from ottla.kernel.protobuf_pure import _wire
from ottla.kernel.protobuf_steps import FieldWrite, Label, MessageWrite, Type

_FLOAT, _DOUBLE = struct.Struct("<f"), struct.Struct("<d")
_VARINT, _FIXED64, _BYTES, _GROUP, _END, _FIXED32 = range(6)


class _Fault(Exception):
    def __init__(self, step: int, fault: Fault) -> None:
        self.step, self.fault = step, fault


class ProtobufEncoder:
    def __init__(self, messages: Sequence[MessageWrite], edges: Sequence[int], constants: bytes) -> None:
        """The first message is the one that values are."""
        self._messages = list(messages)
        self._edges, self._constants = list(edges), constants
        # Of each message, the number of its first field among those of all.
        self._firsts = [sum(len(its.fields) for its in self._messages[:index]) for index in range(len(self._messages))]

    def encode(self, rows: Any, head: bytes) -> Any:
        """Raises Unwritable."""
        values: list[bytes | None] = []
        for number, row in enumerate(_plain(rows)):
            try:
                values.append(None if row is None else head + self._message(0, row))
            except _Fault as fault:
                raise Unwritable(number, fault.step, fault.fault) from None
        return pa.array(values, pa.binary())

    def _message(self, index: int, row: list[Any]) -> bytes:
        out = bytearray()
        taken: set[int] = set()
        for at, field in enumerate(self._messages[index].fields, self._firsts[index]):
            value = None if field.place < 0 else row[field.place]
            if value is None:
                if field.is_required:
                    raise _Fault(at, Fault.BAD_BRANCH)
            elif field.label == Label.MAP:
                for pair in value:
                    out += self._pair(at, field, pair)
            elif field.label == Label.REPEATED:
                out += self._list(at, field, value)
            else:
                if field.oneof in taken:
                    raise _Fault(at, Fault.REFUSED)
                taken |= {field.oneof} - {-1}
                out += self._single(at, field, value, is_implicit=field.label == Label.IMPLICIT)
        return bytes(out)

    def _list(self, at: int, field: FieldWrite, items: list[Any]) -> bytes:
        if None in items:
            raise _Fault(at, Fault.BAD_BRANCH)
        written = [self._single(at, field, item, has_tag=not field.is_packed) for item in items]
        return _framed(field.number, b"".join(written)) if field.is_packed and items else b"".join(written)

    def _pair(self, at: int, field: FieldWrite, pair: tuple[Any, Any]) -> bytes:
        if pair[1] is None:
            raise _Fault(at, Fault.BAD_BRANCH)
        fields = enumerate(self._messages[field.a].fields, self._firsts[field.a])
        parts = [self._single(*each, part) for each, part in zip(fields, pair, strict=True)]
        return _framed(field.number, b"".join(parts))

    def _single(
        self, at: int, field: FieldWrite, value: Any, *, is_implicit: bool = False, has_tag: bool = True
    ) -> bytes:
        wire = _wire(field)
        if wire in (_VARINT, _FIXED64, _FIXED32):
            raw = self._scalar(at, field, value)
            if is_implicit and raw == 0:
                return b""
            tag = _varint(field.number << 3 | wire) if has_tag else b""
            return tag + (_varint(raw) if wire == _VARINT else raw.to_bytes(8 if wire == _FIXED64 else 4, "little"))
        if field.kind in (Type.STRING, Type.BYTES):
            return b"" if is_implicit and not value else _framed(field.number, bytes(value))
        if field.kind == Type.GROUP:
            tags = (_varint(field.number << 3 | wire) for wire in (_GROUP, _END))
            return self._message(field.a, value).join(tags)
        if field.kind == Type.MESSAGE:
            return _framed(field.number, self._message(field.a, value))
        if field.kind == Type.WRAPPER:
            inner = self._messages[field.a].fields[0]
            return _framed(field.number, self._single(self._firsts[field.a], inner, value, is_implicit=True))
        seconds, micros = divmod(value, 1_000_000)
        written = _varint(1 << 3) + _varint(seconds & (2**64 - 1)) if seconds else b""
        return _framed(field.number, written + (_varint(2 << 3) + _varint(micros * 1000) if micros else b""))

    def _scalar(self, at: int, field: FieldWrite, value: Any) -> int:
        kind = field.kind
        if kind == Type.DOUBLE:
            return int.from_bytes(_DOUBLE.pack(value), "little")
        if kind == Type.FLOAT:
            return int.from_bytes(_FLOAT.pack(value), "little")
        if kind == Type.BOOL:
            return int(value)
        if kind == Type.ENUM:
            return self._symbol(at, field, bytes(value)) & (2**64 - 1)
        if kind in (Type.SINT32, Type.SINT64):
            return int((value << 1) ^ (value >> 63))
        if kind in (Type.UINT32, Type.FIXED32, Type.UINT64, Type.FIXED64):
            if not 0 <= value < 2 ** (32 if kind in (Type.UINT32, Type.FIXED32) else 64):
                raise _Fault(at, Fault.BAD_NUMBER)
            return int(value)
        return int(value) & (2**32 - 1 if kind == Type.SFIXED32 else 2**64 - 1)

    def _symbol(self, at: int, field: FieldWrite, name: bytes) -> int:
        """The number of a name; of an open enum digits are a number, too."""
        for edge in range(field.a, field.a + 3 * field.b, 3):
            number, start, size = self._edges[edge : edge + 3]
            if self._constants[start : start + size] == name:
                return number
        digits = name[1:] if name.startswith(b"-") else name
        if not field.is_closed and len(name) <= 11 and digits.isdigit() and -(2**31) <= int(name) < 2**31:
            return int(name)
        raise _Fault(at, Fault.BAD_SYMBOL)


def _framed(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(data)) + data


def _varint(raw: int) -> bytes:
    found = bytearray()
    while raw > 0x7F:
        found.append(raw & 0x7F | 0x80)
        raw >>= 7
    return bytes([*found, raw])
