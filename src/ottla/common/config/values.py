"""Kafka's value types: from text to a Python value and back to the text that DescribeConfigs shows.

The grammar is Java's (`Integer.parseInt`, `Double.parseDouble`): what Python's `int()` would accept on top of it, such
as `1_000`, is refused here so that one file means the same to both brokers.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Any

_INTEGER = re.compile(r"[+-]?[0-9]+")
_DOUBLE = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?")


class Kind(Enum):
    """The type names and wire ids of DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


_BOOLEANS = {"true": True, "false": False}
_BITS = {Kind.SHORT: 16, Kind.INT: 32, Kind.LONG: 64}
EXPECTED = {
    Kind.BOOLEAN: "true or false",
    Kind.SHORT: "a whole number of 16 bits",
    Kind.INT: "a whole number of 32 bits",
    Kind.LONG: "a whole number of 64 bits",
    Kind.DOUBLE: "a number",
    Kind.LIST: "items separated by commas",
}


def parse(kind: Kind, text: str) -> Any:
    """The typed value of `text`; ValueError if it is not one of `kind`."""
    text = text.strip()
    if kind is Kind.BOOLEAN:
        return _BOOLEANS[text.lower()] if text.lower() in _BOOLEANS else _refuse(text)
    if kind in _BITS:
        return _parse_integer(text, _BITS[kind])
    if kind is Kind.DOUBLE:
        return float(text.rstrip("dDfF")) if _DOUBLE.fullmatch(text) else _refuse(text)
    if kind is Kind.LIST:
        return _parse_list(text) if text else ()
    return text


def _parse_list(text: str) -> tuple[str, ...]:
    """As Kafka since KIP-1161: no empty items, and what is there twice counts once."""
    items = tuple(dict.fromkeys(item.strip() for item in text.split(",")))
    return _refuse(text) if "" in items else items


def _parse_integer(text: str, bits: int) -> int:
    if not _INTEGER.fullmatch(text):
        _refuse(text)
    value = int(text)
    return value if -(1 << bits - 1) <= value < 1 << bits - 1 else _refuse(text)


def _refuse(text: str) -> Any:
    raise ValueError(text)


def to_text(kind: Kind, value: Any) -> str | None:
    """The text Kafka shows for a value."""
    if value is None:
        return None
    if kind is Kind.BOOLEAN:
        return "true" if value else "false"
    if kind is Kind.LIST:
        return ",".join(value)
    if kind is Kind.DOUBLE:
        return _double_text(value)
    return str(value)


def _double_text(value: float) -> str:
    """As Java's `Double.toString`: plain digits from 1e-3 up to 1e7, else one digit, a point, the rest, an exponent."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(float(value))
    from decimal import Decimal  # rare, and not free to import

    sign, digits, exponent = Decimal(repr(float(value))).normalize().as_tuple()
    first, rest = str(digits[0]), "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{first}.{rest}E{len(digits) - 1 + int(exponent)}"
