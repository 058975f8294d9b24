"""A writer's schema and a reader's, to a program that reads what the one wrote into columns of the other.

Avro's rules of resolution: fields are matched by name or alias, in the writer's order; what the reader does not have is
passed over, what the writer does not have is the default; numbers are promoted; a branch of a union is matched by its
type, then by promotion. What cannot be matched only makes those values bad that have it: a branch of a union that the
reader lacks is no trouble until somebody writes it.

Names of records count where a union has several of them, and nowhere else: whether a subject may rename its records is
for its compatibility level to say.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.avro.binary import default_bytes
from ottla.avro.schema import Field, Schema
from ottla.kernel.avro import AvroProgram
from ottla.kernel.avro_steps import Kind, Step
from ottla.schemas.avro.columns import UNITS, Column, Columns, decimal_of, members, moment_of

_SKIP = {
    "boolean": (Step.SKIP_FIXED, 1),
    "int": (Step.SKIP_VARINT, 0),
    "long": (Step.SKIP_VARINT, 0),
    "enum": (Step.SKIP_VARINT, 0),
    "float": (Step.SKIP_FIXED, 4),
    "double": (Step.SKIP_FIXED, 8),
    "bytes": (Step.SKIP_BYTES, 0),
    "string": (Step.SKIP_BYTES, 0),
}
# (writer, reader) -> step
_READ = {
    ("boolean", "boolean"): Step.BOOLEAN,
    ("int", "int"): Step.INT,
    ("int", "long"): Step.LONG,
    ("long", "long"): Step.LONG,
    ("int", "float"): Step.LONG_TO_FLOAT,
    ("long", "float"): Step.LONG_TO_FLOAT,
    ("int", "double"): Step.LONG_TO_DOUBLE,
    ("long", "double"): Step.LONG_TO_DOUBLE,
    ("float", "float"): Step.FLOAT,
    ("float", "double"): Step.FLOAT_TO_DOUBLE,
    ("double", "double"): Step.DOUBLE,
    ("bytes", "bytes"): Step.BYTES,
    ("string", "bytes"): Step.BYTES,
    ("string", "string"): Step.STRING,
    ("bytes", "string"): Step.STRING,
}


class Unreadable(Exception):
    """What the writer wrote, the reader does not take; the sentence says what."""


class Resolved(NamedTuple):
    program: AvroProgram
    # Of the steps that refuse.
    refusals: list[str]


def resolve(writer: Schema, reader: Schema, columns: Columns) -> Resolved:
    """Raises Unreadable if no value of the writer's can be read."""
    made = _Program()
    if reader.is_record:
        made.read(writer, reader, columns.root)
    else:
        value = made.read(writer, reader, columns.root.children[0])
        made.add(Step.RECORD, columns.root.number, *made.listed([value]))
    return Resolved(AvroProgram(made.steps, made.edges, bytes(made.constants)), made.refusals)


class _Program:
    def __init__(self) -> None:
        self.steps: list[tuple[int, int, int, int, int]] = []
        self.edges: list[int] = []
        self.constants = bytearray()
        self.refusals: list[str] = []
        # By the identity of a writer's schema: it may contain itself.
        self._skipped: dict[int, int] = {}

    def add(self, step: Step, column: int = -1, a: int = 0, b: int = 0, c: int = 0) -> int:
        self.steps.append((int(step), column, a, b, c))
        return len(self.steps) - 1

    def listed(self, edges: list[int]) -> tuple[int, int]:
        start = len(self.edges)
        self.edges += edges
        return start, len(edges)

    # --- what is read

    def read(self, writer: Schema, reader: Schema, column: Column) -> int:
        if writer.type == "union":
            branches = [self._read_or_refuse(branch, reader, column) for branch in writer.branches]
            if branches and all(self.steps[branch][0] == Step.REFUSE for branch in branches):
                raise Unreadable(self.refusals[-1])
            return self.add(Step.UNION, -1, *self.listed(branches))
        if reader.type == "union":
            return self._into_union(writer, reader, column)
        if reader.is_record and writer.is_record:
            return self._record(writer, reader, column)
        if reader.type != writer.type and (writer.type, reader.type) not in _READ:
            raise Unreadable(f"{_named(writer)} cannot be read as {_named(reader)}")
        if reader.type in ("array", "map"):
            # An array without items is read, whatever its items would be.
            item = self._read_or_refuse(writer.element(), reader.element(), column.children[-1])
            return self.add(Step.ARRAY if reader.type == "array" else Step.MAP, column.number, item)
        return self._single(writer, reader, column)

    def _read_or_refuse(self, writer: Schema, reader: Schema, column: Column) -> int:
        before = len(self.steps)
        try:
            return self.read(writer, reader, column)
        except Unreadable as error:
            del self.steps[before:]
            self._skipped = {key: step for key, step in self._skipped.items() if step < before}
            self.refusals.append(str(error))
            return self.add(Step.REFUSE, -1, len(self.refusals) - 1)

    def _into_union(self, writer: Schema, reader: Schema, column: Column) -> int:
        if writer.type == "null" and any(branch.type == "null" for branch in reader.branches):
            return self.add(Step.NULL, column.number)
        others = members(reader)
        for number, branch in enumerate(_by_fit(writer, others)):
            where = others.index(branch) if len(others) > 1 else 0
            try:
                if len(others) == 1:
                    return self.read(writer, branch, column)
                step = self.read(writer, branch, column.children[where])
                return self.add(Step.MEMBER, column.number, step, where)
            except Unreadable:
                if number == len(others) - 1:
                    raise
        raise Unreadable(f"{_named(writer)} is none of {', '.join(_named(branch) for branch in reader.branches)}")

    def _record(self, writer: Schema, reader: Schema, column: Column) -> int:
        places = {its.name: place for place, its in enumerate(reader.fields)}
        missing = dict(enumerate(reader.fields))
        steps: list[int] = []
        for theirs in writer.fields:
            place = _counterpart(theirs, writer, reader, places)
            if place is None or place not in missing:
                steps.append(self.skip(theirs.schema))
                continue
            mine = missing.pop(place)
            try:
                steps.append(self.read(theirs.schema, mine.schema, column.children[place]))
            except Unreadable as error:
                raise Unreadable(f"field '{mine.name}': {error}") from None
        for place, mine in missing.items():
            steps.append(self._default(mine, column.children[place]))
        return self.add(Step.RECORD, column.number, *self.listed(steps))

    def _default(self, mine: Field, column: Column) -> int:
        if not mine.has_default:
            raise Unreadable(f"field '{mine.name}' is not there and has no default")
        data = default_bytes(mine.schema, mine.default)
        start = len(self.constants)
        self.constants += data
        step = self.read(mine.schema, mine.schema, column)
        return self.add(Step.DEFAULT, -1, step, start, len(data))

    def _single(self, writer: Schema, reader: Schema, column: Column) -> int:
        kind = reader.type
        if kind == "null":
            return self.add(Step.NULL, column.number)
        if kind == "enum":
            return self._enum(writer, reader, column)
        if kind == "fixed" and writer.size != reader.size:
            raise Unreadable(f"{writer.size} bytes cannot be read as {_named(reader)} of {reader.size}")
        if (decimal := decimal_of(reader)) is not None:
            theirs = decimal_of(writer)
            if theirs is not None and theirs[1] != decimal[1]:
                raise Unreadable(f"a decimal with {theirs[1]} digits after the point cannot be read with {decimal[1]}")
            step = Step.DECIMAL_FIXED if writer.type == "fixed" else Step.DECIMAL
            return self.add(step, column.number, decimal[0], writer.size)
        if kind == "fixed":
            return self.add(Step.FIXED, column.number, writer.size)
        step = _READ[writer.type, kind]
        if step != Step.LONG:
            return self.add(step, column.number)
        mine = moment_of(reader)
        # A writer's unit is what the number is in, whatever the reader's schema calls it.
        unit = (moment_of(writer) or mine or (True, "micros"))[1] if mine is not None else "micros"
        return self.add(step, column.number, *UNITS[unit])

    def _enum(self, writer: Schema, reader: Schema, column: Column) -> int:
        edges: list[int] = []
        for symbol in writer.symbols:
            known = symbol if symbol in reader.symbols else reader.enum_default
            if known is None:
                edges += (-1, 0)
                continue
            edges += (len(self.constants), len(known.encode()))
            self.constants += known.encode()
        start = len(self.edges)
        self.edges += edges
        return self.add(Step.ENUM, column.number, start, len(writer.symbols))

    # --- what is passed over

    def skip(self, writer: Schema) -> int:
        if id(writer) in self._skipped:
            return self._skipped[id(writer)]
        if writer.type == "null":
            return self.add(Step.NULL)
        if writer.type == "fixed":
            return self.add(Step.SKIP_FIXED, -1, writer.size)
        if writer.type in _SKIP:
            return self.add(_SKIP[writer.type][0], -1, _SKIP[writer.type][1])
        # Its place first: what is within may lead back to it.
        place = self._skipped[id(writer)] = self.add(Step.NULL)
        if writer.type in ("array", "map"):
            item = self.skip(writer.element())
            made = Step.SKIP_ARRAY if writer.type == "array" else Step.SKIP_MAP
            self.steps[place] = (int(made), -1, item, 0, 0)
            return place
        inner = writer.branches if writer.type == "union" else [its.schema for its in writer.fields]
        start, count = self.listed([self.skip(each) for each in inner])
        step = Step.UNION if writer.type == "union" else Step.RECORD
        self.steps[place] = (int(step), -1, start, count, 0)
        return place


def _counterpart(theirs: Field, writer: Schema, reader: Schema, places: dict[str, int]) -> int | None:
    if theirs.name in places:
        return places[theirs.name]
    written = {its.name for its in writer.fields}
    for place, mine in enumerate(reader.fields):
        if theirs.name in mine.aliases and mine.name not in written:
            return place
    return None


def _by_fit(writer: Schema, branches: list[Schema]) -> list[Schema]:
    """Those of the same type before those that it can be promoted to; of several records, those of its name first."""

    def rank(branch: Schema) -> int:
        if branch.type != writer.type and not (branch.is_record and writer.is_record):
            return 3
        if branch.name is None or writer.name is None:
            return 0
        if branch.name == writer.name:
            return 0
        return 1 if branch.name.simple == writer.name.simple else 2

    return sorted(branches, key=rank)


def _named(schema: Schema) -> str:
    return f"'{schema.full_name}'"


__all__ = ["Kind", "Resolved", "Unreadable", "resolve"]
