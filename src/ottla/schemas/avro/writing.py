"""Columns as values of an Avro schema: the schema that follows from columns, and the steps that write them."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import pyarrow as pa

from ottla.avro.binary import default_bytes
from ottla.avro.schema import Field, Schema
from ottla.common.errors import OttlaError
from ottla.kernel.avro_encode import AvroEncoder
from ottla.kernel.avro_steps import WRITE_SENTENCES, Fault, Unwritable, Write, WriteStep
from ottla.schemas.avro.columns import UNITS, VALUE, columns_of, decimal_of, members, moment_of

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_PLAIN = {
    "null": Write.NULL,
    "boolean": Write.BOOLEAN,
    "int": Write.INT,
    "float": Write.FLOAT,
    "double": Write.DOUBLE,
    "bytes": Write.BYTES,
    "string": Write.BYTES,
}


# --- a schema from columns


def schema_of(kind: Any, name: str) -> dict[str, Any]:
    """A record with a field for each part of a struct, each of which may be null. Raises OttlaError."""
    fields = []
    for index in range(kind.num_fields):
        part = kind.field(index)
        if not _NAME.fullmatch(part.name):
            raise OttlaError(
                f"a field of an Avro schema cannot be called '{part.name}': rename the column to letters, digits and "
                "'_'."
            )
        inner = type_of(part.type, f"{name}_{part.name}")
        fields.append({"name": part.name, "type": _or_null(inner), "default": None})
    return {"type": "record", "name": name, "fields": fields}


def record_name(topic: str) -> str:
    name = re.sub(r"[^A-Za-z0-9_]", "_", topic)
    return name if _NAME.fullmatch(name) else f"_{name}"


def _or_null(inner: Any) -> Any:
    return "null" if inner == "null" else ["null", inner]


def type_of(kind: Any, name: str) -> Any:
    types = pa.types
    if types.is_struct(kind):
        return schema_of(kind, name)
    if types.is_map(kind):
        if not types.is_string(kind.key_type):
            raise OttlaError(f"the keys of a map are text in Avro, and '{name}' has {kind.key_type}.")
        return {"type": "map", "values": _or_null(type_of(kind.item_type, f"{name}_value"))}
    if types.is_list(kind):
        return {"type": "array", "items": _or_null(type_of(kind.value_type, f"{name}_element"))}
    if types.is_decimal(kind):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if types.is_timestamp(kind):
        return {"type": "long", "logicalType": "timestamp-micros" if kind.tz else "local-timestamp-micros"}
    if types.is_date32(kind):
        return {"type": "int", "logicalType": "date"}
    for is_one, word in (
        (types.is_null, "null"),
        (types.is_boolean, "boolean"),
        (types.is_int64, "long"),
        (types.is_float32, "float"),
        (types.is_float64, "double"),
        (types.is_string, "string"),
        (types.is_binary, "bytes"),
    ):
        if is_one(kind):
            return word
    if types.is_signed_integer(kind):
        return "int"
    raise OttlaError(f"Avro has no type for '{name}', which is {kind}: cast the column, or leave it out.")


# --- columns to values


class Written(NamedTuple):
    """`type`: what rows have to be converted to before they are encoded."""

    type: Any
    encoder: AvroEncoder
    # Of each step, which column it is about.
    paths: list[str]

    def encode(self, rows: Any, head: bytes) -> Any:
        """Raises OttlaError for a row that does not fit."""
        try:
            return self.encoder.encode(rows, head)
        except Unwritable as error:
            sentence = WRITE_SENTENCES[Fault(error.fault)]
            raise OttlaError(
                f"a row cannot be written with its schema: the column '{self.paths[error.step]}' {sentence}."
            ) from None


def written(schema: Schema, names: list[str]) -> Written:
    """`names`: the columns that there are; what else the schema has gets its defaults. Raises OttlaError."""
    maker = _Maker()
    if not schema.is_record:
        if names != [VALUE]:
            raise OttlaError(f"the schema is no record: it takes one column, '{VALUE}', not {', '.join(names)}.")
        columns = columns_of(schema)
        step = maker.step(schema, VALUE)
        maker.add(WriteStep(int(Write.RECORD), children=((step, 0),)), "")
        return Written(columns.type, maker.encoder(), maker.paths)
    known = {its.name: its for its in schema.fields}
    if unknown := [name for name in names if name not in known]:
        raise OttlaError(f"the schema '{schema.full_name}' has no field '{unknown[0]}': it has {', '.join(known)}.")
    all_columns = columns_of(schema).type
    kind = pa.struct([all_columns.field(name) for name in names])
    children = tuple(
        (maker.step(its.schema, its.name), names.index(its.name))
        if its.name in names
        else (maker.default(its, schema), -1)
        for its in schema.fields
    )
    maker.add(WriteStep(int(Write.RECORD), children=children), "")
    return Written(kind, maker.encoder(), maker.paths)


class _Maker:
    def __init__(self) -> None:
        self.steps: list[WriteStep] = []
        self.paths: list[str] = []
        self._edges: list[int] = []
        self._constants = bytearray()

    def encoder(self) -> AvroEncoder:
        return AvroEncoder(self.steps, self._edges, bytes(self._constants))

    def add(self, step: WriteStep, path: str) -> int:
        self.steps.append(step)
        self.paths.append(path)
        return len(self.steps) - 1

    def default(self, its: Field, schema: Schema) -> int:
        if not its.has_default:
            raise OttlaError(
                f"the schema '{schema.full_name}' needs a column '{its.name}', which is not there and has no default."
            )
        data = default_bytes(its.schema, its.default)
        start = len(self._constants)
        self._constants += data
        return self.add(WriteStep(int(Write.CONSTANT), a=start, b=len(data)), its.name)

    def step(self, schema: Schema, path: str, null_branch: int = -1, branch: int = -1) -> int:
        if schema.type == "union":
            return self._union(schema, path)
        if schema.is_record:
            children = tuple(
                (self.step(its.schema, f"{path}.{its.name}"), place) for place, its in enumerate(schema.fields)
            )
            return self.add(WriteStep(int(Write.RECORD), null_branch, branch, children=children), path)
        if schema.type in ("array", "map"):
            item = self.step(schema.element(), f"{path}[]")
            kind = Write.ARRAY if schema.type == "array" else Write.MAP
            return self.add(WriteStep(int(kind), null_branch, branch, children=((item, 0),)), path)
        kind, a, b = self._single(schema)
        return self.add(WriteStep(int(kind), null_branch, branch, a=a, b=b), path)

    def _union(self, schema: Schema, path: str) -> int:
        nulls = [number for number, branch in enumerate(schema.branches) if branch.type == "null"]
        null_branch = nulls[0] if nulls else -1
        others = members(schema)
        if not others:
            return self.add(WriteStep(int(Write.NULL), branch=null_branch), path)
        if len(others) == 1:
            return self.step(others[0], path, null_branch, schema.branches.index(others[0]))
        children = tuple(
            (self.step(branch, f"{path}.member{place}", -1, schema.branches.index(branch)), place)
            for place, branch in enumerate(others)
        )
        return self.add(WriteStep(int(Write.MEMBERS), null_branch=null_branch, children=children), path)

    def _single(self, schema: Schema) -> tuple[Write, int, int]:
        if decimal_of(schema) is not None:
            return (Write.DECIMAL_FIXED, schema.size, 0) if schema.type == "fixed" else (Write.DECIMAL, 0, 0)
        if schema.type == "fixed":
            return Write.FIXED, schema.size, 0
        if schema.type == "enum":
            start = len(self._edges)
            for symbol in schema.symbols:
                self._edges += (len(self._constants), len(symbol.encode()))
                self._constants += symbol.encode()
            return Write.ENUM, start, len(schema.symbols)
        if schema.type == "long":
            moment = moment_of(schema)
            times, over = UNITS[moment[1]] if moment is not None else (1, 1)
            return Write.LONG, over, times
        return _PLAIN[schema.type], 0, 0
