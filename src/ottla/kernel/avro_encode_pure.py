"""Arrow columns to Avro values with the id of a schema before them, in plain Python.

`AvroEncoder(steps, edges, constants).encode(rows, head)`: one value for each row of a struct array, null for those that
are null. The last step is the one of the struct. Arrays have the types of `ottla.schemas.avro.columns`: whoever calls
has converted them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ottla.kernel.avro_steps import Fault, Unwritable, Write, WriteStep

_FLOAT, _DOUBLE = struct.Struct("<f"), struct.Struct("<d")
_LONG_MAX = 2**63 - 1


class _Fault(Exception):
    def __init__(self, step: int, fault: Fault) -> None:
        self.step, self.fault = step, fault


class AvroEncoder:
    def __init__(self, steps: Sequence[WriteStep], edges: Sequence[int], constants: bytes) -> None:
        self._steps = list(steps)
        self._edges = list(edges)
        self._constants = constants

    def encode(self, rows: Any, head: bytes) -> Any:
        """Raises Unwritable."""
        values: list[bytes | None] = []
        plain = _plain(rows)
        for number, row in enumerate(plain):
            if row is None:
                values.append(None)
                continue
            found = bytearray(head)
            try:
                self._write(len(self._steps) - 1, row, found)
            except _Fault as fault:
                raise Unwritable(number, fault.step, fault.fault) from None
            values.append(bytes(found))
        return pa.array(values, pa.binary())

    def _write(self, index: int, value: Any, out: bytearray) -> None:
        step = self._steps[index]
        if step.kind == Write.CONSTANT:
            out += self._constants[step.a : step.a + step.b]
            return
        if value is None and step.kind != Write.NULL:
            if step.null_branch < 0:
                raise _Fault(index, Fault.BAD_BRANCH)
            out += _zigzag(step.null_branch)
            return
        if step.kind == Write.MEMBERS:
            self._member(index, step, value, out)
            return
        if step.branch >= 0:
            out += _zigzag(step.branch)
        if step.kind == Write.RECORD:
            for child, place in step.children:
                self._write(child, value[place] if place >= 0 else None, out)
        elif step.kind in (Write.ARRAY, Write.MAP):
            self._items(step, value, out)
        else:
            out += self._single(index, step, value)

    def _member(self, index: int, step: WriteStep, value: list[Any], out: bytearray) -> None:
        for child, place in step.children:
            if value[place] is not None:
                self._write(child, value[place], out)
                return
        if step.null_branch < 0:
            raise _Fault(index, Fault.BAD_BRANCH)
        out += _zigzag(step.null_branch)

    def _items(self, step: WriteStep, value: list[Any], out: bytearray) -> None:
        if value:
            out += _zigzag(len(value))
        for item in value:
            if step.kind == Write.MAP:
                out += _zigzag(len(item[0])) + item[0]
            self._write(step.children[0][0], item[1] if step.kind == Write.MAP else item, out)
        out += b"\x00"

    def _single(self, index: int, step: WriteStep, value: Any) -> bytes:
        if step.kind == Write.NULL:
            return b""
        if step.kind == Write.BOOLEAN:
            return b"\x01" if value else b"\x00"
        if step.kind == Write.INT:
            return _zigzag(value)
        if step.kind == Write.LONG:
            value = value * step.a // step.b
            if not -_LONG_MAX - 1 <= value <= _LONG_MAX:
                raise _Fault(index, Fault.BAD_NUMBER)
            return _zigzag(value)
        if step.kind in (Write.FLOAT, Write.DOUBLE):
            return (_FLOAT if step.kind == Write.FLOAT else _DOUBLE).pack(value)
        if step.kind == Write.BYTES:
            return _zigzag(len(value)) + bytes(value)
        if step.kind == Write.FIXED:
            if len(value) != step.a:
                raise _Fault(index, Fault.TOO_SHORT)
            return bytes(value)
        if step.kind == Write.ENUM:
            return self._symbol(index, step, value)
        size = value.bit_length() // 8 + 1 if value >= 0 else (value + 1).bit_length() // 8 + 1
        if step.kind == Write.DECIMAL:
            return _zigzag(size) + int(value).to_bytes(size, "big", signed=True)
        if size > step.a:
            raise _Fault(index, Fault.BAD_NUMBER)
        return bytes(value.to_bytes(step.a, "big", signed=True))

    def _symbol(self, index: int, step: WriteStep, value: bytes) -> bytes:
        for number in range(step.b):
            start, size = self._edges[step.a + 2 * number : step.a + 2 * number + 2]
            if self._constants[start : start + size] == value:
                return _zigzag(number)
        raise _Fault(index, Fault.BAD_SYMBOL)


def _plain(array: Any) -> list[Any]:
    """Structs as lists of their parts, texts as bytes, times and decimals as the numbers that they are."""
    kind = array.type
    if pa.types.is_struct(kind):
        parts = [_plain(array.field(place)) for place in range(kind.num_fields)]
        rows = list(map(list, zip(*parts, strict=True))) if parts else [[] for _ in range(len(array))]
        return [row if valid else None for row, valid in zip(rows, array.is_valid().to_pylist(), strict=True)]
    if pa.types.is_map(kind) or pa.types.is_list(kind):
        if pa.types.is_map(kind):
            items = list(zip(_plain(array.keys), _plain(array.items), strict=True))
        else:
            items = _plain(array.values)
        ends = array.offsets.to_pylist()
        listed = [items[ends[row] : ends[row + 1]] for row in range(len(array))]
        return [row if valid else None for row, valid in zip(listed, array.is_valid().to_pylist(), strict=True)]
    if pa.types.is_decimal(kind):
        return [None if value is None else int(value.scaleb(kind.scale)) for value in array.to_pylist()]
    if pa.types.is_timestamp(kind):
        return list(array.cast(pa.int64()).to_pylist())
    if pa.types.is_date32(kind):
        return list(array.cast(pa.int32()).to_pylist())
    if pa.types.is_string(kind):
        return list(array.cast(pa.binary()).to_pylist())
    return list(array.to_pylist())


def _zigzag(value: int) -> bytes:
    raw = (value << 1) ^ (value >> 63)
    found = bytearray()
    while raw > 0x7F:
        found.append(raw & 0x7F | 0x80)
        raw >>= 7
    found.append(raw)
    return bytes(found)
