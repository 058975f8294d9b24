"""Rows that are read again because a signal asks for it, while the stream goes on. Pure.

Changes of these tables are out already, so none of the stream may be left out. Instead, some rows are read, and the
stream is read on past the moment at which that was done; rows that it changes on the way are taken out of those that
were read, and the rest has then the state of this place in the stream. (The idea is DBLog's, without writing marks into
the tables: a place in the log is mark enough.) Rows that wait are kept in memory only: after a crash they are read
again.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from ottla.common.linear_regex import BadPattern, compile_pattern
from ottla.connect.databases.changes.covered import Key

log = logging.getLogger(__name__)

C = TypeVar("C")


@dataclass
class Again(Generic[C]):
    todo: list[str] = field(default_factory=list)
    after: Key | None = None
    # The rows that wait, in the form that a session has for them, until the stream is there.
    chunk: C | None = None
    until: int = 0
    # Where each key is in the chunk.
    _keys: dict[Key, int] | None = None
    _is_last: bool = False
    _last: Key | None = None

    @staticmethod
    def from_json(value: Mapping[str, Any] | None) -> Again[C]:
        if value is None:
            return Again()
        return Again(list(value["todo"]), None if value["after"] is None else tuple(value["after"]))

    def to_json(self) -> dict[str, Any]:
        """What is to be added to an offset."""
        return {"asked": {"todo": list(self.todo), "after": self.after and list(self.after)}} if self.todo else {}

    def ask(self, data: str | bytes | None, tables: Iterable[str]) -> None:
        """A signal execute-snapshot has come, with this as its data. One that cannot be understood is passed over: it
        would be read again and again otherwise."""
        try:
            named = json.loads(data or "{}")["data-collections"]
            patterns = [compile_pattern(each) for each in named]
        except (ValueError, TypeError, KeyError, AttributeError, BadPattern) as error:
            log.warning(
                "A signal execute-snapshot was passed over (%s: %s): its data must be as "
                '{"data-collections": ["schema.table"]}, with names or regular expressions of tables.',
                type(error).__name__,
                error,
            )
            return
        for table in tables:
            if table in self.todo:
                continue
            if table in named or any(pattern.fullmatch(table.encode()) for pattern in patterns):
                self.todo.append(table)

    def next_table(self) -> None:
        self.todo.pop(0)
        self.after = None

    def waits(self, chunk: C, keys: Sequence[Key] | None, is_last: bool, until: int) -> None:
        """`keys`: those of the rows, in order; None if the table has no key, and is there as a whole."""
        self.chunk, self.until, self._is_last = chunk, until, is_last
        self._keys = None if keys is None else {key: row for row, key in enumerate(keys)}
        self._last = keys[-1] if keys else None

    def changed(self, table: str, keys: Iterable[Key | None]) -> None:
        if self._keys is not None and self.todo[0] == table:
            for key in keys:
                if key is not None:
                    self._keys.pop(key, None)

    def taken(self) -> tuple[C, list[int] | None]:
        """The rows that the stream did not change, by their places in the chunk; None for all. What comes next follows
        them."""
        assert self.chunk is not None
        chunk, rows = self.chunk, None if self._keys is None else list(self._keys.values())
        self.after = self._last
        if self._is_last:
            self.next_table()
        self.chunk, self._keys, self._last = None, None, None
        return chunk, rows
