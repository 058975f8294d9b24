"""SQL expressions in the places of functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.streams.operators.sql import SqlFilter, SqlKey, SqlRow
from ottla.streams.processing.operator import Operator
from ottla.streams.serdes import Serde
from ottla.streams.sql.statement import Sql
from ottla.streams.sql.steps import NativeStep, NewKey, NewRow, Where

Made = tuple[Callable[[], Operator], NativeStep]


def sql_filter(statement: Sql, key: Serde, value: Serde, *, wanted: bool) -> Made:
    condition = statement.condition(key, value)
    told = statement.text if wanted else f"NOT ({statement.text})"
    evaluate = condition.evaluate
    return lambda: SqlFilter(evaluate, wanted=wanted), NativeStep(Where(condition, wanted), key, value, told)


def sql_row(statement: Sql, key: Serde, value: Serde) -> Made:
    selection = statement.selection(key, value)
    step = NativeStep(NewRow(selection.columns), key, selection.serde(), statement.text)
    return lambda: SqlRow(selection.row), step


def sql_key(statement: Sql, key: Serde, value: Serde) -> Made:
    expression, serde = statement.key(key, value)
    evaluate = expression.evaluate
    return lambda: SqlKey(evaluate), NativeStep(NewKey(expression), serde, value, statement.text)


def predicate_of(given: Callable[[Any, Any], bool] | Sql, key: Serde, value: Serde) -> Callable[[Any, Any], bool]:
    """For operators that know no time."""
    if not isinstance(given, Sql):
        return given
    evaluate = given.condition(key, value).evaluate
    return lambda each_key, each_value: evaluate(each_key, each_value, 0) is True
