"""Columns as values of a JSON Schema that is there already, each of them checked by it.

The kernel writes all rows of which it is plain that they fit: those whose columns have the types that the schema asks
for, with what is required, and texts that are among the listed. What else a schema may ask (`pattern`, `maximum`,
`allOf`, ...) jsonschema is asked about, for the rows in which a column is not null that has such a rule; and it says
what is wrong with rows that do not fit.

Columns that are null are left out of their object; items of lists and values of maps are null there. Times are ISO
8601, bytes base64, decimals numbers. NaN and the infinities are no JSON, and refused.
"""

from __future__ import annotations

import base64
import datetime
import decimal
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ottla.common.errors import OttlaError
from ottla.kernel.avro_steps import WRITE_SENTENCES, Fault, Unwritable
from ottla.kernel.json_encode import JsonEncoder
from ottla.schemas.framing import HEAD
from ottla.schemas.json_program import JsonProgram
from ottla.schemas.registered import Registered
from ottla.schemas.rows import encode_by

Tree = Callable[[Any], Any]


class JsonRows:
    # Rows are taken as they are.
    type = None

    def __init__(self, schema: Registered, *, is_plain: bool) -> None:
        """`is_plain`: values are no objects; what is written is the one part of a struct."""
        self._head = HEAD.pack(0, schema.id)
        self._schema = schema
        self._is_plain = is_plain
        self._encode = encode_by(schema)
        # Of the rows that came last: all those of a query are alike.
        self._kind: Any = None
        self._tree: Tree = _same
        self._encoder: JsonEncoder | None = None

    def encode(self, rows: Any) -> Any:
        """Raises OttlaError for a row that does not fit."""
        if self._is_plain:
            rows = pc.struct_field(rows, [0])
        if rows.null_count == len(rows):
            return pa.nulls(len(rows), pa.binary())
        if self._encoder is None or rows.type != self._kind:
            self._kind, self._tree = rows.type, tree_of(rows.type)
            self._encoder = JsonProgram(self._schema).encoder(rows.type)
        try:
            values, left = self._encoder.encode(rows, self._head)
        except Unwritable as error:
            raise OttlaError(f"rows cannot be written with their schema: a row {_why(error)}.") from None
        if not left:
            return values
        found = rows.take(pa.array(left, pa.int64())).to_pylist()
        others = pa.array([self._encode(self._tree(row)) for row in found], pa.binary())
        places = list(range(len(rows)))
        for place, row in enumerate(left):
            places[row] = len(rows) + place
        return pa.concat_arrays([values, others]).take(pa.array(places, pa.int64()))


def _why(error: Unwritable) -> str:
    return WRITE_SENTENCES[Fault(error.fault)]


def tree_of(kind: Any) -> Tree:
    """How what Python has for values of this type becomes what is written as JSON."""
    types = pa.types
    if types.is_struct(kind):
        parts = {kind.field(place).name: tree_of(kind.field(place).type) for place in range(kind.num_fields)}
        return lambda row: {name: parts[name](part) for name, part in row.items() if part is not None}
    if types.is_map(kind):
        item = _or_null(tree_of(kind.item_type))
        return lambda pairs: {str(name): item(value) for name, value in pairs}
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        each = _or_null(tree_of(kind.value_type))
        return lambda items: [each(value) for value in items]
    return _single


def _same(value: Any) -> Any:
    return value


def _or_null(tree: Tree) -> Tree:
    return lambda value: None if value is None else tree(value)


def _single(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime.datetime | datetime.date):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value
