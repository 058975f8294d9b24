"""JSON Schema as one of the registry's formats. `validity.py` says whether a text is one."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from ottla.avro.text import dump, sorted_keys
from ottla.common.schemas import Difference, InvalidSchema, Sides, no_constant
from ottla.registry.json_schema import compatibility
from ottla.registry.json_schema.node import Node, references, root
from ottla.registry.json_schema.validity import require_valid
from ottla.registry.parsed import Parsed, Resolved

DEPTH_MAX = 200


class JsonSchema(Parsed):
    def __init__(self, tree: Any, node: Node) -> None:
        self._tree = tree
        self.node = node

    def canonical(self) -> str:
        return dump(self._tree)

    def normalised(self) -> str:
        return dump(sorted_keys(self._tree))

    def reads(self, writer: Parsed, sides: Sides) -> list[Difference]:
        assert isinstance(writer, JsonSchema)
        return compatibility.differences(self.node, writer.node, sides)


def parse_json_schema(schema: str, referred: Sequence[Resolved], *, is_new: bool) -> JsonSchema:
    tree = _read(schema)
    if not isinstance(tree, dict | bool):
        raise InvalidSchema("a JSON Schema is an object or a boolean")
    require_valid(tree)
    others: dict[str, Any] = {}
    _collect(referred, others)
    node = root(tree, others)
    for reference in references(tree):
        node.child({"$ref": reference})  # raises for one that leads nowhere
    return JsonSchema(tree, node)


def _collect(referred: Sequence[Resolved], others: dict[str, Any]) -> None:
    for reference in referred:
        if reference.name not in others:
            others[reference.name] = _read(reference.text)
            _collect(reference.references, others)


def _read(text: str) -> Any:
    try:
        tree = json.loads(text, parse_constant=no_constant, parse_float=_finite)
    except RecursionError:
        raise InvalidSchema("the schema is nested too deeply to be read") from None
    except ValueError as error:
        raise InvalidSchema(f"the schema is no JSON: {error}") from None
    if _depth(tree) > DEPTH_MAX:
        raise InvalidSchema(f"the schema is nested deeper than {DEPTH_MAX} levels")
    return tree


def _finite(text: str) -> float:
    """What it becomes if it is no number any more could not be read again."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:50]} is too large a number")
    return number


def _depth(tree: Any) -> int:
    """Without recursion, since it guards against too much of it."""
    deepest, level = 0, [tree]
    while level and deepest <= DEPTH_MAX:
        deepest += 1
        below: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                below += each.values()
            elif isinstance(each, list):
                below += each
        level = below
    return deepest
