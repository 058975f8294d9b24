"""Expressions of SQL on columns of Arrow: the same values that they have record by record, for many records at once.

What an operation means is said by its function of Python (`sql/expressions.py`). Here are those for which Arrow has the
same; where it has not, or cannot be sure for these values (an overflow, NaN in a comparison), the function is called
for one record after the other. So this may be slower than it could be, and never different.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ottla.streams.sql.expressions import Expression
from ottla.streams.sql.schema import Kind

TYPES = {Kind.BOOLEAN: pa.bool_(), Kind.BIGINT: pa.int64(), Kind.DOUBLE: pa.float64(), Kind.STRING: pa.string()}
# Of a NULL that stands there.
_UNTYPED = pa.string()


@dataclass(frozen=True)
class Columns:
    """Of records, in their order."""

    # By the names in the schema.
    row: Mapping[str, Any]
    # None where keys have no type: no expression asks for them.
    key: Any
    times_ms: Any

    def __len__(self) -> int:
        return len(self.times_ms)


class Unsure(Exception):
    """Arrow would, or might, say something else."""


def column_of(expression: Expression, columns: Columns) -> Any:
    """Its values, as many as there are records."""
    found = _evaluated(expression, columns)
    return pa.repeat(found, len(columns)) if isinstance(found, pa.Scalar) else found


def _evaluated(expression: Expression, columns: Columns) -> Any:
    """A column, or one value for all records."""
    kind = _UNTYPED if expression.kind is None else TYPES[expression.kind]
    if expression.operation in _LEAVES:
        return _LEAVES[expression.operation](expression, columns, kind)
    given = [_evaluated(part, columns) for part in expression.parts]
    operation = _OPERATIONS.get(expression.operation)
    found = None
    if operation is not None:
        try:
            found = operation(*given)
        except (Unsure, pa.ArrowInvalid, pa.ArrowNotImplementedError):
            if expression.function is None:
                raise
    if found is None:
        found = _one_by_one(expression, given, len(columns), kind)
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    return found if found.type == kind else found.cast(kind)


def _one_by_one(expression: Expression, given: list[Any], count: int, kind: Any) -> Any:
    assert expression.function is not None
    function, is_strict = expression.function, expression.is_strict
    lists = [[each.as_py()] * count if isinstance(each, pa.Scalar) else each.to_pylist() for each in given]
    if not is_strict:
        return pa.array([function(*values) for values in zip(*lists, strict=True)], kind)
    if len(lists) == 1:
        return pa.array([None if value is None else function(value) for value in lists[0]], kind)
    return pa.array([None if None in values else function(*values) for values in zip(*lists, strict=True)], kind)


_LEAVES: dict[str, Callable[[Expression, Columns, Any], Any]] = {
    "literal": lambda expression, columns, kind: pa.scalar(expression.leaf, kind),
    "column": lambda expression, columns, kind: columns.row[expression.leaf],
    "key": lambda expression, columns, kind: columns.key,
    "time": lambda expression, columns, kind: columns.times_ms,
}


# --- operations; each raises Unsure, or ArrowInvalid, where the function has to be asked


def _is_double(value: Any) -> bool:
    return bool(pa.types.is_floating(value.type))


def _arithmetic(name: str) -> Callable[..., Any]:
    """Whole numbers that overflow are found."""
    checked, plain = getattr(pc, f"{name}_checked"), getattr(pc, name)
    return lambda *given: (plain if _is_double(given[0]) else checked)(*given)


def _without_zero(value: Any) -> Any:
    return pc.if_else(pc.equal(value, pa.scalar(0, value.type)), pa.scalar(None, value.type), value)


def _divide(left: Any, right: Any) -> Any:
    return (pc.divide if _is_double(left) else pc.divide_checked)(left, _without_zero(right))


def _modulo(left: Any, right: Any) -> Any:
    if _is_double(left):
        raise Unsure
    return pc.subtract(left, pc.multiply(_divide(left, right), right))


def _compared(compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """NaN has a place of its own in SQL."""

    def compare(left: Any, right: Any) -> Any:
        if any(_is_double(side) and pc.any(pc.is_nan(side)).as_py() for side in (left, right)):
            raise Unsure
        return compute(left, right)

    return compare


def _same_or_null(left: Any, right: Any) -> Any:
    same = pc.fill_null(_compared(pc.equal)(left, right), False)
    return pc.or_(same, pc.and_(pc.is_null(left), pc.is_null(right)))


def _case(*given: Any) -> Any:
    *pairs, found = given
    for place in range(len(pairs) - 2, -1, -2):
        found = pc.if_else(pc.fill_null(pairs[place], False), pairs[place + 1], found)
    return found


def _by_pattern(compute: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    def find(text: Any, pattern: Any) -> Any:
        if not isinstance(pattern, pa.Scalar) or not pattern.as_py() or isinstance(text, pa.Scalar):
            raise Unsure
        return compute(text, pattern=pattern.as_py())

    return find


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": _arithmetic("add"),
    "subtract": _arithmetic("subtract"),
    "multiply": _arithmetic("multiply"),
    "negate": _arithmetic("negate"),
    "abs": _arithmetic("abs"),
    "divide": _divide,
    "modulo": _modulo,
    "eq": _compared(pc.equal),
    "neq": _compared(pc.not_equal),
    "gt": _compared(pc.greater),
    "gte": _compared(pc.greater_equal),
    "lt": _compared(pc.less),
    "lte": _compared(pc.less_equal),
    "same_or_null": _same_or_null,
    "is_null": pc.is_null,
    "and": pc.and_kleene,
    "or": pc.or_kleene,
    "not": pc.invert,
    "case": _case,
    "coalesce": pc.coalesce,
    "concat": lambda *parts: reduce(lambda one, other: pc.binary_join_element_wise(one, other, ""), parts),
    "length": pc.utf8_length,
    "startswith": _by_pattern(pc.starts_with),
    "endswith": _by_pattern(pc.ends_with),
    "contains": _by_pattern(pc.match_substring),
    "widen": lambda value: pc.cast(value, pa.float64(), safe=False),
}
