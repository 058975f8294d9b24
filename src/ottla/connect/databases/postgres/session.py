"""PostgreSQL's side of a session: its slot and publication, its WAL, rows again on request.

Of an offset it has for itself:

| field | |
|---|---|
| lsn | every transaction that was committed before is out; the stream is read from here |
| asked | tables that a signal asks to be read again, and the last key that is out of the first of them |
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from ottla.connect.api.data import Records
from ottla.connect.api.plugins import Offset, Read
from ottla.connect.databases.changes.again import Again
from ottla.connect.databases.changes.covered import Key
from ottla.connect.databases.changes.envelope import no_records
from ottla.connect.databases.changes.progress import Progress
from ottla.connect.databases.changes.session import ChangeSession
from ottla.connect.databases.changes.source import is_same
from ottla.connect.databases.postgres.catalogue import Catalogue, telling_failures
from ottla.connect.databases.postgres.pgoutput import (
    UNCHANGED,
    Begin,
    Change,
    Commit,
    Relation,
    Truncate,
    decode,
)
from ottla.connect.databases.postgres.rows import rows_as_records
from ottla.connect.databases.postgres.shapes import VERSION, PostgresShape, PostgresShapes
from ottla.connect.databases.postgres.snapshot import SnapshotReader
from ottla.connect.databases.postgres.stream import ReplicationStream
from ottla.connect.databases.postgres.visibility import is_seen

_RECENT_TRANSACTIONS = 10_000


class PostgresSession(ChangeSession[PostgresShape, SnapshotReader]):
    def __init__(self, settings: Mapping[str, Any], offset: Offset | None) -> None:
        self._catalogue = Catalogue(settings)
        self._stream: ReplicationStream | None = None
        super().__init__(settings, offset)

    def _begin(self, offset: Offset | None) -> None:
        settings, catalogue = self._settings, self._catalogue
        self._shapes = PostgresShapes(settings, catalogue, self._wanted)
        catalogue.check_level()
        tables = catalogue.tables(self._wanted)
        catalogue.publish(
            settings["publication.name"],
            tables,
            settings["publication.autocreate.mode"],
            settings["signal.data.collection"],
        )
        lsn = catalogue.slot(settings["slot.name"], is_expected=offset is not None)
        self._lsn: int = lsn if offset is None else offset.get("lsn", lsn)
        self._again = Again.from_json((offset or {}).get("asked"))
        has_snapshot = settings["snapshot.mode"] == "initial"
        self._progress = Progress(offset, tables, self._wanted.has, has_snapshot, is_seen)
        self._progress.begin(self._position())
        # Of the stream.
        self._relations: dict[int, PostgresShape | None] = {}
        self._names: dict[int, str] = {}
        self._transaction: Begin | None = None
        self._number = 0
        self._recent: deque[int] = deque(maxlen=_RECENT_TRANSACTIONS)
        self._published_lsn = self._lsn
        self._is_all_published = True

    def close(self) -> None:
        self._catalogue.close()
        super().close()

    def _disconnect(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def next(self) -> Read | None:
        piece = super().next()
        if piece is not None:
            self._is_all_published = False
        return piece

    def published(self, offset: Offset) -> None:
        self._published_lsn = max(self._published_lsn, offset.get("lsn", 0))
        self._is_all_published = not self._ready and is_same(offset, self.offset)
        self._confirm(is_due=True)

    def _position(self) -> dict[str, Any]:
        return {"lsn": self._lsn, **self._again.to_json()}

    # --- snapshot

    def _new_reader(self) -> SnapshotReader:
        """A moment that has seen everything that is out of the stream: a commit is in the WAL an instant before others
        see it, and longer than that with synchronous replicas."""
        while True:
            reader = SnapshotReader(self._settings)
            if all(is_seen(reader.moment, xid) for xid in self._recent):
                return reader
            reader.close()
            time.sleep(0.05)

    def _shape_of_table(self, table: str) -> PostgresShape | None:
        return self._shapes.of_table(table) if self._catalogue.exists(table) else None

    def _begin_rows(self, reader: SnapshotReader, shape: PostgresShape, after: Key | None) -> None:
        reader.begin(shape, after, self._settings["snapshot.fetch.size"])

    def _next_rows(self, reader: SnapshotReader, shape: PostgresShape) -> tuple[Records, Sequence[Any] | None] | None:
        columns = reader.columns()
        if columns is None:
            return None
        last = [columns[i][-1].as_py() for i in shape.shape.key] if shape.shape.key else None
        return self._rows_as_records(shape, columns, reader.ts_ms), last

    def _rows_as_records(self, shape: PostgresShape, columns: list[Any], ts_ms: int) -> Records:
        return rows_as_records(shape, columns, self._source(shape.shape.table, ts_ms, "true", None, self._lsn))

    def _source(self, table: str, ts_ms: int, snapshot: str, xid: int | None, lsn: int) -> tuple[Any, ...]:
        schema, _, name = table.partition(".")
        prefix, database = self._settings["topic.prefix"], self._settings["database.dbname"]
        sequence = f'["{self._lsn}","{lsn}"]'
        return VERSION, "postgresql", prefix, ts_ms, snapshot, database, sequence, schema, name, xid, lsn, None

    # --- stream

    def _connected(self) -> ReplicationStream:
        if self._stream is None:
            self._stream = ReplicationStream(self._settings, self._lsn)
            self._relations, self._transaction = {}, None
        return self._stream

    def _stream_pieces(self) -> list[Read]:
        stream = self._connected()
        most = self._settings["max.batch.size"]
        deadline = time.monotonic() + self._settings["poll.interval.ms"] / 1000
        with telling_failures("stream its changes (a slot that is older than its publication has to be dropped)"):
            while True:
                message = stream.read()
                if message is None:
                    if pieces := self._cut():
                        return pieces
                    self._note_idle(stream.wal_end)
                    if self._transaction is None:
                        if pieces := self._rows_again():
                            return pieces
                        if (beat := self._idle()) is not None:
                            return beat
                    left = deadline - time.monotonic()
                    if left <= 0:
                        return []
                    self._confirm()
                    stream.wait(min(left, 1.0))
                    continue
                if pieces := self._handle(message.payload, message.data_start):
                    return pieces
                if self._progress.is_full(most) and (pieces := self._cut()):
                    return pieces
                if self._transaction is None and (pieces := self._rows_again()):
                    return pieces

    def _tables(self) -> list[str]:
        return self._catalogue.tables(self._wanted)

    def _reached(self) -> int:
        return self._lsn

    def _read_again(self, reader: SnapshotReader, shape: PostgresShape, most: int) -> None:
        has_key = bool(shape.shape.key)
        reader.begin(shape, self._again.after, most, most if has_key else None)
        parts = []
        while (columns := reader.columns()) is not None:
            parts.append(columns)
        chunk = [pa.concat_arrays(list(column)) for column in zip(*parts, strict=True)]
        keys = None
        if has_key:
            found = zip(*(chunk[i].to_pylist() for i in shape.shape.key), strict=True) if chunk else ()
            keys = [key for key in (shape.comparable(list(values)) for values in found) if key is not None]

        def made(rows: list[int] | None) -> Records:
            some = chunk if rows is None else [column.take(pa.array(rows, pa.int64())) for column in chunk]
            return self._rows_as_records(shape, some, reader.ts_ms) if some else no_records()

        self._again.waits(made, keys, keys is None or len(keys) < most, reader.until)
        # So that the stream passes this point even if nobody writes.
        self._catalogue.ask("SELECT pg_logical_emit_message(false, 'ottla', '')")
        self._confirm(is_due=True)

    def _note_idle(self, wal_end: int) -> None:
        """No transaction is under way: the server has nothing for us below what it has told."""
        if self._transaction is None and len(self._progress.span) == 0 and wal_end > self._lsn:
            self._lsn = wal_end
            if self._is_all_published:
                self._published_lsn = self._lsn

    def _confirm(self, is_due: bool = False) -> None:
        if self._stream is not None:
            self._stream.confirm(self._published_lsn, is_due)

    def _handle(self, data: bytes, lsn: int) -> list[Read]:
        message = decode(data)
        if isinstance(message, Change):
            self._change(message, lsn)
        elif isinstance(message, Begin):
            self._progress.begin(self._position())
            self._transaction, self._number = message, 0
            self._progress.covered.begin(message.xid, message.commit_lsn)
        elif isinstance(message, Commit):
            assert self._transaction is not None
            self._recent.append(self._transaction.xid)
            self._progress.passed(self._transaction.commit_lsn)
            self._lsn = message.end_lsn
            self._transaction = None
        elif isinstance(message, Relation):
            return self._relation(message)
        elif isinstance(message, Truncate):
            self._truncate(message, lsn)
        return []

    def _relation(self, message: Relation) -> list[Read]:
        self._names[message.oid] = message.table
        pieces: list[Read] = []
        shape = None
        if self._wanted.has(message.table):
            shape = self._shapes.of_relation(message)
            if not self._progress.span.fits(shape.shape):
                pieces = self._cut()
            self._progress.knows(message.table)
        self._relations[message.oid] = shape
        return pieces

    def _change(self, change: Change, lsn: int) -> None:
        assert self._transaction is not None
        self._number += 1
        place = self._progress.place = (self._transaction.commit_lsn, self._number)
        shape = self._relations[change.oid]
        if shape is None:
            if self._names[change.oid] == self._settings["signal.data.collection"] and change.op == "c":
                assert change.new is not None
                self._signal(place, *(_text(value) for value in change.new[1:3]))
            return
        transaction, table = self._transaction, shape.shape.table
        if self._progress.span.is_out(table, place) or change.op in self._settings["skipped.operations"]:
            return
        source = self._source(table, transaction.ts_ms, "false", transaction.xid, lsn)
        old = None if change.old is None else shape.row(change.old)
        new = None if change.new is None else shape.row(change.new)
        if old is not None and UNCHANGED in old:
            old = [None if value is UNCHANGED else value for value in old]
        if new is not None and UNCHANGED in new:
            # Of the old row there is all of it, or the key.
            there = () if old is None else range(len(old)) if change.is_old_whole else shape.shape.key
            new = [
                (old[n] if old is not None and n in there else shape.shape.columns[n].unavailable)
                if value is UNCHANGED
                else value
                for n, value in enumerate(new)
            ]
        if self._again.chunk is not None:
            self._again.changed(table, [shape.comparable(shape.key(row)) for row in (old, new) if row is not None])
        self._collect(shape, change.op, old, new, source, tells_old=change.is_old_whole)

    def _truncate(self, message: Truncate, lsn: int) -> None:
        assert self._transaction is not None
        self._number += 1
        progress = self._progress
        place = progress.place = (self._transaction.commit_lsn, self._number)
        if "t" in self._settings["skipped.operations"]:
            return
        for oid in message.oids:
            shape = self._relations.get(oid)
            if shape is None or progress.span.is_out(shape.shape.table, place):
                continue
            if not progress.covered.has(shape.shape.table, None):
                source = self._source(shape.shape.table, self._transaction.ts_ms, "false", self._transaction.xid, lsn)
                progress.span.changes(shape.shape).add("t", None, None, None, source)
                progress.span.added()


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else ""
