"""How far a session is: which rows and changes are out, and the offsets that say so. Pure.

| field of an offset | |
|---|---|
| tx, changes | everything up to this change of this transaction (its place in the log) is out |
| span | see `changes.span` |
| tables | those that are followed: others are new and get a snapshot |
| snapshot | tables that are still to be read, and the last key that is out of the first of them |
| parts | see `changes.covered` |

Beside these stands the database's own position, from which the log is read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ottla.connect.api.plugins import Offset, Read
from ottla.connect.databases.changes.covered import Covered, Key, Part
from ottla.connect.databases.changes.span import Span


class Progress:
    def __init__(
        self,
        offset: Offset | None,
        tables: Iterable[str],
        wants: Callable[[str], bool],
        has_snapshot: bool,
        seen: Callable[[str, Any], bool],
    ) -> None:
        """`tables`: those that are there and wanted. One that is not wanted now is forgotten: its changes are passed
        over from here on, so it has to be read anew if it is ever wanted again."""
        offset = offset or {}
        self.span = Span(offset)
        self.covered = Covered([Part.from_json(part) for part in offset.get("parts", ())], seen)
        known = [table for table in offset.get("tables", ()) if wants(table)]
        snapshot = offset.get("snapshot", {})
        begun = list(snapshot.get("todo", ()))
        self.todo: list[str] = [table for table in begun if wants(table)]
        self.after: Key | None = None
        if self.todo and self.todo[0] == begun[0] and snapshot["after"] is not None:
            self.after = tuple(snapshot["after"])
        if has_snapshot:
            self.todo += [table for table in tables if table not in known]
        self.tables = sorted({*known, *tables})
        # The last change that was looked at.
        self.place = self.span.out
        # The rest of an offset before the first change that was collected.
        self._before: dict[str, Any] = {}

    def knows(self, table: str) -> None:
        if table not in self.tables:
            self.tables = sorted({*self.tables, table})

    # --- snapshot

    def next_table(self) -> None:
        self.todo.pop(0)
        self.after = None

    def from_its_beginning(self, table: str) -> None:
        """A table without a key cannot be read on in the middle."""
        self.after = None
        for part in self.covered.parts:
            part.ranges.pop(table, None)

    # --- stream. `position` is the database's own.

    def begin(self, position: Mapping[str, Any]) -> None:
        """A transaction begins."""
        if len(self.span) == 0:
            self._before = self._rest(position)

    def passed(self, transaction: int) -> None:
        """The transaction is over, and so is a span that was to end in it: its last changes may have been those of a
        table that is not wanted any more."""
        self.place = max(self.place, self.span.end_in(transaction))

    @property
    def is_between(self) -> bool:
        """Nothing waits to be published."""
        return len(self.span) == 0 and self.may_end

    @property
    def may_end(self) -> bool:
        return self.span.may_end(max(self.place, self.span.out))

    def is_full(self, most: int) -> bool:
        return len(self.span) >= most or self.span.must_end(self.place)

    def cut(self, position: Mapping[str, Any]) -> list[Read]:
        if not self.may_end:
            return []
        after = self._rest(position)
        pieces = self.span.cut(max(self.place, self.span.out), self._before, after)
        self._before = after
        return pieces

    # --- offsets

    def offset(self, position: Mapping[str, Any]) -> dict[str, Any]:
        """Behind everything that is out, for what is no change."""
        tx, changes = self.span.out
        return {**self._rest(position), "tx": tx, "changes": changes, **self.span.unfinished()}

    def _rest(self, position: Mapping[str, Any]) -> dict[str, Any]:
        rest: dict[str, Any] = {**position, "tables": self.tables}
        if self.todo:
            rest["snapshot"] = {"todo": list(self.todo), "after": self.after and list(self.after)}
        if self.covered.parts:
            rest["parts"] = [part.to_json() for part in self.covered.parts]
        return rest
