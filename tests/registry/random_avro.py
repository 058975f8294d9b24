"""Random Avro schemas, and changes of them that people make: what the rules are compared with Java's on."""

from __future__ import annotations

import copy
import random
from typing import Any

_PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_NAMES = ("Order", "Customer", "Line", "Place", "Colour", "Hash")
_FIELDS = ("a", "b", "c", "d", "e")
_SYMBOLS = ("RED", "GREEN", "BLUE", "BLACK")
_DEFAULTS: dict[str, Any] = {
    "null": None, "boolean": True, "int": 7, "long": 8, "float": 1.5, "double": 2.5, "bytes": "ÿ", "string": "x",
}  # fmt: skip


class SchemaMaker:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._defined: list[str] = []

    def schema(self) -> Any:
        self._defined = []
        return self._any(0)

    def pair(self) -> tuple[Any, Any]:
        """Two that are related more often than not: strangers hardly ever fit."""
        reader = self.schema()
        if self.random.random() < 0.15:
            return reader, self.schema()
        writer = copy.deepcopy(reader)
        for _ in range(self.random.randint(1, 3)):
            writer = self._changed(writer)
        return (reader, writer) if self.random.random() < 0.5 else (writer, reader)

    def _any(self, depth: int, in_union: bool = False) -> Any:
        kinds = ["primitive", "primitive", "named"]
        if depth < 3:
            kinds += ["record", "record", "array", "map", "enum", "fixed"] + ([] if in_union else ["union", "union"])
        kind = self.random.choice(kinds)
        if kind == "named" and self._defined:
            return self.random.choice(self._defined)
        if kind in ("primitive", "named"):
            word = self.random.choice(_PRIMITIVES)
            return word if self.random.random() < 0.8 else {"type": word, "logicalType": "odd", "z": {"k": [1]}}
        if kind in ("array", "map"):
            return {"type": kind, "items" if kind == "array" else "values": self._any(depth + 1)}
        if kind == "union":
            return self._union(depth)
        return self._definition(kind, depth)

    def _union(self, depth: int) -> list[Any]:
        branches: dict[str, Any] = {}
        for _ in range(self.random.randint(0, 3)):
            branch = self._any(depth + 1, in_union=True)
            name = branch if isinstance(branch, str) else branch.get("name", branch["type"])
            branches.setdefault(name.rpartition(".")[2], branch)
        return list(branches.values())

    def _definition(self, kind: str, depth: int) -> Any:
        free = [name for name in _NAMES if name not in self._defined]
        if not free:
            return "int"
        name = self.random.choice(free)
        self._defined.append(name)
        tree: dict[str, Any] = {"type": kind, "name": name}
        if self.random.random() < 0.2:
            tree["doc"] = "what it is"
        if self.random.random() < 0.2:
            tree["aliases"] = [self.random.choice(_NAMES)]
        if kind == "enum":
            tree["symbols"] = self.random.sample(_SYMBOLS, self.random.randint(1, 4))
            if self.random.random() < 0.3:
                tree["default"] = tree["symbols"][0]
        elif kind == "fixed":
            tree["size"] = self.random.choice((4, 16))
        else:
            names = self.random.sample(_FIELDS, self.random.randint(0, 4))
            tree["fields"] = [self._field(one, depth) for one in names]
        return tree

    def _field(self, name: str, depth: int) -> dict[str, Any]:
        its: dict[str, Any] = {"name": name, "type": self._any(depth + 1)}
        kind = its["type"][0] if isinstance(its["type"], list) and its["type"] else its["type"]
        if isinstance(kind, str) and kind in _DEFAULTS and self.random.random() < 0.5:
            its["default"] = _DEFAULTS[kind]
        if self.random.random() < 0.1:
            its["aliases"] = [self.random.choice(_FIELDS)]
        if self.random.random() < 0.1:
            its["order"] = "ignore"
        return its

    # --- changes

    def _changed(self, tree: Any) -> Any:
        """One place of the tree, changed."""
        places = list(_places(tree))
        records = [place for place in places if isinstance(place, dict) and place.get("fields")]
        enums = [place for place in places if isinstance(place, dict) and place.get("type") == "enum"]
        unions = [place for place in places if isinstance(place, list)]
        choice = self.random.random()
        if choice < 0.45 and records:
            self._change_record(self.random.choice(records))
        elif choice < 0.6 and enums:
            its = self.random.choice(enums)
            its["symbols"] = self.random.sample(_SYMBOLS, self.random.randint(1, 4))
            its.pop("default", None)
        elif choice < 0.75 and unions:
            self._change_union(self.random.choice(unions))
        elif choice < 0.9 and isinstance(tree, str):
            return self.random.choice(_PRIMITIVES)
        else:
            return [tree, "null"] if not isinstance(tree, list) and tree != "null" else tree
        return tree

    def _change_record(self, record: dict[str, Any]) -> None:
        fields = record["fields"]
        choice = self.random.random()
        its = self.random.choice(fields)
        if choice < 0.3:
            free = [name for name in _FIELDS if name not in {one["name"] for one in fields}]
            if free:
                fields.append({"name": free[0], "type": "int"} | ({"default": 1} if choice < 0.15 else {}))
        elif choice < 0.45:
            if not any(isinstance(place, dict) and "name" in place for place in _places(its["type"])):
                fields.remove(its)
        elif choice < 0.8 and isinstance(its["type"], str) and its["type"] in _PRIMITIVES:
            its["type"] = self.random.choice(_PRIMITIVES)
            its.pop("default", None)
        elif choice < 0.9:
            its["aliases"] = [self.random.choice(_FIELDS)]
        else:
            its["name"] = self.random.choice([n for n in _FIELDS if n not in {f["name"] for f in fields}] or ["zz"])

    def _change_union(self, union: list[Any]) -> None:
        plain = [branch for branch in union if isinstance(branch, str) and branch in _PRIMITIVES]
        if plain and self.random.random() < 0.5:
            union.remove(self.random.choice(plain))
        else:
            free = [word for word in _PRIMITIVES if word not in [b if isinstance(b, str) else b["type"] for b in union]]
            union += self.random.sample(free, min(1, len(free)))


def _places(tree: Any) -> Any:
    yield tree
    if isinstance(tree, list):
        for branch in tree:
            yield from _places(branch)
    elif isinstance(tree, dict):
        for word in ("items", "values"):
            if word in tree:
                yield from _places(tree[word])
        for its in tree.get("fields", ()):
            yield from _places(its["type"])
