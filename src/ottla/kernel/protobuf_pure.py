"""Protobuf messages with the id of a schema before them, to Arrow columns, in plain Python.

`ProtobufDecoder(columns, type, messages, edges, constants).decode(values, places)` walks over an Arrow array of bytes.
Fields go by their numbers, so one program, made of the reader's message (`ottla.schemas.protobuf_columns`), reads what
anybody wrote; the id before a value only says at which place of its file the message stood when it was written.

What protobuf's own runtimes take is taken, and what they refuse is refused: fields in any order, the last of several
counts, messages that come in pieces are one, numbers of a list may be packed or not, a field of another wire type is
one that nobody knows. A value that cannot be read is null in the result and is named beside it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from ottla.kernel.avro_pure import _exact
from ottla.kernel.avro_steps import HEAD_BYTES, Bad, ColumnShape, Fault
from ottla.kernel.protobuf_steps import NESTED_MAX, FieldStep, FieldWrite, Label, MessageStep, Type

_FLOAT, _DOUBLE = struct.Struct("<f"), struct.Struct("<d")
_VARINT, _FIXED64, _BYTES, _GROUP, _END, _FIXED32 = range(6)
_MICROS_MAX = 2**63 - 1
_WIRES = dict.fromkeys((Type.DOUBLE, Type.FIXED64, Type.SFIXED64), _FIXED64)
_WIRES |= dict.fromkeys((Type.FLOAT, Type.FIXED32, Type.SFIXED32), _FIXED32)
_WIRES |= dict.fromkeys((Type.STRING, Type.BYTES, Type.MESSAGE, Type.TIMESTAMP, Type.WRAPPER), _BYTES)
_WIRES[Type.GROUP] = _GROUP
_MESSAGES = (Type.MESSAGE, Type.GROUP, Type.TIMESTAMP, Type.WRAPPER)

# An occurrence of a field: a number, or bytes.
Found = int | bytes


class _Fault(Exception):
    def __init__(self, fault: Fault) -> None:
        self.fault = fault


class _Message:
    def __init__(self, step: MessageStep) -> None:
        self.fields = step.fields
        self.by_number = {field.number: place for place, field in enumerate(step.fields)}


class ProtobufDecoder:
    def __init__(
        self,
        columns: Sequence[ColumnShape],
        kind: Any,
        messages: Sequence[MessageStep],
        edges: Sequence[int],
        constants: bytes,
    ) -> None:
        """The first message is the one that values are; column 0 is its struct."""
        self._type = kind
        self._messages = [_Message(message) for message in messages]
        self._names = {
            (field.a, number): name
            for message in messages
            for field in message.fields
            if field.kind == Type.ENUM
            for number, name in _enum(field, edges, constants)
        }

    def decode(self, values: Any, places: Mapping[int, Sequence[int]]) -> tuple[Any, list[Bad]]:
        """A struct for each value, null for those that are null or bad; and the bad ones. `places`: of each id that
        may stand before a value, where the message is in its file."""
        rows: list[Any] = []
        bad: list[Bad] = []
        for number, value in enumerate(values):
            data = value.as_py()
            try:
                rows.append(None if data is None else self._row(data, places))
            except _Fault as fault:
                rows.append(None)
                which = int.from_bytes(data[1:HEAD_BYTES], "big") if fault.fault == Fault.NO_PROGRAM else 0
                bad.append(Bad(number, fault.fault, which))
        return pa.array([None if row is None else _exact(row, self._type) for row in rows], self._type), bad

    def _row(self, data: bytes, places: Mapping[int, Sequence[int]]) -> Any:
        if len(data) < HEAD_BYTES or data[0] != 0:
            raise _Fault(Fault.NOT_FRAMED)
        place = places.get(int.from_bytes(data[1:HEAD_BYTES], "big"))
        if place is None:
            raise _Fault(Fault.NO_PROGRAM)
        at = _past_place(data, place)
        return self._struct(0, self._noted(0, [data[at:]], 0), 0)

    # --- where the fields are

    def _noted(self, number: int, pieces: Sequence[Found], depth: int) -> list[list[Found]]:
        """Of each field of a message, its occurrences."""
        message = self._messages[number]
        noted: list[list[Found]] = [[] for _ in message.fields]
        oneofs: dict[int, int] = {}
        for piece in pieces:
            assert isinstance(piece, bytes)
            for place, value in self._scanned(message, piece, depth):
                field = message.fields[place]
                if field.oneof >= 0:
                    before = oneofs.get(field.oneof, place)
                    if before != place:
                        self._look_through(message.fields[before], noted[before], depth)
                        noted[before] = []
                    oneofs[field.oneof] = place
                if field.label <= Label.PRESENT and field.kind not in _MESSAGES:
                    noted[place] = [value]
                else:
                    noted[place].append(value)
        return noted

    def _scanned(self, message: _Message, data: bytes, depth: int) -> Iterator[tuple[int, Found]]:
        """Those that the reader knows, with their wire types."""
        at = 0
        while at < len(data):
            tag, at = _short(data, at, 2**32 - 1)
            number, wire = tag >> 3, tag & 7
            if number == 0:
                raise _Fault(Fault.BAD_FORM)
            place = message.by_number.get(number)
            field = None if place is None else message.fields[place]
            is_known = field is not None and (
                wire == _wire(field) or (wire == _BYTES and field.label == Label.REPEATED and _wire(field) != _GROUP)
            )
            value, at = _one(data, at, tag, depth)
            if not is_known:
                continue
            assert field is not None and place is not None
            if field.kind == Type.STRING:
                _text(value)
            if wire == _VARINT and self._is_unknown(field, value):
                continue
            yield place, value

    def _is_unknown(self, field: FieldStep, value: Found) -> bool:
        """A number that a closed enum does not have."""
        return bool(field.kind == Type.ENUM and field.is_closed) and (field.a, _signed(value, 32)) not in self._names

    def _look_through(self, field: FieldStep, values: Sequence[Found], depth: int) -> None:
        """What nobody asks for has to be well-formed all the same."""
        for value in values:
            if field.kind in _MESSAGES and isinstance(value, bytes):
                if depth >= NESTED_MAX:
                    raise _Fault(Fault.TOO_DEEP)
                inner = self._messages[field.a]
                for place, part in self._scanned(inner, value, depth + 1):
                    self._look_through(inner.fields[place], [part], depth + 1)
            elif isinstance(value, bytes) and _wire(field) != _BYTES:
                list(_packed(field, value))

    # --- what they say

    def _struct(self, number: int, noted: list[list[Found]], depth: int) -> list[Any]:
        fields = self._messages[number].fields
        return [self._field(field, values, depth) for field, values in zip(fields, noted, strict=True)]

    def _field(self, field: FieldStep, values: list[Found], depth: int) -> Any:
        if field.label == Label.MAP:
            return self._pairs(field, values, depth)
        if field.label == Label.REPEATED:
            return [each for value in values for each in self._items(field, value, depth)]
        if not values and field.label == Label.PRESENT:
            return None
        return self._single(field, values, depth)

    def _items(self, field: FieldStep, value: Found, depth: int) -> Iterator[Any]:
        if isinstance(value, bytes) and _wire(field) not in (_BYTES, _GROUP):
            for raw in _packed(field, value):
                if not self._is_unknown(field, raw):
                    yield self._single(field, [raw], depth)
        else:
            yield self._single(field, [value], depth)

    def _single(self, field: FieldStep, values: Sequence[Found], depth: int) -> Any:
        """Without values its default."""
        if field.kind in _MESSAGES:
            return self._message(field, values, depth)
        if _wire(field) == _BYTES:
            data = values[-1] if values else b""
            return _text(data) if field.kind == Type.STRING else data
        raw = values[-1] if values else field.default
        assert isinstance(raw, int)
        if field.kind == Type.ENUM:
            number = _signed(raw, 32)
            return self._names.get((field.a, number), str(number))
        return _number(field.kind, raw)

    def _message(self, field: FieldStep, values: Sequence[Found], depth: int) -> Any:
        if depth >= NESTED_MAX:
            raise _Fault(Fault.TOO_DEEP)
        noted = self._noted(field.a, values, depth + 1)
        if field.kind == Type.TIMESTAMP:
            seconds, nanos = (_signed(its[-1], bits) if its else 0 for its, bits in zip(noted, (64, 32), strict=True))
            return min(max(seconds * 1_000_000 + nanos // 1000, -_MICROS_MAX), _MICROS_MAX)
        found = self._struct(field.a, noted, depth + 1)
        return found[0] if field.kind == Type.WRAPPER else found

    def _pairs(self, field: FieldStep, values: list[Found], depth: int) -> list[tuple[Any, Any]]:
        """The last of those that have the same key counts. A pair with anything else in it is none."""
        if values and depth >= NESTED_MAX:
            raise _Fault(Fault.TOO_DEEP)
        key_of, value_of = self._messages[field.a].fields
        last: dict[Any, list[list[Found]]] = {}
        for value in values:
            noted = self._noted(field.a, [value], depth + 1)
            self._look_through(field, [value], depth)
            if self._has_unknown(field, value):
                continue
            key = self._field(key_of, noted[0], depth + 1)
            last.pop(key, None)
            last[key] = noted
        return [(key, self._field(value_of, noted[1], depth + 1)) for key, noted in last.items()]

    def _has_unknown(self, field: FieldStep, pair: Found) -> bool:
        assert isinstance(pair, bytes)
        at = 0
        while at < len(pair):
            tag, at = _short(pair, at, 2**32 - 1)
            value, at = _one(pair, at, tag, 0)
            known = [its for its in self._messages[field.a].fields if tag == its.number << 3 | _wire(its)]
            if not known or (tag & 7 == _VARINT and self._is_unknown(known[0], value)):
                return True
        return False


def _enum(field: FieldStep, edges: Sequence[int], constants: bytes) -> Iterator[tuple[int, str]]:
    for edge in range(field.a, field.a + 3 * field.b, 3):
        number, start, size = edges[edge : edge + 3]
        yield number, constants[start : start + size].decode()


def _wire(field: FieldStep | FieldWrite) -> int:
    return _WIRES.get(Type(field.kind), _VARINT)


def _past_place(data: bytes, place: Sequence[int]) -> int:
    """Past the numbers that say which message of the file follows."""
    count, at = _zigzag(data, HEAD_BYTES)
    if not 0 <= count <= len(data) - HEAD_BYTES:
        raise _Fault(Fault.TOO_SHORT)
    found: list[int] = []
    for _ in range(count):
        number, at = _zigzag(data, at)
        found.append(number)
    if (found or [0]) != list(place):
        raise _Fault(Fault.OTHER_MESSAGE)
    return at


def _one(data: bytes, at: int, tag: int, depth: int) -> tuple[Found, int]:
    """What follows a tag, and where it ends. Of a group: what is within it."""
    wire = tag & 7
    if wire == _VARINT:
        return _varint(data, at)
    if wire in (_FIXED64, _FIXED32):
        size = 8 if wire == _FIXED64 else 4
        return int.from_bytes(_taken(data, at, size), "little"), at + size
    if wire == _BYTES:
        size, at = _short(data, at, 2**31 - 1)
        return _taken(data, at, size), at + size
    if wire != _GROUP:
        raise _Fault(Fault.BAD_FORM)
    if depth >= NESTED_MAX:
        raise _Fault(Fault.TOO_DEEP)
    start = at
    while True:
        end = at
        inner, at = _short(data, at, 2**32 - 1)
        if inner & 7 == _END:
            if inner >> 3 != tag >> 3:
                raise _Fault(Fault.BAD_FORM)
            return data[start:end], at
        _, at = _one(data, at, inner, depth + 1)


def _packed(field: FieldStep, data: bytes) -> Iterator[int]:
    wire, at = _wire(field), 0
    size = 8 if wire == _FIXED64 else 4
    if wire != _VARINT and len(data) % size:
        raise _Fault(Fault.TOO_SHORT)
    while at < len(data):
        if wire == _VARINT:
            raw, at = _varint(data, at)
        else:
            raw, at = int.from_bytes(data[at : at + size], "little"), at + size
        yield raw


def _number(kind: int, raw: int) -> Any:
    if kind == Type.DOUBLE:
        return _DOUBLE.unpack(raw.to_bytes(8, "little"))[0]
    if kind == Type.FLOAT:
        return _FLOAT.unpack(raw.to_bytes(4, "little"))[0]
    if kind == Type.BOOL:
        return raw != 0
    if kind in (Type.UINT32, Type.FIXED32):
        return raw & 0xFFFFFFFF
    if kind in (Type.UINT64, Type.FIXED64):
        return raw
    if kind in (Type.SINT32, Type.SINT64):
        raw &= 2**32 - 1 if kind == Type.SINT32 else 2**64 - 1
        return (raw >> 1) ^ -(raw & 1)
    return _signed(raw, 32 if kind in (Type.INT32, Type.SFIXED32) else 64)


def _signed(raw: Found, bits: int) -> int:
    assert isinstance(raw, int)
    raw &= (1 << bits) - 1
    return raw - (1 << bits) if raw >> (bits - 1) else raw


def _text(data: Found) -> str:
    assert isinstance(data, bytes)
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise _Fault(Fault.BAD_TEXT) from None


def _taken(data: bytes, at: int, size: int) -> bytes:
    if size > len(data) - at:
        raise _Fault(Fault.TOO_SHORT)
    return data[at : at + size]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value & (2**64 - 1), at
    raise _Fault(Fault.TOO_SHORT)


def _short(data: bytes, at: int, most: int) -> tuple[int, int]:
    """Of at most five bytes, as tags and lengths are."""
    value, after = _varint(data, at)
    if after - at > 5 or value > most:
        raise _Fault(Fault.TOO_SHORT)
    return value, after


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    raw, at = _varint(data, at)
    return (raw >> 1) ^ -(raw & 1), at
