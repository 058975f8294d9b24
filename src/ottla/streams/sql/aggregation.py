"""Aggregates of SQL: count, sum, min, max. What an aggregate is of a part of the records and what it is of another part
give what it is of both, so records of a batch may be put together before the state is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ottla.streams.sql import operations
from ottla.streams.sql.expressions import Expression
from ottla.streams.sql.row_serde import RowSerde
from ottla.streams.sql.schema import Kind, Schema


@dataclass(frozen=True)
class Part:
    name: str
    function: str
    kind: Kind
    # None: of count(*).
    argument: Expression | None

    def of_one(self, key: Any, value: Any) -> Any:
        """The aggregate of a single record."""
        if self.argument is None:
            return 1
        found = self.argument.evaluate(key, value, 0)
        return int(found is not None) if self.function == "count" else found

    def joined(self, one: Any, other: Any) -> Any:
        if one is None or other is None:
            return other if one is None else one
        if self.function in ("count", "sum"):
            return one + other
        if self.kind is Kind.DOUBLE:
            return _extreme(self.function, one, other)
        return min(one, other) if self.function == "min" else max(one, other)


def _extreme(function: str, one: float, other: float) -> float:
    is_more = operations.above(one, other)
    return one if is_more is (function == "max") else other


class Aggregated(dict[str, Any]):
    """Aggregates of several records of a key, in the place of a value."""


@dataclass(frozen=True)
class Aggregation:
    parts: tuple[Part, ...]

    def serde(self) -> RowSerde:
        return RowSerde(Schema(tuple((part.name, part.kind) for part in self.parts)))

    def initial(self) -> dict[str, Any]:
        return {part.name: 0 if part.function == "count" else None for part in self.parts}

    def add(self, key: Any, value: Any, before: dict[str, Any]) -> dict[str, Any]:
        """In the form of an aggregator; `value` is that of a record, or what was made of several."""
        if type(value) is Aggregated:
            return {part.name: part.joined(before[part.name], value[part.name]) for part in self.parts}
        return {part.name: part.joined(before[part.name], part.of_one(key, value)) for part in self.parts}
