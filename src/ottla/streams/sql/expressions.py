"""From the text of an expression to a typed tree, which is evaluated for one record or for columns of many.

sqlglot reads the text, in Spark's dialect. What is not in here is refused with its name. Each node has a function of
Python, which says what it means, and which never fails: what cannot be computed is NULL. The engine evaluates the same
tree on columns of Arrow (`engine/vectors.py`), where it knows an operation that does exactly the same.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ottla.common.errors import OttlaError
from ottla.streams.sql import operations
from ottla.streams.sql.operations import strict
from ottla.streams.sql.row_serde import MOST
from ottla.streams.sql.schema import Kind

if TYPE_CHECKING:
    from sqlglot import exp

# key, value and time of a record
Evaluate = Callable[[Any, Any, int], Any]


@dataclass(frozen=True)
class Expression:
    # None: of a NULL that stands there, which goes with every type.
    kind: Kind | None
    evaluate: Evaluate
    # What columns are made by: of the parts, if it has any.
    operation: str
    parts: tuple[Expression, ...] = ()
    # From the values of the parts of one record to its own. Where it is strict it is called where none of them is NULL.
    function: Callable[..., Any] | None = None
    is_strict: bool = True
    # Of a leaf: the value of a literal, the name of a column.
    leaf: Any = None


class NotUnderstood(OttlaError):
    """An expression that cannot be read, or that has something in it that is not offered."""


def literal(value: Any, kind: Kind | None) -> Expression:
    return Expression(kind, lambda key, row, time_ms: value, "literal", leaf=value)


def made(kind: Kind, operation: str, function: Callable[..., Any], *parts: Expression) -> Expression:
    """NULL if any part is."""
    return Expression(kind, strict(function, *(part.evaluate for part in parts)), operation, parts, function)


class Reader:
    """Of the expressions over one set of columns."""

    def __init__(self, columns: Mapping[str, Expression], text: str) -> None:
        self._columns = columns
        self._text = text

    def wrong(self, why: str) -> NotUnderstood:
        return NotUnderstood(f"the expression {self._text!r}: {why}.")

    def read(self, node: exp.Expression) -> Expression:
        name = type(node).__name__
        method = getattr(self, f"_read_{name.lower()}", None)
        if method is None:
            raise self.wrong(f"{_called(node)} is not offered here (docs/streams.md has what is)")
        # What a node says besides, it says in arguments: none may be passed over.
        known = _ARGUMENTS.get(name, frozenset(["this", "expression"]))
        for argument, given in node.args.items():
            if given and argument not in known:
                raise self.wrong(f"{_called(node)} is not offered here (docs/streams.md has what is)")
        found: Expression = method(node)
        return found

    def _all(self, *nodes: Any) -> list[Expression]:
        return [self.read(node) for node in nodes]

    def _want(self, node: Any, kind: Kind, what: str) -> Expression:
        found = self.read(node)
        if found.kind is None:
            return literal(None, kind)
        if found.kind is not kind:
            raise self.wrong(f"{what} is {kind}, and `{node.sql(dialect='spark')}` is {found.kind}")
        return found

    # --- leaves

    def _read_paren(self, node: Any) -> Expression:
        return self.read(node.this)

    def _read_column(self, node: Any) -> Expression:
        if node.args.get("table") is not None:
            raise self.wrong(f"`{node.sql(dialect='spark')}` has a dot: columns have no parts")
        found = self._columns.get(node.name.lower())
        if found is None:
            raise self.wrong(f"there is no column '{node.name}': there are {', '.join(self._columns) or 'none'}")
        return found

    def _read_literal(self, node: Any) -> Expression:
        if node.is_string:
            return literal(str(node.this), Kind.STRING)
        text = str(node.this)
        if text.isdigit():
            number = int(text)
            if number > MOST:
                raise self.wrong(f"{text} is too large for a BIGINT")
            return literal(number, Kind.BIGINT)
        return literal(float(text), Kind.DOUBLE)

    def _read_boolean(self, node: Any) -> Expression:
        return literal(bool(node.this), Kind.BOOLEAN)

    def _read_null(self, node: Any) -> Expression:
        return literal(None, None)

    # --- numbers

    def _numbers(self, node: Any) -> tuple[Expression, Expression, bool]:
        """Both as BIGINT, or both as DOUBLE."""
        left, right = self._all(node.this, node.expression)
        for side in (left, right):
            if side.kind is not None and not side.kind.is_number:
                raise self.wrong(f"`{node.sql(dialect='spark')}` needs numbers, and one side is {side.kind}")
        is_whole = Kind.DOUBLE not in (left.kind, right.kind)
        kind = Kind.BIGINT if is_whole else Kind.DOUBLE
        return _widened(left, kind), _widened(right, kind), is_whole

    def _arithmetic(self, node: Any, operation: str, exact: Any, inexact: Any) -> Expression:
        left, right, is_whole = self._numbers(node)
        kind, compute = (Kind.BIGINT, exact) if is_whole else (Kind.DOUBLE, inexact)
        return made(kind, operation, compute, left, right)

    def _read_add(self, node: Any) -> Expression:
        return self._arithmetic(node, "add", lambda a, b: operations.whole(a + b), operator.add)

    def _read_sub(self, node: Any) -> Expression:
        return self._arithmetic(node, "subtract", lambda a, b: operations.whole(a - b), operator.sub)

    def _read_mul(self, node: Any) -> Expression:
        return self._arithmetic(node, "multiply", lambda a, b: operations.whole(a * b), operator.mul)

    def _read_mod(self, node: Any) -> Expression:
        return self._arithmetic(node, "modulo", operations.modulo_whole, operations.modulo)

    def _read_div(self, node: Any) -> Expression:
        """Of whole numbers too with a fraction."""
        left, right, _ = self._numbers(node)
        left, right = _widened(left, Kind.DOUBLE), _widened(right, Kind.DOUBLE)
        return made(Kind.DOUBLE, "divide", operations.divide, left, right)

    def _read_intdiv(self, node: Any) -> Expression:
        left, right, is_whole = self._numbers(node)
        if not is_whole:
            raise self.wrong("DIV is for whole numbers: use / for others")
        return made(Kind.BIGINT, "divide", operations.divide_whole, left, right)

    def _read_neg(self, node: Any) -> Expression:
        inner = self._number(node.this)
        if inner.kind is Kind.BIGINT:
            return made(Kind.BIGINT, "negate", lambda a: operations.whole(-a), inner)
        return made(Kind.DOUBLE, "negate", operator.neg, inner)

    def _number(self, node: Any) -> Expression:
        found = self.read(node)
        if found.kind is None:
            return literal(None, Kind.BIGINT)
        if not found.kind.is_number:
            raise self.wrong(f"`{node.sql(dialect='spark')}` is {found.kind}, not a number")
        return found

    def _read_abs(self, node: Any) -> Expression:
        inner = self._number(node.this)
        if inner.kind is Kind.DOUBLE:
            return made(Kind.DOUBLE, "abs", abs, inner)
        return made(Kind.BIGINT, "abs", lambda a: operations.whole(abs(a)), inner)

    def _read_floor(self, node: Any) -> Expression:
        return self._to_whole(node, "floor", operations.floor)

    def _read_ceil(self, node: Any) -> Expression:
        return self._to_whole(node, "ceil", operations.ceil)

    def _to_whole(self, node: Any, function: str, compute: Any) -> Expression:
        if node.args.get("decimals") is not None or node.args.get("to") is not None:
            raise self.wrong(f"{function} has one argument here")
        inner = self._number(node.this)
        return inner if inner.kind is Kind.BIGINT else made(Kind.BIGINT, function, compute, inner)

    def _read_round(self, node: Any) -> Expression:
        inner, decimals = self._number(node.this), node.args.get("decimals")
        digits = 0
        if decimals is not None:
            text = decimals.sql(dialect="spark")
            if not text.isdigit() or int(text) > 15:
                raise self.wrong("round takes a literal number of digits from 0 to 15")
            digits = int(text)
        if inner.kind is Kind.BIGINT:
            return inner
        return made(Kind.DOUBLE, "round", lambda a: operations.round_half_up(a, digits), inner)

    # --- comparisons

    def _sides(self, node: Any) -> tuple[Expression, Expression]:
        left, right = self._all(node.this, node.expression)
        kind = self._common([left, right], node)
        return _widened(left, kind), _widened(right, kind)

    def _common(self, parts: list[Expression], node: Any) -> Kind | None:
        kinds = {part.kind for part in parts if part.kind is not None}
        if kinds == {Kind.BIGINT, Kind.DOUBLE}:
            return Kind.DOUBLE
        if len(kinds) > 1:
            told = " and ".join(sorted(kinds))
            raise self.wrong(f"`{node.sql(dialect='spark')}` mixes {told}: use CAST on one of them")
        return next(iter(kinds), None)

    def _compared(self, node: Any, compute: Any, inexact: Any) -> Expression:
        left, right = self._sides(node)
        return made(Kind.BOOLEAN, node.key, inexact if left.kind is Kind.DOUBLE else compute, left, right)

    def _read_eq(self, node: Any) -> Expression:
        return self._compared(node, operator.eq, operations.same)

    def _read_neq(self, node: Any) -> Expression:
        return self._compared(node, operator.ne, lambda a, b: not operations.same(a, b))

    def _read_gt(self, node: Any) -> Expression:
        return self._compared(node, operator.gt, operations.above)

    def _read_lt(self, node: Any) -> Expression:
        return self._compared(node, operator.lt, lambda a, b: operations.above(b, a))

    def _read_gte(self, node: Any) -> Expression:
        return self._compared(node, operator.ge, lambda a, b: not operations.above(b, a))

    def _read_lte(self, node: Any) -> Expression:
        return self._compared(node, operator.le, lambda a, b: not operations.above(a, b))

    def _read_nullsafeeq(self, node: Any) -> Expression:
        left, right = self._sides(node)
        first, second = left.evaluate, right.evaluate

        def compute(key: Any, value: Any, time_ms: int) -> bool:
            return operations.same_or_null(first(key, value, time_ms), second(key, value, time_ms))

        parts = (left, right)
        return Expression(Kind.BOOLEAN, compute, "same_or_null", parts, operations.same_or_null, is_strict=False)

    def _read_between(self, node: Any) -> Expression:
        from sqlglot import exp

        low = exp.GTE(this=node.this, expression=node.args["low"])
        return self._read_and(exp.And(this=low, expression=exp.LTE(this=node.this, expression=node.args["high"])))

    def _read_in(self, node: Any) -> Expression:
        from sqlglot import exp

        if not node.expressions or node.args.get("query") is not None:
            raise self.wrong("IN takes a list of expressions")
        found = self._read_eq(exp.EQ(this=node.this, expression=node.expressions[0]))
        for each in node.expressions[1:]:
            found = _or(found, self._read_eq(exp.EQ(this=node.this, expression=each)))
        return found

    def _read_is(self, node: Any) -> Expression:
        from sqlglot import exp

        if not isinstance(node.expression, exp.Null):
            raise self.wrong("IS stands before NULL or NOT NULL only")
        inner = self.read(node.this)
        evaluate = inner.evaluate
        compute: Evaluate = lambda key, value, time_ms: evaluate(key, value, time_ms) is None  # noqa: E731
        return Expression(Kind.BOOLEAN, compute, "is_null", (inner,))

    # --- logic with three values

    def _read_and(self, node: Any) -> Expression:
        left, right = (self._want(side, Kind.BOOLEAN, "a side of AND") for side in (node.this, node.expression))
        first, second = left.evaluate, right.evaluate

        def compute(key: Any, value: Any, time_ms: int) -> bool | None:
            one = first(key, value, time_ms)
            if one is False:
                return False
            other = second(key, value, time_ms)
            return False if other is False else None if one is None or other is None else True

        return Expression(Kind.BOOLEAN, compute, "and", (left, right))

    def _read_or(self, node: Any) -> Expression:
        left, right = (self._want(side, Kind.BOOLEAN, "a side of OR") for side in (node.this, node.expression))
        return _or(left, right)

    def _read_not(self, node: Any) -> Expression:
        inner = self._want(node.this, Kind.BOOLEAN, "what NOT turns round")
        return made(Kind.BOOLEAN, "not", operator.not_, inner)

    def _read_case(self, node: Any) -> Expression:
        from sqlglot import exp

        chosen = node.args.get("this")
        conditions = []
        for branch in node.args["ifs"]:
            test = branch.this if chosen is None else exp.EQ(this=chosen, expression=branch.this)
            conditions.append(self._want(test, Kind.BOOLEAN, "a condition of CASE"))
        results = [self.read(branch.args["true"]) for branch in node.args["ifs"]]
        default = node.args.get("default")
        return self._chosen(node, conditions, results, literal(None, None) if default is None else self.read(default))

    def _read_if(self, node: Any) -> Expression:
        condition = self._want(node.this, Kind.BOOLEAN, "the condition of IF")
        otherwise = node.args.get("false")
        default = literal(None, None) if otherwise is None else self.read(otherwise)
        return self._chosen(node, [condition], [self.read(node.args["true"])], default)

    def _chosen(
        self, node: Any, conditions: list[Expression], results: list[Expression], default: Expression
    ) -> Expression:
        kind = self._common([*results, default], node)
        results, default = [_widened(each, kind) for each in results], _widened(default, kind)
        pairs = list(zip(conditions, results, strict=True))
        calls = [(condition.evaluate, result.evaluate) for condition, result in pairs]
        otherwise = default.evaluate

        def compute(key: Any, value: Any, time_ms: int) -> Any:
            for holds, result in calls:
                if holds(key, value, time_ms):
                    return result(key, value, time_ms)
            return otherwise(key, value, time_ms)

        return Expression(kind, compute, "case", (*(part for pair in pairs for part in pair), default))

    def _read_coalesce(self, node: Any) -> Expression:
        parts = self._all(node.this, *node.expressions)
        kind = self._common(parts, node)
        parts = [_widened(part, kind) for part in parts]
        calls = [part.evaluate for part in parts]

        def compute(key: Any, value: Any, time_ms: int) -> Any:
            for call in calls:
                found = call(key, value, time_ms)
                if found is not None:
                    return found
            return None

        return Expression(kind, compute, "coalesce", tuple(parts))

    def _read_nullif(self, node: Any) -> Expression:
        from sqlglot import exp

        left = self.read(node.this)
        same = self._read_eq(exp.EQ(this=node.this, expression=node.expression))
        return self._chosen(node, [same], [literal(None, None)], left)

    # --- text

    def _text_function(self, node: Any, name: str, compute: Any, kind: Kind, *arguments: Any) -> Expression:
        parts = [self._want(each, Kind.STRING, f"an argument of {name}") for each in (node.this, *arguments)]
        return made(kind, name, compute, *parts)

    def _read_upper(self, node: Any) -> Expression:
        return self._text_function(node, "upper", str.upper, Kind.STRING)

    def _read_lower(self, node: Any) -> Expression:
        return self._text_function(node, "lower", str.lower, Kind.STRING)

    def _read_length(self, node: Any) -> Expression:
        return self._text_function(node, "length", len, Kind.BIGINT)

    def _read_trim(self, node: Any) -> Expression:
        if node.args.get("expression") is not None or node.args.get("position"):
            raise self.wrong("trim takes away spaces on both sides, and nothing else here")
        return self._text_function(node, "trim", lambda text: text.strip(" "), Kind.STRING)

    def _read_startswith(self, node: Any) -> Expression:
        return self._text_function(node, "startswith", str.startswith, Kind.BOOLEAN, node.expression)

    def _read_endswith(self, node: Any) -> Expression:
        return self._text_function(node, "endswith", str.endswith, Kind.BOOLEAN, node.expression)

    def _read_contains(self, node: Any) -> Expression:
        return self._text_function(node, "contains", operator.contains, Kind.BOOLEAN, node.expression)

    def _read_dpipe(self, node: Any) -> Expression:
        return self._text_function(node, "concat", operator.add, Kind.STRING, node.expression)

    def _read_concat(self, node: Any) -> Expression:
        parts = [self._want(each, Kind.STRING, "an argument of concat") for each in node.expressions]
        return made(Kind.STRING, "concat", lambda *texts: "".join(texts), *parts)

    def _read_substring(self, node: Any) -> Expression:
        text = self._want(node.this, Kind.STRING, "the first argument of substring")
        start = self._want(node.args["start"], Kind.BIGINT, "the start of substring")
        length = node.args.get("length")
        count = literal(MOST, Kind.BIGINT) if length is None else self._want(length, Kind.BIGINT, "its length")
        return made(Kind.STRING, "substring", operations.substring, text, start, count)

    def _read_like(self, node: Any) -> Expression:
        text = self._want(node.this, Kind.STRING, "the left side of LIKE")
        self.read(node.expression)
        if not getattr(node.expression, "is_string", False):
            raise self.wrong("LIKE takes a literal pattern")
        try:
            matches = operations.like(node.expression.this).fullmatch
        except ValueError as error:
            raise self.wrong(str(error)) from None
        is_negated = bool(node.args.get("negate"))
        compute: Any = lambda found: (matches(found) is None) is is_negated  # noqa: E731
        return made(Kind.BOOLEAN, "like", compute, text)

    # --- casts

    def _read_cast(self, node: Any) -> Expression:
        wanted = {"INT": "BIGINT", "TEXT": "STRING", "VARCHAR": "STRING"}.get(node.to.this.value, node.to.this.value)
        kind = Kind.__members__.get(wanted)
        if kind is None or node.to.this.value == "INT":
            raise self.wrong(f"CAST is to {', '.join(Kind)}, not to {node.to.sql(dialect='spark')}")
        inner = self.read(node.this)
        if inner.kind is None:
            return literal(None, kind)
        if inner.kind is kind:
            return inner
        compute = _CASTS.get((inner.kind, kind))
        if compute is None:
            raise self.wrong(f"CAST from {inner.kind} to {kind} is not offered: it differs between engines")
        return made(kind, "cast", compute, inner)

    _read_trycast = _read_cast


def _or(left: Expression, right: Expression) -> Expression:
    first, second = left.evaluate, right.evaluate

    def compute(key: Any, value: Any, time_ms: int) -> bool | None:
        one = first(key, value, time_ms)
        if one is True:
            return True
        other = second(key, value, time_ms)
        return True if other is True else None if one is None or other is None else False

    return Expression(Kind.BOOLEAN, compute, "or", (left, right))


def _widened(part: Expression, kind: Kind | None) -> Expression:
    if part.kind is kind:
        return part
    if part.kind is None:
        return literal(None, kind) if part.operation == "literal" else replace(part, kind=kind)
    assert part.kind is Kind.BIGINT
    assert kind is Kind.DOUBLE
    return made(kind, "widen", float, part)


_CASTS: dict[tuple[Kind, Kind], Callable[[Any], Any]] = {
    (Kind.STRING, Kind.BIGINT): operations.text_to_whole,
    (Kind.STRING, Kind.DOUBLE): operations.text_to_number,
    (Kind.STRING, Kind.BOOLEAN): operations.text_to_boolean,
    (Kind.BIGINT, Kind.DOUBLE): float,
    (Kind.BIGINT, Kind.STRING): str,
    (Kind.BIGINT, Kind.BOOLEAN): bool,
    (Kind.DOUBLE, Kind.BIGINT): operations.number_to_whole,
    (Kind.BOOLEAN, Kind.BIGINT): int,
    (Kind.BOOLEAN, Kind.STRING): operations.boolean_to_text,
}


_ARGUMENTS: dict[str, frozenset[str]] = {
    "Column": frozenset(["this", "table"]),
    "Literal": frozenset(["this", "is_string"]),
    "Between": frozenset(["this", "low", "high"]),
    "In": frozenset(["this", "expressions"]),
    "Case": frozenset(["this", "ifs", "default"]),
    "If": frozenset(["this", "true", "false"]),
    "Coalesce": frozenset(["this", "expressions"]),
    "Concat": frozenset(["expressions", "safe"]),
    "DPipe": frozenset(["this", "expression", "safe"]),
    "Substring": frozenset(["this", "start", "length"]),
    "Like": frozenset(["this", "expression", "negate"]),
    "Round": frozenset(["this", "decimals"]),
    "Cast": frozenset(["this", "to", "_type"]),
    "TryCast": frozenset(["this", "to", "_type", "requires_string"]),
    "Div": frozenset(["this", "expression", "typed", "safe"]),
}


def _called(node: Any) -> str:
    text = node.sql(dialect="spark")
    return f"`{text if len(text) < 60 else text[:57] + '...'}`"
