"""A schema as text: the form that Java's `Schema.toString` writes, which a registry stores, and the normalised one."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

from ottla.avro.schema import Field, Schema


def canonical(schema: Schema, known: Iterable[str] = ()) -> str:
    """`known`: full names of types that are defined elsewhere."""
    return dump(_Writer(set(known)).tree(schema, None))


def normalised(schema: Schema, known: Iterable[str] = ()) -> str:
    """The same for all texts that mean the same: full names, and properties in alphabetical order."""
    return dump(_Writer(set(known), normalises=True).tree(schema, None))


def dump(tree: Any) -> str:
    return json.dumps(_finite(tree), separators=(",", ":"), ensure_ascii=False)


def _finite(tree: Any) -> Any:
    """Java writes what is no number as text."""
    if isinstance(tree, float) and not math.isfinite(tree):
        return "NaN" if math.isnan(tree) else "Infinity" if tree > 0 else "-Infinity"
    if isinstance(tree, dict):
        return {name: _finite(value) for name, value in tree.items()}
    if isinstance(tree, list):
        return [_finite(value) for value in tree]
    return tree


class _Writer:
    def __init__(self, known: set[str], *, normalises: bool = False) -> None:
        self._written = known
        self._normalises = normalises

    def tree(self, schema: Schema, space: str | None) -> Any:
        if schema.name is not None:
            return self._named(schema, space)
        if schema.type == "union":
            return [self.tree(branch, space) for branch in schema.branches]
        if schema.type in ("array", "map"):
            word = "items" if schema.type == "array" else "values"
            return {"type": schema.type, word: self.tree(schema.element(), space), **self._more(schema.properties)}
        if schema.properties:
            return {"type": schema.type, **self._more(schema.properties)}
        return schema.type

    def _named(self, schema: Schema, space: str | None) -> Any:
        name = schema.name
        assert name is not None
        if name.full in self._written:
            return name.full if self._normalises else name.within(space)
        self._written.add(name.full)
        tree: dict[str, Any] = {"type": schema.type}
        if self._normalises:
            tree["name"] = name.full
        else:
            tree["name"] = name.simple
            if name.space != space:
                tree["namespace"] = name.space or ""
        if schema.doc is not None:
            tree["doc"] = schema.doc
        if schema.is_record:
            tree["fields"] = [self._field(its, name.space) for its in schema.fields]
        elif schema.type == "enum":
            tree["symbols"] = schema.symbols
            if schema.enum_default is not None:
                tree["default"] = schema.enum_default
        else:
            tree["size"] = schema.size
        tree |= self._more(schema.properties)
        if schema.aliases:
            tree["aliases"] = [alias.within(name.space) for alias in schema.aliases]
        return tree

    def _field(self, its: Field, space: str | None) -> dict[str, Any]:
        tree: dict[str, Any] = {"name": its.name, "type": self.tree(its.schema, space)}
        if its.doc is not None:
            tree["doc"] = its.doc
        if its.has_default:
            tree["default"] = its.default
        if its.order != "ascending":
            tree["order"] = its.order
        if its.aliases:
            tree["aliases"] = list(its.aliases)
        return tree | self._more(its.properties)

    def _more(self, properties: dict[str, Any]) -> dict[str, Any]:
        if not self._normalises:
            return properties
        return {name: sorted_keys(properties[name]) for name in sorted(properties)}


def sorted_keys(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {name: sorted_keys(tree[name]) for name in sorted(tree)}
    if isinstance(tree, list):
        return [sorted_keys(value) for value in tree]
    return tree
