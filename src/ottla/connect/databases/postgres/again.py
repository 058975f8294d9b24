"""Rows that are read again because a signal asks for it, while the stream goes on.

Changes of these tables are out already, so none of the stream may be left out. Instead, some rows are read, and the
stream is read on past the moment at which that was done; rows that it changes on the way are taken out of those that
were read, and the rest has then the state of this place in the stream. (The idea is DBLog's, without writing marks into
the database: the end of the WAL is mark enough.) Rows that wait are kept in memory only: after a crash they are read
again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from ottla.connect.databases.changes.covered import Key
from ottla.connect.databases.postgres.shapes import PostgresShape
from ottla.connect.databases.postgres.snapshot import SnapshotReader


@dataclass
class Again:
    todo: list[str] = field(default_factory=list)
    after: Key | None = None
    # The rows that wait, as columns of text, and where each key is in them.
    chunk: list[Any] | None = None
    keys: dict[Key, int] = field(default_factory=dict)
    until: int = 0
    ts_ms: int = 0
    _shape: PostgresShape | None = None
    _is_last: bool = False
    _last: Key | None = None

    @staticmethod
    def from_json(value: Mapping[str, Any] | None) -> Again:
        if value is None:
            return Again()
        return Again(list(value["todo"]), None if value["after"] is None else tuple(value["after"]))

    def to_json(self) -> dict[str, Any]:
        return {"todo": list(self.todo), "after": self.after and list(self.after)}

    def next_table(self) -> None:
        self.todo.pop(0)
        self.after = None

    def read(self, reader: SnapshotReader, shape: PostgresShape, most: int) -> None:
        self._shape, self.until, self.ts_ms = shape, reader.until, reader.ts_ms
        reader.begin(shape, self.after, most, most if shape.shape.key else None)
        parts = []
        while (columns := reader.columns()) is not None:
            parts.append(columns)
        self.chunk = [pa.concat_arrays(list(column)) for column in zip(*parts, strict=True)]
        self.keys = {}
        self._is_last = not self.chunk or not shape.shape.key or len(self.chunk[0]) < most
        if self.chunk and shape.shape.key:
            columns = [self.chunk[i].to_pylist() for i in shape.shape.key]
            for row, values in enumerate(zip(*columns, strict=True)):
                self._last = shape.comparable(list(values))
                assert self._last is not None
                self.keys[self._last] = row

    def changed(self, table: str, keys: Sequence[Key | None]) -> None:
        if self.todo and self.todo[0] == table:
            for key in keys:
                if key is not None:
                    self.keys.pop(key, None)

    def taken(self) -> tuple[PostgresShape, list[Any]]:
        """The rows that the stream did not change. What comes next follows them."""
        assert self._shape is not None and self.chunk is not None
        shape, columns = self._shape, self.chunk
        if columns and shape.shape.key:
            rows = pa.array(list(self.keys.values()), pa.int64())
            columns = [column.take(rows) for column in columns] if len(rows) else []
        self.after = self._last
        if self._is_last:
            self.next_table()
        self.chunk, self.keys, self._last = None, {}, None
        return shape, columns
