"""A place in a JSON Schema, with its references followed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from referencing import Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT7, SchemaRegistry

from ottla.common.schemas import InvalidSchema

# Drafts in which keywords beside a $ref count; before them it stands alone.
_SIBLINGS_COUNT = ("2019-09", "2020-12")
# Words that say nothing about which values are valid.
_ANNOTATIONS = frozenset(
    """$schema $id id $anchor $comment $defs definitions title description default examples deprecated readOnly
    writeOnly $vocabulary $dynamicAnchor""".split()  # noqa: SIM905
)
_CIRCLE_MAX = 100


class Node:
    """`tree` is never a bare reference."""

    def __init__(self, tree: Any, resolver: Any, *, siblings_count: bool) -> None:
        self._siblings_count = siblings_count
        # The same for the same place of a text, whatever is made of it here.
        self.key = 0
        self.tree, self._resolver = self._follow(tree, resolver)

    def _follow(self, tree: Any, resolver: Any) -> tuple[Any, Any]:
        for _ in range(_CIRCLE_MAX):
            self.key = id(tree)
            if not isinstance(tree, dict) or not isinstance(tree.get("$ref"), str):
                return tree, resolver
            beside = {word: value for word, value in tree.items() if word not in _ANNOTATIONS and word != "$ref"}
            if beside and self._siblings_count:
                return {"allOf": [*beside.pop("allOf", ()), {"$ref": tree["$ref"]}], **beside}, resolver
            try:
                found = resolver.lookup(tree["$ref"])
            except (Unresolvable, ValueError):
                raise InvalidSchema(f"Could not resolve reference {tree['$ref']}") from None
            tree, resolver = found.contents, found.resolver
        raise InvalidSchema("a $ref goes in a circle")

    def child(self, tree: Any) -> Node:
        return Node(tree, self._resolver, siblings_count=self._siblings_count)

    # --- what it allows

    @property
    def is_false(self) -> bool:
        return self.tree is False or self.words == {"not": {}}

    @property
    def is_empty(self) -> bool:
        """Everything is valid."""
        return self.tree is True or (isinstance(self.tree, dict) and not self.words)

    @property
    def words(self) -> dict[str, Any]:
        """The keywords that decide what is valid."""
        if not isinstance(self.tree, dict):
            return {}
        return {word: value for word, value in self.tree.items() if word not in _ANNOTATIONS}

    @property
    def has_default(self) -> bool:
        return isinstance(self.tree, dict) and "default" in self.tree

    def get(self, word: str) -> Any:
        return self.tree.get(word) if isinstance(self.tree, dict) else None

    def nodes(self, word: str) -> list[Node]:
        """The schemas of a list, as of `anyOf`."""
        listed = self.get(word)
        return [self.child(one) for one in listed] if isinstance(listed, list) else []

    def table(self, word: str) -> dict[str, Node]:
        """The schemas of an object, as of `properties`."""
        its = self.get(word)
        return {name: self.child(one) for name, one in its.items()} if isinstance(its, dict) else {}

    def node(self, word: str) -> Node | None:
        its = self.get(word)
        return self.child(its) if isinstance(its, dict | bool) else None

    def without(self, *words: str) -> Node:
        if not isinstance(self.tree, dict):
            return self
        return self.child({word: value for word, value in self.tree.items() if word not in words})

    def types(self) -> frozenset[str] | None:
        """None: any."""
        given = self.get("type")
        if given is None:
            values = self.values()
            return None if values is None else frozenset(_type_of(value) for value in values)
        return frozenset([given] if isinstance(given, str) else given)

    def values(self) -> list[Any] | None:
        """Of `enum`, or the one of `const`."""
        if isinstance(self.tree, dict) and "const" in self.tree:
            return [self.tree["const"]]
        listed = self.get("enum")
        return listed if isinstance(listed, list) else None


def root(tree: Any, others: dict[str, Any]) -> Node:
    """`others`: the schemas that references name, by those names."""
    resources = [(name, _resource(other)) for name, other in others.items()]
    registry: SchemaRegistry = SchemaRegistry().with_resources(resources)
    resource = _resource(tree)
    base = resource.id() or ""
    resolver = registry.with_resource(base, resource).resolver(base)
    dialect = tree.get("$schema", "") if isinstance(tree, dict) else ""
    return Node(tree, resolver, siblings_count=any(draft in str(dialect) for draft in _SIBLINGS_COUNT))


def _resource(tree: Any) -> Resource[Any]:
    return Resource.from_contents(tree, default_specification=DRAFT7)


def references(tree: Any, depth: int = 0) -> Iterator[str]:
    """Every $ref of it."""
    if isinstance(tree, dict):
        if isinstance(tree.get("$ref"), str):
            yield tree["$ref"]
        for word, value in tree.items():
            if word not in ("enum", "const", "default", "examples"):
                yield from references(value, depth + 1)
    elif isinstance(tree, list):
        for value in tree:
            yield from references(value, depth + 1)


def _type_of(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    names = {int: "integer", float: "number", str: "string", list: "array", dict: "object", type(None): "null"}
    return names[type(value)]
