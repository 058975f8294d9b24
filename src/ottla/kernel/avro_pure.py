"""Avro values with the id of a schema before them, to Arrow columns, in plain Python.

`AvroDecoder(columns, type).decode(values, programs)` walks over an Arrow array of bytes. The id before each value (a
zero byte, then four) says which program reads it: programs are made once for each schema of a writer and the reader's
schema (`ottla.schemas.avro`), so all of them fill the same columns, whoever wrote. A value that its program cannot
read is null in the result and is named beside it; nothing of it stays in any column.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from ottla.kernel.avro_steps import (
    DEPTH_MAX,
    EMPTY_ITEMS_MAX,
    HEAD_BYTES,
    Bad,
    ColumnShape,
    Fault,
    Kind,
    Step,
)

_FLOAT, _DOUBLE = struct.Struct("<f"), struct.Struct("<d")
_INT_MAX, _LONG_MAX = 2**31 - 1, 2**63 - 1

Steps = Sequence[tuple[int, int, int, int, int]]


class AvroProgram:
    def __init__(self, steps: Steps, edges: Sequence[int], constants: bytes) -> None:
        """The last step is the first to be carried out."""
        self.steps = list(steps)
        self.edges = list(edges)
        self.constants = constants


class _Fault(Exception):
    def __init__(self, fault: Fault, which: int = 0) -> None:
        self.fault = fault
        self.which = which


def schema_ids(values: Any) -> list[int]:
    """The ids that stand before these values, each once, in the order of their first."""
    found: dict[int, None] = {}
    for value in values:
        data = value.as_py()
        if data is not None and len(data) >= HEAD_BYTES and data[0] == 0:
            found[int.from_bytes(data[1:HEAD_BYTES], "big")] = None
    return list(found)


class AvroDecoder:
    def __init__(self, columns: Sequence[ColumnShape], kind: Any) -> None:
        """`kind`: the type of the array, a struct whose parts have the shapes of `columns`."""
        self._columns = columns
        self._type = kind

    def decode(self, values: Any, programs: Mapping[int, AvroProgram]) -> tuple[Any, list[Bad]]:
        """A struct for each value, null for those that are null or bad; and the bad ones."""
        rows: list[Any] = []
        bad: list[Bad] = []
        for number, value in enumerate(values):
            data = value.as_py()
            try:
                rows.append(None if data is None else self._row(data, programs))
            except _Fault as fault:
                rows.append(None)
                bad.append(Bad(number, fault.fault, fault.which))
        return pa.array([None if row is None else _exact(row, self._type) for row in rows], self._type), bad

    def _row(self, data: bytes, programs: Mapping[int, AvroProgram]) -> Any:
        if len(data) < HEAD_BYTES or data[0] != 0:
            raise _Fault(Fault.NOT_FRAMED)
        number = int.from_bytes(data[1:HEAD_BYTES], "big")
        if number not in programs:
            raise _Fault(Fault.NO_PROGRAM, number)
        run = _Run(self._columns, programs[number], data, HEAD_BYTES)
        run.step(len(programs[number].steps) - 1, 0)
        if run.at != len(data):
            raise _Fault(Fault.LEFT_OVER)
        return run.found.get(0)


class _Run:
    """One value. What is read is kept by the number of its column, until whatever it is a part of takes it."""

    def __init__(self, columns: Sequence[ColumnShape], program: AvroProgram, data: bytes, at: int) -> None:
        self._columns = columns
        self._program = program
        self._data = data
        self.at = at
        # So many more items may come: one for each byte, and a few that take none.
        self._items_left = len(data) + EMPTY_ITEMS_MAX
        self.found: dict[int, Any] = {}

    def step(self, index: int, depth: int) -> None:
        if depth > DEPTH_MAX:
            raise _Fault(Fault.TOO_DEEP)
        kind, column, a, b, c = self._program.steps[index]
        if kind in (Step.RECORD, Step.UNION, Step.MEMBER, Step.DEFAULT, Step.ARRAY, Step.MAP):
            self._within(kind, column, a, b, c, depth)
        elif kind in (Step.SKIP_ARRAY, Step.SKIP_MAP):
            self._items(kind == Step.SKIP_MAP, a, -1, depth)
        elif kind == Step.REFUSE:
            raise _Fault(Fault.REFUSED, a)
        else:
            self._put(column, self._single(kind, a, b))

    def _put(self, column: int, value: Any) -> None:
        if column >= 0:
            self.found[column] = value

    def _within(self, kind: int, column: int, a: int, b: int, c: int, depth: int) -> None:
        edges = self._program.edges
        if kind == Step.RECORD:
            for edge in edges[a : a + b]:
                self.step(edge, depth + 1)
            if column >= 0:
                self._gather(column)
        elif kind == Step.UNION:
            branch = self._varint()
            if not 0 <= branch < b:
                raise _Fault(Fault.BAD_BRANCH)
            self.step(edges[a + branch], depth + 1)
        elif kind == Step.MEMBER:
            self.step(a, depth + 1)
            self._gather(column)
        elif kind == Step.DEFAULT:
            before = self._data, self.at, self._items_left
            self._data, self.at, self._items_left = self._program.constants[b : b + c], 0, c + EMPTY_ITEMS_MAX
            self.step(a, depth + 1)
            self._data, self.at, self._items_left = before
        else:
            self._put(column, self._items(kind == Step.MAP, a, column, depth))

    def _gather(self, column: int) -> None:
        self.found[column] = [self.found.pop(child, None) for child in self._columns[column].children]

    def _items(self, is_map: bool, step: int, column: int, depth: int) -> list[Any]:
        child = self._columns[column].children[-1] if column >= 0 else -1
        found: list[Any] = []
        while count := self._varint():
            if count < 0:
                size = self._varint()
                if count < -_LONG_MAX or not 0 <= size <= len(self._data) - self.at:
                    raise _Fault(Fault.TOO_SHORT)
                count = -count
            if count > self._items_left:
                raise _Fault(Fault.TOO_MANY)
            self._items_left -= count
            for _ in range(count):
                key = self._text() if is_map else None
                self.step(step, depth + 1)
                item = self.found.pop(child, None)
                found.append((key, item) if is_map else item)
        return found

    def _single(self, kind: int, a: int, b: int) -> Any:
        if kind == Step.NULL:
            return None
        if kind == Step.BOOLEAN:
            byte = self._take(1)[0]
            if byte > 1:
                raise _Fault(Fault.BAD_NUMBER)
            return byte == 1
        if kind in (Step.INT, Step.LONG, Step.LONG_TO_FLOAT, Step.LONG_TO_DOUBLE, Step.SKIP_VARINT):
            return self._number(kind, a, b)
        if kind in (Step.FLOAT, Step.FLOAT_TO_DOUBLE):
            return _FLOAT.unpack(self._take(4))[0]
        if kind == Step.DOUBLE:
            return _DOUBLE.unpack(self._take(8))[0]
        if kind == Step.STRING:
            return self._text()
        if kind in (Step.BYTES, Step.SKIP_BYTES):
            return self._take(self._varint())
        if kind in (Step.FIXED, Step.SKIP_FIXED):
            return self._take(a)
        if kind in (Step.DECIMAL, Step.DECIMAL_FIXED):
            number = int.from_bytes(self._take(self._varint() if kind == Step.DECIMAL else b), "big", signed=True)
            if abs(number) >= 10**a:
                raise _Fault(Fault.BAD_NUMBER)
            return number
        return self._symbol(a, b)

    def _number(self, kind: int, a: int, b: int) -> int | float:
        value = self._varint()
        if kind == Step.INT and not -_INT_MAX - 1 <= value <= _INT_MAX:
            raise _Fault(Fault.BAD_NUMBER)
        if kind == Step.LONG:
            value = value * a // b
            if not -_LONG_MAX - 1 <= value <= _LONG_MAX:
                raise _Fault(Fault.BAD_NUMBER)
        return float(value) if kind in (Step.LONG_TO_FLOAT, Step.LONG_TO_DOUBLE) else value

    def _symbol(self, a: int, b: int) -> str:
        number = self._varint()
        if not 0 <= number < b or self._program.edges[a + 2 * number] < 0:
            raise _Fault(Fault.BAD_SYMBOL)
        start, size = self._program.edges[a + 2 * number : a + 2 * number + 2]
        return self._program.constants[start : start + size].decode()

    def _text(self) -> str:
        try:
            return self._take(self._varint()).decode()
        except UnicodeDecodeError:
            raise _Fault(Fault.BAD_TEXT) from None

    def _take(self, size: int) -> bytes:
        if not 0 <= size <= len(self._data) - self.at:
            raise _Fault(Fault.TOO_SHORT)
        self.at += size
        return self._data[self.at - size : self.at]

    def _varint(self) -> int:
        value = shift = 0
        while self.at < len(self._data) and shift <= 63:
            byte = self._data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                value &= 2**64 - 1
                return (value >> 1) ^ -(value & 1)
            shift += 7
        raise _Fault(Fault.TOO_SHORT)


def _exact(value: Any, kind: Any) -> Any:
    """As Arrow takes it: structs by the names of their parts, decimals as such."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        fields = [kind.field(index) for index in range(kind.num_fields)]
        return {field.name: _exact(part, field.type) for field, part in zip(fields, value, strict=True)}
    if pa.types.is_map(kind):
        return [(key, _exact(item, kind.item_type)) for key, item in value]
    if pa.types.is_list(kind):
        return [_exact(item, kind.value_type) for item in value]
    if pa.types.is_decimal(kind):
        from decimal import Context, Decimal

        return Decimal(value).scaleb(-kind.scale, Context(prec=60))
    return value


__all__ = ["AvroDecoder", "AvroProgram", "Kind", "schema_ids"]
