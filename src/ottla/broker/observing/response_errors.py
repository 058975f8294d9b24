"""The error codes of an answer, wherever in it they are.

Where a message has them is found out once, from its definition. Of a long answer only the first elements are looked at:
what is wrong with one of a thousand partitions is mostly wrong with the first of them as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from ottla.protocol import codec
from ottla.protocol.codec import Message

_ELEMENTS_MAX = 64


class _Places(NamedTuple):
    has_code: bool
    # Fields with elements that have some.
    inside: tuple[tuple[str, _Places], ...]


def errors_in(name: str, response: Message) -> Iterator[int]:
    """`name` is that of the message."""
    places = _places_of(name)
    return _codes(response, places) if places is not None else iter(())


def _codes(message: Any, places: _Places) -> Iterator[int]:
    if places.has_code and message.error_code:
        yield message.error_code
    for field, inner in places.inside:
        found = getattr(message, field)
        if isinstance(found, (list, tuple)):
            for element in found[:_ELEMENTS_MAX]:
                yield from _codes(element, inner)
        elif found is not None:
            yield from _codes(found, inner)


@cache
def _places_of(name: str) -> _Places | None:
    return _places(codec.definition(name)["fields"])


def _places(fields: Sequence[dict[str, Any]]) -> _Places | None:
    has_code = any(field["name"] == "error_code" for field in fields)
    inside = []
    for field in fields:
        inner = _places(field["fields"]) if field.get("fields") else None
        if inner is not None:
            inside.append((field["name"], inner))
    return _Places(has_code, tuple(inside)) if has_code or inside else None
