"""Values of `serdes.row` to columns of Arrow and back, as the serde reads and writes them.

The kernel reads and writes all rows of which it is plain what they say; the serde the others, one by one, and it has
the last word.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ottla.kernel.avro_steps import ColumnShape
from ottla.kernel.avro_steps import Kind as Memory
from ottla.kernel.json_encode import JsonEncoder
from ottla.kernel.json_steps import JsonNode, JsonStep, JsonWrite, JsonWriteStep
from ottla.kernel.json_values import JsonDecoder
from ottla.streams.engine.vectors import TYPES
from ottla.streams.sql.row_serde import RowSerde
from ottla.streams.sql.schema import Kind, Schema

_READ = {
    Kind.BOOLEAN: (JsonStep.BOOLEAN, Memory.BOOLEAN),
    Kind.BIGINT: (JsonStep.INTEGER, Memory.INT64),
    Kind.DOUBLE: (JsonStep.NUMBER, Memory.DOUBLE),
    Kind.STRING: (JsonStep.STRING, Memory.BYTES),
}
_WRITTEN = {
    Kind.BOOLEAN: JsonWrite.BOOLEAN,
    Kind.BIGINT: JsonWrite.INT64,
    Kind.DOUBLE: JsonWrite.DOUBLE,
    Kind.STRING: JsonWrite.STRING,
}


class NotHeld(Exception):
    """A value can be read, and Arrow cannot hold it: half a character."""


def struct_of(schema: Iterable[tuple[str, Kind]]) -> Any:
    return pa.struct([(name, TYPES[kind]) for name, kind in schema])


class RowColumns:
    def __init__(self, serde: RowSerde) -> None:
        self._serde = serde
        self._type = struct_of(serde.schema)
        self._decoder = _decoder(serde.schema, self._type)
        self._encoder = _encoder(serde.schema)

    def decode(self, values: Any) -> tuple[Any, list[int]]:
        """A struct for each value, null for those that are null; and which ones cannot be read. Raises NotHeld."""
        rows, left = self._decoder.decode(values)
        if not left:
            return rows, []
        found, places, wrong = [], list(range(len(rows))), []
        for place, data in zip(left, values.take(pa.array(left, pa.int64())).to_pylist(), strict=True):
            try:
                found.append(self._serde.deserialize("", data))
            except MemoryError:
                raise
            except Exception:  # the operators of the source will say what is wrong
                wrong.append(place)
                continue
            places[place] = len(rows) + len(found) - 1
        if found:
            try:
                others = pa.array(found, self._type)
            except UnicodeEncodeError:
                raise NotHeld from None
            rows = pa.concat_arrays([rows, others]).take(pa.array(places, pa.int64()))
        return rows, wrong

    def encode(self, rows: Any) -> Any:
        """Of structs of the schema."""
        values, left = self._encoder.encode(rows, b"")
        if not left:
            return values
        others = [self._serde.serialize("", row) for row in rows.take(pa.array(left, pa.int64())).to_pylist()]
        mask = [False] * len(values)
        for place in left:
            mask[place] = True
        return pc.replace_with_mask(values, pa.array(mask), pa.array(others, pa.binary()))


def _decoder(schema: Schema, kind: Any) -> JsonDecoder:
    count = len(schema.fields)
    shapes = [ColumnShape(int(Memory.STRUCT), tuple(range(1, count + 1)))]
    steps, edges, constants = [], [], bytearray()
    for place, (name, each) in enumerate(schema):
        step, memory = _READ[each]
        data = name.encode()
        shapes.append(ColumnShape(int(memory)))
        steps.append(JsonNode(int(step), place + 1))
        edges += [len(constants), len(data), place, 0]
        constants += data
    steps.append(JsonNode(int(JsonStep.STRUCT), 0, 0, count))
    return JsonDecoder(shapes, kind, steps, edges, bytes(constants), False)


def _encoder(schema: Schema) -> JsonEncoder:
    steps, edges, constants = [], [], bytearray()
    for _, kind in schema:
        steps.append(JsonWriteStep(int(_WRITTEN[kind])))
    for name, _ in schema:
        data = json.dumps(name, ensure_ascii=False).encode() + b":"
        edges += [len(constants), len(data), 0]
        constants += data
    steps.append(JsonWriteStep(int(JsonWrite.STRUCT), b=1, children=tuple(range(len(schema.fields)))))
    return JsonEncoder(steps, edges, bytes(constants))
