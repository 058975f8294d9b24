"""SQL expressions as operators, record by record: for the test driver, and below whatever is done on columns."""

from __future__ import annotations

from typing import Any

from ottla.streams.processing.operator import Operator
from ottla.streams.record import Headers
from ottla.streams.sql.expressions import Evaluate


class SqlFilter(Operator):
    def __init__(self, condition: Evaluate, *, wanted: bool) -> None:
        self._condition = condition
        self._wanted = wanted

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        if (self._condition(key, value, timestamp) is True) is self._wanted:
            self.forward(key, value, timestamp, headers)


class SqlRow(Operator):
    """A record without a value stays one."""

    def __init__(self, row: Evaluate) -> None:
        self._row = row

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        self.forward(key, None if value is None else self._row(key, value, timestamp), timestamp, headers)


class SqlKey(Operator):
    def __init__(self, selector: Evaluate) -> None:
        self._selector = selector

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        self.forward(self._selector(key, value, timestamp), value, timestamp, headers)
