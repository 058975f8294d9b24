"""Values that are plainly good, seen without Spark: a job of Spark's takes longer than a thousand of these.

Which values fit a schema is Spark's to say (`decoding.py`). What is said here is only yes, and only where there is no
doubt: one JSON object, whose members have exactly the types of the columns. Everything else is asked of Spark.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ottla.spark.pipeline.tables.joined_on import text_of
from ottla.spark.registered import RegisteredColumns

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

# Spark's parser has limits for the depth of a value and the length of a number and of a text; here is far below them.
_BYTES_MAX = 1024 * 1024
_DEPTH_MAX = 200
_LONG_NUMBER = re.compile(rb"[0-9.]{200}")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class Doubtful(Exception):
    """Ask Spark."""


class PlainJson:
    def __init__(self, schema: StructType, by: Sequence[str]) -> None:
        self._columns = [(field.name, _Kind(field.dataType), field.nullable) for field in schema.fields]
        self._by = by
        # Values of a registry are no JSON.
        self._is_json = not isinstance(schema, RegisteredColumns)
        self._decode = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_refuse).decode

    def joined_on(self, value: bytes) -> str | None:
        """What the row is joined on; None where a part of it is null. Raises Doubtful."""
        if not self._is_json:
            raise Doubtful
        if len(value) > _BYTES_MAX or value.count(b"[") + value.count(b"{") > _DEPTH_MAX or _LONG_NUMBER.search(value):
            raise Doubtful
        try:
            row = self._decode(value.decode())
        except (ValueError, RecursionError):
            raise Doubtful from None
        if type(row) is not dict:
            raise Doubtful
        for name, kind, is_nullable in self._columns:
            member = row.get(name)
            if not (is_nullable if member is None else kind.has(member)):
                raise Doubtful
        return text_of([row.get(name) for name in self._by])


class _Kind:
    """Of members: what Python makes of them if they have exactly this type."""

    def __init__(self, kind: DataType) -> None:
        from pyspark.sql import types

        self._items = _Kind(kind.elementType) if type(kind) is types.ArrayType and kind.containsNull else None
        self._members: list[tuple[str, _Kind]] | None = None
        if type(kind) is types.StructType and all(field.nullable for field in kind.fields):
            self._members = [(field.name, _Kind(field.dataType)) for field in kind.fields]
        sizes: dict[type[DataType], int] = {
            types.ByteType: 8, types.ShortType: 16, types.IntegerType: 32, types.LongType: 64
        }  # fmt: skip
        bits = sizes.get(type(kind))
        self._is_text = kind == types.StringType()
        self._is_boolean = type(kind) is types.BooleanType
        self._is_real = type(kind) in (types.FloatType, types.DoubleType)
        self._end = 0 if bits is None else 2 ** (bits - 1)

    def has(self, member: Any) -> bool:
        found = type(member)
        if found is str:
            return self._is_text and (member.isascii() or _LONE_SURROGATE.search(member) is None)
        if found is int:
            return -self._end <= member < self._end or (self._is_real and abs(member) < 2**53)
        if found is bool:
            return self._is_boolean
        if found is list:
            items = self._items
            return items is not None and all(item is None or items.has(item) for item in member)
        if found is dict:
            return self._members is not None and all(
                member.get(name) is None or kind.has(member[name]) for name, kind in self._members
            )
        return found is float and self._is_real and math.isfinite(member) and abs(member) < 1e38


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Which one of two members of the same name counts is not for us to say."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError
    return found


def _refuse(name: str) -> Any:
    """NaN and the like, which Python takes."""
    raise ValueError(name)
