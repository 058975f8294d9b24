"""Values of a topic, as a registry's clients write them, to columns of one reader's schema.

A decoder is made once for each process and reader. What it has not seen yet, the schema of another writer, it asks the
registry for when the first of its records comes, and keeps. Bad values are null, with a sentence that says why; that
nobody answers at the registry is no fault of a value, and is raised.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Protocol

import pyarrow as pa

from ottla.common.errors import OttlaError
from ottla.common.schemas import InvalidSchema
from ottla.kernel.avro import AvroDecoder, AvroProgram, schema_ids
from ottla.kernel.avro_steps import SENTENCES, Bad, Fault
from ottla.schemas.avro.columns import columns_of
from ottla.schemas.avro.resolving import Unreadable, resolve
from ottla.schemas.registered import AVRO, JSON, PROTOBUF, Registered, parse_avro
from ottla.schemas.registry import SchemaRegistry
from ottla.schemas.writers import Writers


class ColumnDecoder(Protocol):
    type: Any

    def decode(self, values: Any) -> tuple[Any, Any]:
        """A struct for each value, and why it is bad, which is null for good ones and for nulls."""


@lru_cache(maxsize=64)
def decoder_for(registry: SchemaRegistry, reader: Registered) -> ColumnDecoder:
    """Raises OttlaError for a schema that cannot be columns."""
    if reader.type == AVRO:
        return AvroColumns(registry, reader)
    if reader.type == JSON:
        from ottla.schemas.json_columns import JsonColumns

        return JsonColumns(reader)
    if reader.type == PROTOBUF:
        from ottla.schemas.protobuf_columns import ProtobufColumns

        return ProtobufColumns(registry, reader)
    raise OttlaError(f"schemas of type {reader.type} are not known here: AVRO, JSON and PROTOBUF are.")


class AvroColumns:
    def __init__(self, registry: SchemaRegistry, reader: Registered) -> None:
        try:
            self._schema = parse_avro(reader)
        except InvalidSchema as error:
            raise OttlaError(f"the schema {reader.id} of the registry cannot be read: {error}.") from None
        self._columns = columns_of(self._schema)
        self.type = self._columns.type
        self._decoder = AvroDecoder(self._columns.shapes, self.type)
        self._programs: dict[int, AvroProgram] = {}
        # Of each program, the sentences of what it refuses.
        self._refusals: dict[int, list[str]] = {}
        self._writers = Writers(registry, self._programs, self._learn)
        self._writers.learn(reader)

    def decode(self, values: Any) -> tuple[Any, Any]:
        self._writers.meet(schema_ids(values))
        rows, bad = self._decoder.decode(values, self._programs)
        if not bad:
            return rows, pa.nulls(len(rows), pa.string())
        reasons: list[str | None] = [None] * len(rows)
        for each in bad:
            reasons[each.row] = self._reason(each, values[each.row].as_py())
        return rows, pa.array(reasons, pa.string())

    def _reason(self, bad: Bad, value: bytes) -> str:
        if bad.fault == Fault.NOT_FRAMED:
            return SENTENCES[Fault.NOT_FRAMED]
        number = int.from_bytes(value[1:5], "big")
        if bad.fault == Fault.NO_PROGRAM:
            return self._writers.why_not(number)
        if bad.fault == Fault.REFUSED:
            return f"the value, of schema {number}, does not fit the reader's: {self._refusals[number][bad.which]}"
        return f"the value does not fit its schema {number}: {SENTENCES[Fault(bad.fault)]}"

    def _learn(self, writer: Registered) -> str | None:
        try:
            if writer.type != AVRO:
                raise Unreadable(f"it is a schema of type {writer.type}")
            made = resolve(parse_avro(writer), self._schema, self._columns)
        except (Unreadable, InvalidSchema) as error:
            return f"values of schema {writer.id} cannot be read by the reader's schema: {error}"
        self._programs[writer.id] = made.program
        self._refusals[writer.id] = made.refusals
        return None
