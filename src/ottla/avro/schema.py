"""An Avro schema as objects, as close to Java's `org.apache.avro.Schema` as its text forms and its rules need."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"


# A default may be null, so that there is none has a value of its own.
ABSENT: Any = _Absent()


@dataclass(frozen=True)
class Name:
    space: str | None
    simple: str

    @property
    def full(self) -> str:
        return f"{self.space}.{self.simple}" if self.space else self.simple

    def within(self, space: str | None) -> str:
        """As it is written where `space` is the enclosing namespace."""
        return self.simple if self.space is None or self.space == space else self.full


@dataclass(eq=False)
class Schema:
    """Compared by identity: schemas may contain themselves."""

    type: str
    # Everything that Avro gives no meaning to, in the order in which it was written.
    properties: dict[str, Any] = field(default_factory=dict)
    name: Name | None = None
    doc: str | None = None
    aliases: tuple[Name, ...] = ()
    fields: list[Field] = field(default_factory=list)
    symbols: list[str] = field(default_factory=list)
    enum_default: str | None = None
    size: int = 0
    items: Schema | None = None  # of an array, and the values of a map
    branches: list[Schema] = field(default_factory=list)

    @property
    def is_record(self) -> bool:
        return self.type in ("record", "error")

    @property
    def full_name(self) -> str:
        """Of a named type; of any other what it is, as Java's `getFullName`."""
        return self.name.full if self.name is not None else self.type

    def element(self) -> Schema:
        assert self.items is not None
        return self.items


@dataclass(eq=False)
class Field:
    name: str
    schema: Schema
    doc: str | None = None
    default: Any = ABSENT
    order: str = "ascending"
    aliases: tuple[str, ...] = ()
    properties: dict[str, Any] = field(default_factory=dict)

    @property
    def has_default(self) -> bool:
        return self.default is not ABSENT
