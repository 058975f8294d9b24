"""Changes that are published together, and the offsets that go with them.

A change has a position: the place in the log where its transaction was committed, and its number in that transaction.
An offset says up to which position everything is out, and where the log must be read from to go on (a transaction is
read again from its beginning, and what is out already is passed over). So a transaction may be larger than what is
published at once.

Changes of several tables are collected side by side, and each table becomes Records of its own, in a piece of its own.
If the reader stops between two such pieces, the offset names the tables whose changes up to the end of the span are
out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ottla.connect.api.plugins import Read
from ottla.connect.databases.changes.envelope import Changes, Shape

Place = tuple[int, int]  # transaction, number of the change in it


class Span:
    def __init__(self, offset: Mapping[str, Any]) -> None:
        self.out: Place = (offset.get("tx", 0), offset.get("changes", 0))
        span = offset.get("span", {})
        self._to: Place = (span.get("tx", 0), span.get("changes", 0))
        self._done: set[str] = set(span.get("done", ()))
        self._collected: dict[str, Changes] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def is_out(self, table: str, place: Place) -> bool:
        return place <= self.out or (place <= self._to and table in self._done)

    def changes(self, shape: Shape) -> Changes:
        """Where to add changes of this table. Look at `fits` first."""
        found = self._collected.get(shape.table)
        if found is None:
            found = self._collected[shape.table] = Changes(shape)
        return found

    def fits(self, shape: Shape) -> bool:
        """False: the table looked different so far; the span has to end first."""
        found = self._collected.get(shape.table)
        return found is None or found.shape is shape

    def added(self) -> None:
        self._count += 1

    def may_end(self, place: Place) -> bool:
        """A span of which some tables are out already ends where it ended before."""
        return place >= self._to

    def end_in(self, transaction: int) -> Place:
        """Where it ends, if that is in this transaction."""
        return self._to if self._to[0] == transaction else (0, 0)

    def must_end(self, place: Place) -> bool:
        return self._to > self.out and place >= self._to

    def unfinished(self) -> dict[str, Any]:
        """What an offset of something else (rows of a snapshot) has to say, so that tables that are out stay out."""
        if self._to <= self.out:
            return {}
        return {"span": {"tx": self._to[0], "changes": self._to[1], "done": sorted(self._done)}}

    def cut(self, place: Place, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Read]:
        """Ends the span at this place; no pieces if nothing was collected. `before` and `after`: the rest of the
        offsets, from where to read for what the span has, and from where for what comes behind it."""
        pieces = []
        waiting = [changes for changes in self._collected.values() if len(changes)]
        done = sorted(self._done)
        for number, changes in enumerate(waiting):
            done.append(changes.shape.table)
            if number + 1 < len(waiting):
                span = {"tx": place[0], "changes": place[1], "done": list(done)}
                offset = {**before, "tx": self.out[0], "changes": self.out[1], "span": span}
                pieces.append(Read(changes.to_records(), offset))
        if waiting:
            pieces.append(Read(waiting[-1].to_records(), {**after, "tx": place[0], "changes": place[1]}))
        self.out = place
        self._collected, self._count = {}, 0
        self._to, self._done = (0, 0), set()
        return pieces
