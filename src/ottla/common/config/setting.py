"""One configuration property: name, type, default, what it accepts, who may change it, and a sentence about it.

A `Setting` is declared as a class attribute of a `Configuration` and is read as an attribute of its instance:

    class NetworkSettings(Configuration):
        socket_request_max_bytes = integer("socket.request.max.bytes", 104857600, "...", check=at_least(1))

    config.socket_request_max_bytes        # an int, for mypy too

The attribute is the property's name with underscores for dots. The instance keeps the parsed values in its `__dict__`,
which Python looks at before a descriptor without `__set__`, so that a read on the hot path costs a plain attribute
access.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar, Unpack, overload

from ottla.common.config.checks import ANYTHING, Check
from ottla.common.config.values import EXPECTED, Kind, parse, to_text
from ottla.common.errors import OttlaError

if TYPE_CHECKING:
    from ottla.common.config.configuration import Configuration

T_co = TypeVar("T_co", covariant=True)
IntOrNone = TypeVar("IntOrNone", int, None)
TextOrNone = TypeVar("TextOrNone", str, None)
NamesOrNone = TypeVar("NamesOrNone", tuple[str, ...], None)


class Scope(Enum):
    """Where a broker property may be changed while the broker runs; the values are Kafka's words."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class Unit(Enum):
    MS = "ms"
    SECONDS = "s"
    MINUTES = "min"
    HOURS = "h"
    BYTES = "bytes"
    COUNT = "count"
    NONE = ""


@dataclass(frozen=True, slots=True)
class Synonym:
    """A broker property that supplies a value when the more specific one is not set; `factor` converts its unit."""

    name: str
    factor: int = 1


class InvalidValue(OttlaError):
    """A value that is of the wrong type or out of range; the message names property, value and what is expected."""


# Two settings are never equal, so that a hash costs nothing.
@dataclass(frozen=True, eq=False)
class Setting(Generic[T_co]):
    name: str
    kind: Kind
    default: T_co
    doc: str
    check: Check = ANYTHING
    unit: Unit = Unit.NONE
    scope: Scope = Scope.READ_ONLY
    # In order: the first that is set supplies the value.
    synonyms: tuple[Synonym, ...] = ()
    internal: bool = False
    acted_on: bool = True
    attribute: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "attribute", self.name.replace(".", "_"))

    def __set_name__(self, owner: type, attribute: str) -> None:
        if attribute != self.attribute:
            raise TypeError(f"{owner.__name__}.{attribute} must be called {self.attribute}")

    @overload
    def __get__(self, instance: None, owner: type) -> Setting[T_co]: ...
    @overload
    def __get__(self, instance: Configuration, owner: type) -> T_co: ...
    def __get__(self, instance: Configuration | None, owner: type) -> Setting[T_co] | T_co:
        if instance is None:
            return self
        raise AttributeError(f"{self.name} has no value yet")

    @property
    def is_sensitive(self) -> bool:
        return self.kind is Kind.PASSWORD

    @property
    def default_text(self) -> str | None:
        return to_text(self.kind, self.default)

    @property
    def expected(self) -> str:
        """In words, what the property accepts; empty if any text will do."""
        return ", ".join(part for part in (EXPECTED.get(self.kind, ""), self.check.expected) if part)

    def parse(self, text: str) -> T_co:
        """The typed value; `InvalidValue` says what was expected."""
        try:
            value: T_co = parse(self.kind, text)
        except ValueError:
            value_is_good = False
        else:
            value_is_good = self.check.accepts(value)
        if not value_is_good:
            shown = "(hidden)" if self.is_sensitive else repr(text)
            raise InvalidValue(f"Invalid value {shown} for {self.name}: expected {self.expected}.")
        return value

    def text(self, value: Any) -> str | None:
        return to_text(self.kind, value)


class Details(TypedDict, total=False):
    check: Check
    unit: Unit
    scope: Scope
    synonyms: tuple[Synonym, ...]
    internal: bool


def boolean(name: str, default: bool, doc: str, **details: Unpack[Details]) -> Setting[bool]:
    return Setting(name, Kind.BOOLEAN, default, doc, **details)


def integer(name: str, default: IntOrNone, doc: str, **details: Unpack[Details]) -> Setting[int | IntOrNone]:
    return Setting(name, Kind.INT, default, doc, **details)


def short(name: str, default: int, doc: str, **details: Unpack[Details]) -> Setting[int]:
    return Setting(name, Kind.SHORT, default, doc, **details)


def long(name: str, default: IntOrNone, doc: str, **details: Unpack[Details]) -> Setting[int | IntOrNone]:
    return Setting(name, Kind.LONG, default, doc, **details)


def double(name: str, default: float, doc: str, **details: Unpack[Details]) -> Setting[float]:
    return Setting(name, Kind.DOUBLE, default, doc, **details)


def string(name: str, default: TextOrNone, doc: str, **details: Unpack[Details]) -> Setting[str | TextOrNone]:
    return Setting(name, Kind.STRING, default, doc, **details)


def password(name: str, default: TextOrNone, doc: str, **details: Unpack[Details]) -> Setting[str | TextOrNone]:
    """Text that is never shown."""
    return Setting(name, Kind.PASSWORD, default, doc, **details)


def names(
    name: str, default: NamesOrNone, doc: str, **details: Unpack[Details]
) -> Setting[tuple[str, ...] | NamesOrNone]:
    return Setting(name, Kind.LIST, default, doc, **details)
