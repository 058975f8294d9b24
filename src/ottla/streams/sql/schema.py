"""Columns of records and their types. There are four types, those that JSON and Spark have in common."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from ottla.common.errors import OttlaError


class Kind(StrEnum):
    BOOLEAN = "BOOLEAN"
    BIGINT = "BIGINT"
    DOUBLE = "DOUBLE"
    STRING = "STRING"

    @property
    def is_number(self) -> bool:
        return self in (Kind.BIGINT, Kind.DOUBLE)


_FIELD = re.compile(r"\s*(?:`([^`]+)`|([A-Za-z_]\w*))\s+([A-Za-z]+)\s*", re.ASCII)


@dataclass(frozen=True)
class Schema:
    fields: tuple[tuple[str, Kind], ...]

    def __post_init__(self) -> None:
        if not self.fields:
            raise OttlaError("a row has at least one column.")
        seen: set[str] = set()
        for name, _ in self.fields:
            if name.lower() in seen:
                raise OttlaError(f"there are two columns '{name}': names differ by more than capitals.")
            if "`" in name or "\0" in name:
                raise OttlaError(f"'{name}' cannot be the name of a column.")
            seen.add(name.lower())

    def __iter__(self) -> Iterator[tuple[str, Kind]]:
        return iter(self.fields)

    def __str__(self) -> str:
        plain = re.compile(r"[A-Za-z_]\w*", re.ASCII)
        return ", ".join(f"{name if plain.fullmatch(name) else f'`{name}`'} {kind}" for name, kind in self.fields)


def parse_schema(text: str) -> Schema:
    """`"id STRING, amount DOUBLE"`."""
    fields = []
    for part in text.split(","):
        found = _FIELD.fullmatch(part)
        kind = found and Kind.__members__.get(found[3].upper())
        if not found or kind is None:
            known = ", ".join(Kind)
            raise OttlaError(f"'{part.strip()}' is no column: it needs a name and one of the types {known}.")
        fields.append((found[1] or found[2], kind))
    return Schema(tuple(fields))
