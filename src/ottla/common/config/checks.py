"""What a value must satisfy beyond its type; each check can say in words what it expects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Check:
    """`expected` completes the sentence "expected ..."."""

    expected: str
    accepts: Callable[[Any], bool]


ANYTHING = Check("", lambda value: True)


def at_least(low: int) -> Check:
    return Check(f"at least {low}", lambda value: bool(value >= low))


def between(low: float, high: float) -> Check:
    return Check(f"between {low} and {high}", lambda value: bool(low <= value <= high))


def between_or(low: int, high: int, also: int) -> Check:
    return Check(f"between {low} and {high}, or {also}", lambda value: value == also or low <= value <= high)


def one_of(*allowed: str) -> Check:
    return Check("one of " + ", ".join(allowed), lambda value: value in allowed)


def one_of_any_case(*allowed: str) -> Check:
    return Check("one of " + ", ".join(allowed), lambda value: value.lower() in allowed)


def each_of(*allowed: str) -> Check:
    return Check("each one of " + ", ".join(allowed), lambda values: all(value in allowed for value in values))


def some_of(*allowed: str) -> Check:
    return Check("at least one of " + ", ".join(allowed), lambda values: bool(values) and set(values) <= set(allowed))


NOT_EMPTY = Check("at least one", bool)
