"""Avro as one of the registry's formats."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.avro import compatibility, text
from ottla.avro.parse import Parser, read_json
from ottla.avro.schema import Schema
from ottla.common.schemas import Difference, Sides
from ottla.registry.parsed import Parsed, Resolved


class AvroSchema(Parsed):
    def __init__(self, schema: Schema, referred: frozenset[str]) -> None:
        self.schema = schema
        self._referred = referred

    def canonical(self) -> str:
        return text.canonical(self.schema, self._referred)

    def normalised(self) -> str:
        return text.normalised(self.schema, self._referred)

    def reads(self, writer: Parsed, sides: Sides) -> list[Difference]:
        assert isinstance(writer, AvroSchema)
        return compatibility.differences(self.schema, writer.schema, sides)


def parse_avro(schema: str, references: Sequence[Resolved], *, is_new: bool) -> AvroSchema:
    known: dict[str, Schema] = {}
    _define(references, known)
    parsed = Parser(known, checks_defaults=is_new).parse(read_json(schema))
    return AvroSchema(parsed, frozenset(known))


def _define(references: Sequence[Resolved], known: dict[str, Schema]) -> None:
    for reference in references:
        if reference.name in known:
            continue
        _define(reference.references, known)
        parser = Parser(known, checks_defaults=False)
        parser.parse(read_json(reference.text))
        known |= parser.defined
