"""One connected reader: rows of the snapshot first, then the stream, from an offset on (see `progress`).

It lives as long as it is read in order. After a failure, or if somebody asks for another offset, a new one is made from
the offset; that is all it needs.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from ottla.connect.api.data import Records
from ottla.connect.api.plugins import Offset, Read
from ottla.connect.databases.changes.again import Again
from ottla.connect.databases.changes.covered import Key, Part
from ottla.connect.databases.changes.envelope import Shape, no_records
from ottla.connect.databases.changes.heartbeats import heartbeat
from ottla.connect.databases.changes.progress import Progress
from ottla.connect.databases.changes.settings import TableFilter
from ottla.connect.databases.changes.span import Place


class TableShape(Protocol):
    @property
    def shape(self) -> Shape: ...

    def key(self, row: Any) -> list[Any] | None: ...

    def comparable(self, key: Any) -> Key | None: ...


class RowReader(Protocol):
    """Of a snapshot. `moment` and `until` are what `changes.covered` asks for."""

    @property
    def moment(self) -> str: ...

    @property
    def until(self) -> int: ...

    def close(self) -> None: ...


S = TypeVar("S", bound=TableShape)
R = TypeVar("R", bound=RowReader)


class ChangeSession(ABC, Generic[S, R]):
    _progress: Progress
    # What makes records of some rows that a signal asked for: of those at these places, or of all.
    _again: Again[Callable[[list[int] | None], Records]]

    def __init__(self, settings: Mapping[str, Any], offset: Offset | None) -> None:
        self._settings = settings
        self._wanted = TableFilter(settings)
        # Of the piece that was taken last.
        self.offset = offset
        self._ready: deque[Read] = deque()
        self._reader: R | None = None
        self._shape: S | None = None
        self._low: Key | None = None
        self._heartbeat_at, self._has_just_beaten = time.monotonic(), False
        try:
            self._begin(offset)
        except BaseException:
            self.close()
            raise

    @abstractmethod
    def _begin(self, offset: Offset | None) -> None:
        """Look at the server, and make `_progress`."""

    @abstractmethod
    def _position(self) -> dict[str, Any]:
        """Every transaction that ended before is out, or collected."""

    @abstractmethod
    def _new_reader(self) -> R: ...

    @abstractmethod
    def _shape_of_table(self, table: str) -> S | None:
        """As it is now. None: there is no such table."""

    @abstractmethod
    def _begin_rows(self, reader: R, shape: S, after: Key | None) -> None:
        """Read its rows, in the order of their keys, behind this one."""

    @abstractmethod
    def _next_rows(self, reader: R, shape: S) -> tuple[Records, Sequence[Any] | None] | None:
        """Some rows and the key of the last; None at the end of the table."""

    @abstractmethod
    def _tables(self) -> list[str]:
        """Those that are there and wanted."""

    @abstractmethod
    def _read_again(self, reader: R, shape: S, most: int) -> None:
        """So many rows behind `_again.after`, or all of a table without key, as what waits in `_again`."""

    @abstractmethod
    def _reached(self) -> int:
        """Up to where the stream was read, as `until` of a reader."""

    @abstractmethod
    def _stream_pieces(self) -> list[Read]: ...

    @abstractmethod
    def _disconnect(self) -> None:
        """From the stream, which goes on later from what is read."""

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        self._disconnect()

    def next(self) -> Read | None:
        """The next piece; None if there is none for now."""
        if not self._ready:
            if self._progress.todo:
                self._ready.append(self._snapshot_piece())
            else:
                self._ready.extend(self._stream_pieces())
        if not self._ready:
            return None
        piece = self._ready.popleft()
        self.offset = piece.offset
        return piece

    # --- snapshot

    def _snapshot_piece(self) -> Read:
        progress = self._progress
        if self._reader is None:
            # A server would not wait for as long as a snapshot takes.
            self._disconnect()
            self._reader = self._new_reader()
            progress.covered.parts.append(Part(self._reader.moment, self._reader.until))
            self._shape = None
        reader, part = self._reader, progress.covered.parts[-1]
        while progress.todo:
            table = progress.todo[0]
            if self._shape is None:
                self._shape = self._shape_of_table(table)
                if self._shape is None:
                    progress.next_table()
                    continue
                if not self._shape.shape.key:
                    progress.from_its_beginning(table)
                self._low = progress.after
                self._begin_rows(reader, self._shape, progress.after)
            rows = self._next_rows(reader, self._shape)
            if rows is None:
                part.ranges[table] = (self._low, None)
                progress.next_table()
                self._shape = None
                continue
            progress.after = self._shape.comparable(rows[1])
            part.ranges[table] = (self._low, progress.after)
            return Read(rows[0], progress.offset(self._position()))
        reader.close()
        self._reader = None
        return Read(no_records(), progress.offset(self._position()))

    # --- rows again on request

    def _signal(self, place: Place, kind: Any, data: Any) -> None:
        """A row of the table of signals."""
        if not self._progress.span.is_out("", place) and kind == "execute-snapshot":
            self._again.ask(data, self._tables())

    def _rows_again(self) -> list[Read]:
        """No transaction is under way: what a signal asked for, see `Again`."""
        again = self._again
        if again.chunk is None and again.todo:
            shape = self._shape_of_table(again.todo[0])
            if shape is None:
                again.next_table()
                return []
            reader = self._new_reader()
            try:
                self._read_again(reader, shape, self._settings["snapshot.fetch.size"])
            finally:
                reader.close()
        if again.chunk is None or self._reached() < again.until or not self._progress.may_end:
            return []
        pieces = self._cut()
        make, rows = again.taken()
        records = make(rows) if rows is None or rows else no_records()
        self._progress.begin(self._position())
        return [*pieces, Read(records, self._progress.offset(self._position()))]

    # --- stream

    def _cut(self) -> list[Read]:
        return self._progress.cut(self._position())

    def _idle(self) -> list[Read] | None:
        """Nothing has changed for now: a heartbeat, if one is due and no transaction is under way; None to wait."""
        if self._has_just_beaten:
            # Or a round would never end.
            self._has_just_beaten = False
            return []
        interval = self._settings["heartbeat.interval.ms"]
        if not interval or time.monotonic() - self._heartbeat_at < interval / 1000 or not self._progress.is_between:
            return None
        self._heartbeat_at, self._has_just_beaten = time.monotonic(), True
        beat = heartbeat(self._settings["topic.prefix"], self._settings["topic.heartbeat.prefix"])
        return [Read(beat, self._progress.offset(self._position()))]

    def _collect(self, shape: S, op: str, old: Any, new: Any, source: tuple[Any, ...], *, tells_old: bool) -> None:
        """An update of the key is a delete and an insert, as in Debezium: each key has its own history."""
        made = self._progress.span.changes(shape.shape)
        before = len(made)
        old_key = None if old is None else shape.key(old)
        new_key = None if new is None else shape.key(new)
        if old is not None and (new is None or (old_key is not None and old_key != new_key)):
            if not self._has(shape, old_key):
                made.add("d", old_key, old, None, source)
                if old_key is not None and self._settings["tombstones.on.delete"]:
                    made.add(None, old_key, None, None, source)
            old, op = None, "c"
        if new is not None and not self._has(shape, new_key):
            made.add(op, new_key, old if tells_old else None, new, source)
        if len(made) > before:
            self._progress.span.added()

    def _has(self, shape: S, key: list[Any] | None) -> bool:
        """Whether a snapshot has read the row after this change."""
        covered = self._progress.covered
        return not covered.is_over and covered.has(shape.shape.table, shape.comparable(key))
