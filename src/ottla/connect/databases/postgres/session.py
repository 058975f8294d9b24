"""One connected reader: snapshot pieces first, then the stream, from an offset on.

It lives as long as it is read in order. After a failure, or if somebody asks for another offset, a new one is made from
the offset; that is all it needs:

| field | |
|---|---|
| lsn | every transaction that was committed before is out; the stream is read from here |
| tx, changes | everything up to this change of this transaction (its commit's LSN) is out too |
| span | see `changes.span` |
| tables | those that were ever seen: others are new and get a snapshot |
| snapshot | tables that are still to be read, and the last key that is out of the first of them |
| parts | see `changes.covered` |
| asked | tables that a signal asks to be read again, and the last key that is out of the first of them |
"""

from __future__ import annotations

import json
import re
import select
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

import psycopg2
import psycopg2.extras
import pyarrow as pa

from ottla.connect.api.data import Records
from ottla.connect.api.plugins import Offset, Outage, Read
from ottla.connect.databases.changes.covered import Covered, Part
from ottla.connect.databases.changes.envelope import Changes, key_column, no_records, records, required
from ottla.connect.databases.changes.heartbeats import heartbeat
from ottla.connect.databases.changes.settings import TableFilter
from ottla.connect.databases.changes.source import is_same
from ottla.connect.databases.changes.span import Span
from ottla.connect.databases.postgres.again import Again
from ottla.connect.databases.postgres.catalogue import Catalogue, connection_options, telling_failures
from ottla.connect.databases.postgres.pgoutput import (
    UNCHANGED,
    Begin,
    Change,
    Commit,
    Relation,
    Truncate,
    decode,
)
from ottla.connect.databases.postgres.shapes import SOURCE, VERSION, PostgresShape, PostgresShapes
from ottla.connect.databases.postgres.snapshot import SnapshotReader
from ottla.connect.databases.postgres.visibility import is_seen
from ottla.connect.databases.schemas import arrow_type

_FEEDBACK_SECONDS = 10.0
_SLOT_SECONDS, _SLOT_PAUSE_SECONDS = 10.0, 0.1
_RECENT_TRANSACTIONS = 10_000


class PostgresSession:
    def __init__(self, settings: Mapping[str, Any], offset: Offset | None) -> None:
        self._settings = settings
        self._prefix, self._database = settings["topic.prefix"], settings["database.dbname"]
        self._wanted = TableFilter(settings)
        self._catalogue = Catalogue(settings)
        self._shapes = PostgresShapes(settings, self._catalogue, self._wanted)
        self._ready: deque[Read] = deque()
        self._reader: SnapshotReader | None = None
        self._cursor: Any = None
        self._connection: Any = None
        try:
            self._begin(offset)
        except BaseException:
            self.close()
            raise

    def _begin(self, offset: Offset | None) -> None:
        settings, catalogue = self._settings, self._catalogue
        catalogue.check_level()
        tables = catalogue.tables(self._wanted)
        catalogue.publish(
            settings["publication.name"],
            tables,
            settings["publication.autocreate.mode"],
            settings["signal.data.collection"],
        )
        lsn = catalogue.slot(settings["slot.name"], is_expected=offset is not None)
        offset = offset or {}
        self._lsn: int = offset.get("lsn", lsn)
        self._span = Span(offset)
        self._covered = Covered([Part.from_json(part) for part in offset.get("parts", ())], is_seen)
        known = offset.get("tables", [])
        snapshot = offset.get("snapshot", {})
        self._todo: list[str] = list(snapshot.get("todo", ()))
        after = snapshot.get("after")
        self._after = None if after is None else tuple(after)
        if settings["snapshot.mode"] == "initial":
            self._todo += [table for table in tables if table not in known]
        self._tables = sorted({*known, *tables})
        self._again = Again.from_json(offset.get("asked"))
        self.offset: Offset | None = offset or None
        # Of the stream.
        self._relations: dict[int, PostgresShape | None] = {}
        self._names: dict[int, str] = {}
        self._transaction: Begin | None = None
        self._number = 0
        # The last change that was looked at, and the rest of an offset before the first that was collected.
        self._place = self._span.out
        self._before = self._rest(self._lsn)
        self._recent: deque[int] = deque(maxlen=_RECENT_TRANSACTIONS)
        self._published_lsn = self._lsn
        self._is_all_published = True
        self._heartbeat_at, self._has_just_beaten = time.monotonic(), False
        self._feedback_at = 0.0

    def close(self) -> None:
        self._catalogue.close()
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        self._disconnect()

    def _disconnect(self) -> None:
        """The stream goes on later from what is read; a server would not wait for as long as a snapshot takes."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def next(self) -> Read | None:
        """The next piece; None if there is none for now."""
        if not self._ready:
            if self._todo:
                self._ready.append(self._snapshot_piece())
            else:
                self._ready.extend(self._stream_pieces())
        if not self._ready:
            return None
        piece = self._ready.popleft()
        self.offset = piece.offset
        self._is_all_published = False
        return piece

    def published(self, offset: Offset) -> None:
        self._published_lsn = max(self._published_lsn, offset.get("lsn", 0))
        self._is_all_published = not self._ready and is_same(offset, self.offset)
        self._confirm(is_due=True)

    # --- offsets

    def _rest(self, lsn: int) -> dict[str, Any]:
        rest: dict[str, Any] = {"lsn": lsn, "tables": self._tables}
        if self._todo:
            rest["snapshot"] = {"todo": list(self._todo), "after": self._after and list(self._after)}
        if self._covered.parts:
            rest["parts"] = [part.to_json() for part in self._covered.parts]
        if self._again.todo:
            rest["asked"] = self._again.to_json()
        return rest

    # --- snapshot

    def _snapshot_piece(self) -> Read:
        if self._reader is None:
            self._disconnect()
            self._reader = self._new_reader()
            self._covered.parts.append(Part(self._reader.moment, self._reader.until))
            self._shape: PostgresShape | None = None
        part = self._covered.parts[-1]
        while self._todo:
            table = self._todo[0]
            if self._shape is None:
                if not self._catalogue.exists(table):
                    self._todo.pop(0)
                    self._after = None
                    continue
                self._shape = self._shapes.of_table(table)
                if not self._shape.shape.key:
                    # It cannot be read on in the middle: from its beginning again.
                    self._after = None
                    for each in self._covered.parts:
                        each.ranges.pop(table, None)
                self._low = self._after
                self._reader.begin(self._shape, self._after, self._settings["snapshot.fetch.size"])
            columns = self._reader.columns()
            if columns is None:
                part.ranges[table] = (self._low, None)
                self._todo.pop(0)
                self._after, self._shape = None, None
                continue
            piece = self._rows_as_records(self._shape, columns, self._reader.ts_ms)
            if self._shape.shape.key:
                last = [columns[i][-1].as_py() for i in self._shape.shape.key]
                self._after = self._shape.comparable(last)
            part.ranges[table] = (self._low, self._after)
            return Read(piece, self._offset_in_snapshot())
        self._reader.close()
        self._reader = None
        return Read(no_records(), self._offset_in_snapshot())

    def _offset_in_snapshot(self) -> dict[str, Any]:
        out = self._span.out
        return {**self._rest(self._lsn), "tx": out[0], "changes": out[1], **self._span.unfinished()}

    def _new_reader(self) -> SnapshotReader:
        """A moment that has seen everything that is out of the stream: a commit is in the WAL an instant before others
        see it, and longer than that with synchronous replicas."""
        while True:
            reader = SnapshotReader(self._settings)
            if all(is_seen(reader.moment, xid) for xid in self._recent):
                return reader
            reader.close()
            time.sleep(0.05)

    def _rows_as_records(self, shape: PostgresShape, columns: list[Any], ts_ms: int) -> Records:
        made = shape.shape
        count = len(columns[0])
        arrays = [required(each.to_arrow(text), each.schema) for each, text in zip(made.columns, columns, strict=True)]
        after = pa.StructArray.from_arrays(arrays, fields=list(made.row_type))
        source = self._source(made.table, ts_ms, "true", None, self._lsn)
        sources = pa.StructArray.from_arrays(
            [
                pa.repeat(pa.scalar(value, arrow_type(each.schema)), count)
                for value, each in zip(source, SOURCE.fields, strict=True)
            ],
            names=[each.name for each in SOURCE.fields],
        )
        now = pa.repeat(pa.scalar(int(time.time() * 1000), pa.int64()), count)
        values = pa.StructArray.from_arrays(
            [pa.nulls(count, made.row_type), after, sources, pa.repeat(pa.scalar("r"), count), now],
            fields=list(arrow_type(made.envelope)),
        )
        keys = key_column(made, [None] * count)
        if made.key_schema is not None:
            key_type = arrow_type(made.key_schema)
            key = pa.StructArray.from_arrays([arrays[i] for i in made.key], fields=list(key_type))
            keys = type(keys)(made.key_schema, key)
        return records(made, count, keys, values)

    def _source(self, table: str, ts_ms: int, snapshot: str, xid: int | None, lsn: int) -> tuple[Any, ...]:
        schema, _, name = table.partition(".")
        sequence = f'["{self._lsn}","{lsn}"]'
        return (
            VERSION,
            "postgresql",
            self._prefix,
            ts_ms,
            snapshot,
            self._database,
            sequence,
            schema,
            name,
            xid,
            lsn,
            None,
        )

    # --- stream

    def _connect(self) -> None:
        """The server takes a moment to see that whoever read from the slot before is gone."""
        deadline = time.monotonic() + _SLOT_SECONDS
        with telling_failures("stream its changes"):
            while True:
                try:
                    self._start_replication()
                    break
                except psycopg2.errors.ObjectInUse as error:
                    self._connection.close()
                    self._connection = None
                    if time.monotonic() > deadline:
                        slot = self._settings["slot.name"]
                        raise Outage(
                            f"Somebody else reads from the slot {slot} ({str(error).strip()}): stop that reader, or "
                            "choose another slot.name."
                        ) from error
                    time.sleep(_SLOT_PAUSE_SECONDS)
        self._relations, self._transaction = {}, None

    def _start_replication(self) -> None:
        self._connection = psycopg2.connect(
            **connection_options(self._settings),
            connection_factory=psycopg2.extras.LogicalReplicationConnection,
        )
        self._cursor = self._connection.cursor()
        self._cursor.start_replication(
            slot_name=self._settings["slot.name"],
            decode=False,
            start_lsn=self._lsn,
            options={"proto_version": "1", "publication_names": self._settings["publication.name"]},
        )

    def _stream_pieces(self) -> list[Read]:
        if self._connection is None:
            self._connect()
        most = self._settings["max.batch.size"]
        deadline = time.monotonic() + self._settings["poll.interval.ms"] / 1000
        with telling_failures("stream its changes (a slot that is older than its publication has to be dropped)"):
            while True:
                message = self._cursor.read_message()
                if message is None:
                    if pieces := self._cut():
                        return pieces
                    self._note_idle()
                    if self._transaction is None and (pieces := self._rows_again()):
                        return pieces
                    if self._has_just_beaten:
                        # Or a round would never end.
                        self._has_just_beaten = False
                        return []
                    if beat := self._heartbeat():
                        return [beat]
                    left = deadline - time.monotonic()
                    if left <= 0:
                        return []
                    self._confirm()
                    select.select([self._cursor], [], [], min(left, 1.0))
                    continue
                if pieces := self._handle(message.payload, message.data_start):
                    return pieces
                if (len(self._span) >= most or self._span.must_end(self._place)) and (pieces := self._cut()):
                    return pieces
                if self._transaction is None and (pieces := self._rows_again()):
                    return pieces

    def _rows_again(self) -> list[Read]:
        """What a signal asked for: see `Again`."""
        again = self._again
        if again.chunk is None and again.todo:
            table = again.todo[0]
            if not self._catalogue.exists(table):
                again.next_table()
                return []
            reader = self._new_reader()
            try:
                again.read(reader, self._shapes.of_table(table), self._settings["snapshot.fetch.size"])
            finally:
                reader.close()
            # So that the stream passes this point even if nobody writes.
            self._catalogue.ask("SELECT pg_logical_emit_message(false, 'ottla', '')")
            self._confirm(is_due=True)
        if again.chunk is None or self._lsn < again.until or not self._span.may_end(self._place):
            return []
        pieces = self._cut()
        shape, columns = again.taken()
        rows = self._rows_as_records(shape, columns, again.ts_ms) if columns else no_records()
        self._before = self._rest(self._lsn)
        return [*pieces, Read(rows, self._offset_in_snapshot())]

    def _cut(self) -> list[Read]:
        place = max(self._place, self._span.out)
        if not self._span.may_end(place):
            return []
        after = self._rest(self._lsn)
        pieces = self._span.cut(place, self._before, after)
        self._before = after
        return pieces

    def _note_idle(self) -> None:
        """No transaction is under way: the server has nothing for us below what it has told."""
        if self._transaction is None and len(self._span) == 0 and self._cursor.wal_end > self._lsn:
            self._lsn = self._cursor.wal_end
            if self._is_all_published:
                self._published_lsn = self._lsn

    def _heartbeat(self) -> Read | None:
        interval = self._settings["heartbeat.interval.ms"]
        if not interval or time.monotonic() - self._heartbeat_at < interval / 1000 or self._transaction is not None:
            return None
        if len(self._span) or not self._span.may_end(max(self._place, self._span.out)):
            return None  # its offset would be behind changes that are not out
        self._heartbeat_at, self._has_just_beaten = time.monotonic(), True
        beat = heartbeat(self._settings["topic.prefix"], self._settings["topic.heartbeat.prefix"])
        return Read(beat, self._offset_in_snapshot())

    def _confirm(self, is_due: bool = False) -> None:
        """What is published the server may forget."""
        if self._connection is None or (not is_due and time.monotonic() - self._feedback_at < _FEEDBACK_SECONDS):
            return
        self._feedback_at = time.monotonic()
        with telling_failures("stream its changes"):
            self._cursor.send_feedback(flush_lsn=self._published_lsn, force=True)

    def _handle(self, data: bytes, lsn: int) -> list[Read]:
        message = decode(data)
        if isinstance(message, Change):
            self._change(message, lsn)
            return []
        if isinstance(message, Begin):
            if len(self._span) == 0:
                self._before = self._rest(self._lsn)
            self._transaction, self._number = message, 0
            self._covered.begin(message.xid, message.commit_lsn)
        elif isinstance(message, Commit):
            assert self._transaction is not None
            self._recent.append(self._transaction.xid)
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
            if not self._span.fits(shape.shape):
                pieces = self._cut()
            if message.table not in self._tables:
                self._tables = sorted({*self._tables, message.table})
        self._relations[message.oid] = shape
        return pieces

    def _change(self, change: Change, lsn: int) -> None:
        assert self._transaction is not None
        self._number += 1
        place = self._place = (self._transaction.commit_lsn, self._number)
        shape = self._relations[change.oid]
        if shape is None:
            if self._names[change.oid] == self._settings["signal.data.collection"] and change.op == "c":
                self._signal(change)
            return
        transaction, table = self._transaction, shape.shape.table
        if self._span.is_out(table, place) or change.op in self._settings["skipped.operations"]:
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
        self._add(shape, change, old, new, source)

    def _add(
        self,
        shape: PostgresShape,
        change: Change,
        old: list[Any] | None,
        new: list[Any] | None,
        source: tuple[Any, ...],
    ) -> None:
        """An update of the key is a delete and an insert, as in Debezium: each key has its own history."""
        made = self._span.changes(shape.shape)
        before = len(made)
        old_key = shape.key(old) if old is not None else None
        new_key = shape.key(new) if new is not None else None
        if self._again.chunk is not None:
            self._again.changed(
                shape.shape.table, [shape.comparable(key) for key in (old_key, new_key) if key is not None]
            )
        if new is None:
            self._delete(made, shape, old_key, old, source)
        elif old_key is not None and old_key != new_key:
            self._delete(made, shape, old_key, old, source)
            if not self._has(shape, new_key):
                made.add("c", new_key, None, new, source)
        elif not self._has(shape, new_key):
            made.add(change.op, new_key, old if change.op == "u" and change.is_old_whole else None, new, source)
        if len(made) > before:
            self._span.added()

    def _delete(
        self, made: Changes, shape: PostgresShape, key: list[Any] | None, old: list[Any] | None, source: tuple[Any, ...]
    ) -> None:
        if self._has(shape, key):
            return
        made.add("d", key, old, None, source)
        if key is not None and self._settings["tombstones.on.delete"]:
            made.add(None, key, None, None, source)

    def _has(self, shape: PostgresShape, key: list[Any] | None) -> bool:
        """Whether a snapshot has read the row after this change."""
        return not self._covered.is_over and self._covered.has(shape.shape.table, shape.comparable(key))

    def _truncate(self, message: Truncate, lsn: int) -> None:
        assert self._transaction is not None
        self._number += 1
        place = self._place = (self._transaction.commit_lsn, self._number)
        if "t" in self._settings["skipped.operations"]:
            return
        for oid in message.oids:
            shape = self._relations.get(oid)
            if shape is None or self._span.is_out(shape.shape.table, place):
                continue
            if not self._covered.has(shape.shape.table, None):
                source = self._source(shape.shape.table, self._transaction.ts_ms, "false", self._transaction.xid, lsn)
                self._span.changes(shape.shape).add("t", None, None, None, source)
                self._span.added()

    def _signal(self, change: Change) -> None:
        """A row (id, type, data) of the table of signals."""
        assert change.new is not None
        if self._span.is_out("", self._place) or len(change.new) < 3 or change.new[1] != b"execute-snapshot":
            return
        try:
            named = json.loads(change.new[2] or b"{}").get("data-collections", [])
        except (ValueError, AttributeError):
            return
        filters = [str(each) for each in named]
        matching = [table for table in self._catalogue.tables(self._wanted) if _matches(table, filters)]
        self._again.todo += [table for table in matching if table not in self._again.todo]


def _matches(table: str, patterns: list[str]) -> bool:
    return any(table == each or re.fullmatch(each, table) for each in patterns)
