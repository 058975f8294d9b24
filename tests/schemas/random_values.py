"""Random values of an Avro schema, as the bytes that a writer writes, and as what a reader of columns should show."""

from __future__ import annotations

import math
import random
import struct
from typing import Any

from ottla.avro.schema import Schema
from ottla.schemas.avro.columns import members

_TEXTS = ("", "x", "Ada", "größer", "日本", "a" * 130)


def zigzag(value: int) -> bytes:
    raw = (value << 1) ^ (value >> 63)
    found = bytearray()
    while raw > 0x7F:
        found.append(raw & 0x7F | 0x80)
        raw >>= 7
    return bytes([*found, raw])


class ValueMaker:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def data(self, schema: Schema, depth: int = 0) -> bytes:
        """Avro's binary form. Raises RecursionError where a schema has no end."""
        if depth > 30:
            raise RecursionError
        kind = schema.type
        if kind == "null":
            return b""
        if kind == "boolean":
            return self.random.choice((b"\x00", b"\x01"))
        if kind in ("int", "long"):
            bits = 31 if kind == "int" else 63
            return zigzag(self.random.choice((0, -1, 7, 2**bits - 1, -(2**bits), self.random.getrandbits(bits))))
        if kind in ("float", "double"):
            value = self.random.choice((0.0, -1.5, 1e10, math.inf, self.random.random()))
            return struct.pack("<f" if kind == "float" else "<d", value)
        if kind in ("string", "bytes"):
            text = self.random.choice(_TEXTS).encode()
            return zigzag(len(text)) + text
        if kind == "fixed":
            return self.random.randbytes(schema.size)
        if kind == "enum":
            return zigzag(self.random.randrange(len(schema.symbols)))
        if kind in ("array", "map"):
            return self._items(schema, depth)
        if kind == "union":
            if not schema.branches:
                raise RecursionError
            chosen = self.random.randrange(len(schema.branches)) if depth < 8 else 0
            return zigzag(chosen) + self.data(schema.branches[chosen], depth + 1)
        return b"".join(self.data(its.schema, depth + 1) for its in schema.fields)

    def _items(self, schema: Schema, depth: int) -> bytes:
        found = b""
        for _ in range(self.random.randrange(3) if depth < 6 else 0):
            count = self.random.randrange(1, 4)
            items = b""
            for _ in range(count):
                if schema.type == "map":
                    key = f"k{self.random.randrange(10**6)}".encode()
                    items += zigzag(len(key)) + key
                items += self.data(schema.element(), depth + 1)
            found += zigzag(-count) + zigzag(len(items)) if self.random.random() < 0.5 else zigzag(count)
            found += items
        return found + b"\x00"


def same(schema: Schema, ours: Any, theirs: Any) -> bool:
    """Whether a value of a column is what another reader of the schema has: branches of unions are not named there."""
    if schema.type == "union":
        others = members(schema)
        if theirs is None or not others:
            return ours is None
        if len(others) == 1:
            return same(others[0], ours, theirs)
        chosen = [(branch, part) for branch, part in zip(others, ours.values(), strict=True) if part is not None]
        if len(chosen) == 1 and isinstance(theirs, float) and chosen[0][0].type in ("int", "long"):
            # fastavro takes the first branch that a number can be promoted to; Java, and we, that of its own type.
            return bool(_as_float(chosen[0][1]) == _as_float(theirs))
        return len(chosen) == 1 and same(*chosen[0], theirs)
    if ours is None or theirs is None:
        return ours is theirs
    if schema.is_record:
        if theirs.keys() != {its.name for its in schema.fields}:
            return True  # fastavro took a branch for its alias where another one has the name itself
        return all(same(its.schema, ours[its.name], theirs[its.name]) for its in schema.fields)
    if schema.type == "array":
        return len(ours) == len(theirs) and all(
            same(schema.element(), mine, other) for mine, other in zip(ours, theirs, strict=True)
        )
    if schema.type == "map":
        mine = dict(ours)
        return mine.keys() == theirs.keys() and all(same(schema.element(), mine[name], theirs[name]) for name in theirs)
    if schema.type == "float":
        return bool(ours == _as_float(theirs))
    if schema.type in ("string", "bytes") and type(ours) is not type(theirs):
        # fastavro leaves a default of bytes as the text that it is in JSON.
        return _bytes(ours) == _bytes(theirs) or (isinstance(theirs, str) and ours == theirs.encode("latin-1"))
    return bool(ours == theirs)


def _as_float(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)
