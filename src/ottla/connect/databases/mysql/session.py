"""One connected reader of a binlog: snapshot pieces first, then the stream, from an offset on.

| field of the offset | |
|---|---|
| file, pos | every transaction that ends before is out; the binlog is read from here |
| tx, changes | everything up to this change of this transaction (its place in the binlog) is out too |
| span, tables, snapshot, parts | as of PostgreSQL's session |
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import GtidEvent, MariadbGtidEvent, QueryEvent, RotateEvent, XidEvent
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

from ottla.connect.api.plugins import ConnectorFailure, Offset, Read
from ottla.connect.databases.changes.covered import Covered, Part
from ottla.connect.databases.changes.envelope import Changes, no_records
from ottla.connect.databases.changes.heartbeats import heartbeat
from ottla.connect.databases.changes.settings import TableFilter
from ottla.connect.databases.changes.span import Span
from ottla.connect.databases.mysql.catalogue import (
    BinlogConnection,
    Catalogue,
    connection_options,
    encoded,
    telling_failures,
)
from ottla.connect.databases.mysql.shapes import MysqlShape, MysqlShapes
from ottla.connect.databases.mysql.snapshot import SnapshotReader

_EVENTS = [
    RotateEvent,
    QueryEvent,
    XidEvent,
    MariadbGtidEvent,
    GtidEvent,
    WriteRowsEvent,
    UpdateRowsEvent,
    DeleteRowsEvent,
]
VERSION = "ottla"


class MysqlSession:
    def __init__(self, settings: Mapping[str, Any], offset: Offset | None) -> None:
        self._settings = settings
        self._wanted = TableFilter(settings)
        self._catalogue = Catalogue(settings)
        self._shapes = MysqlShapes(settings, self._catalogue, self._wanted)
        self._ready: deque[Read] = deque()
        self._reader: SnapshotReader | None = None
        self._stream: Any = None
        try:
            self._begin(offset)
        except BaseException:
            self.close()
            raise

    def _begin(self, offset: Offset | None) -> None:
        catalogue = self._catalogue
        catalogue.check()
        tables = catalogue.tables(self._wanted, self._settings["database.include.list"])
        if offset is None:
            self._file, self._pos = catalogue.position()
        else:
            self._file, self._pos = offset["file"], offset["pos"]
            if not catalogue.has_file(self._file):
                raise ConnectorFailure(
                    f"The server has removed {self._file} of its binlog, so changes are missing (see "
                    "expire_logs_days): DELETE the "
                    "connector's offsets while it is stopped, and it begins with a new snapshot."
                )
        self.offset = offset
        offset = offset or {}
        self._span = Span(offset)
        parts = [Part.from_json(part) for part in offset.get("parts", ())]
        self._covered = Covered(parts, lambda moment, transaction: transaction < int(moment))
        known, snapshot = offset.get("tables", []), offset.get("snapshot", {})
        self._todo: list[str] = list(snapshot.get("todo", ()))
        after = snapshot.get("after")
        self._after = None if after is None else tuple(after)
        if self._settings["snapshot.mode"] == "initial":
            self._todo += [table for table in tables if table not in known]
        self._tables = sorted({*known, *tables})
        self._names: dict[tuple[str, str], MysqlShape | None] = {}
        self._transaction: int | None = None
        self._gtid: str | None = None
        self._number = 0
        self._place = self._span.out
        self._before = self._rest()
        self._heartbeat_at, self._has_just_beaten = time.monotonic(), False

    def close(self) -> None:
        self._catalogue.close()
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        self._disconnect()

    def _disconnect(self) -> None:
        if self._stream is not None:
            stream, self._stream = self._stream, None
            stream.close()

    def next(self) -> Read | None:
        if not self._ready:
            if self._todo:
                self._ready.append(self._snapshot_piece())
            else:
                self._ready.extend(self._stream_pieces())
        if not self._ready:
            return None
        piece = self._ready.popleft()
        self.offset = piece.offset
        return piece

    def published(self, offset: Offset) -> None:
        """The server keeps its binlog by its own rules."""

    def _rest(self) -> dict[str, Any]:
        rest: dict[str, Any] = {"file": self._file, "pos": self._pos, "tables": self._tables}
        if self._todo:
            rest["snapshot"] = {"todo": list(self._todo), "after": self._after and list(self._after)}
        if self._covered.parts:
            rest["parts"] = [part.to_json() for part in self._covered.parts]
        return rest

    def _whole_offset(self) -> dict[str, Any]:
        return {**self._rest(), "tx": self._span.out[0], "changes": self._span.out[1], **self._span.unfinished()}

    # --- snapshot

    def _snapshot_piece(self) -> Read:
        if self._reader is None:
            self._reader = SnapshotReader(self._settings)
            self._covered.parts.append(Part(self._reader.moment, self._reader.until))
            self._shape: MysqlShape | None = None
        part, reader = self._covered.parts[-1], self._reader
        while self._todo:
            table = self._todo[0]
            if self._shape is None:
                self._shape = self._shapes.of_table(table)
                if not self._shape.shape.key:
                    self._after = None
                    for each in self._covered.parts:
                        each.ranges.pop(table, None)
                self._low = self._after
                if not self._shape.names:
                    self._todo.pop(0)
                    self._shape = None
                    continue
                reader.begin(self._shape, self._after, self._settings["snapshot.fetch.size"])
            rows = reader.rows()
            if not rows:
                part.ranges[table] = (self._low, None)
                self._todo.pop(0)
                self._after, self._shape = None, None
                continue
            changes = Changes(self._shape.shape)
            source = self._source(table, reader.ts_ms, "true", 0, 0)
            for row in rows:
                changes.add("r", self._shape.key(row), None, row, source)
            self._after = self._shape.comparable(self._shape.key(rows[-1]))
            part.ranges[table] = (self._low, self._after)
            return Read(changes.to_records(), self._whole_offset())
        reader.close()
        self._reader = None
        return Read(no_records(), self._whole_offset())

    def _source(self, table: str, ts_ms: int, snapshot: str, server_id: int, row: int) -> tuple[Any, ...]:
        database, _, name = table.partition(".")
        prefix = self._settings["topic.prefix"]
        return (
            VERSION,
            "mysql",
            prefix,
            ts_ms,
            snapshot,
            database,
            None,
            name,
            server_id,
            self._gtid,
            self._file,
            self._pos,
            row,
            None,
            None,
        )

    # --- stream

    def _stream_pieces(self) -> list[Read]:
        deadline = time.monotonic() + self._settings["poll.interval.ms"] / 1000
        while True:
            if self._stream is not None or self._catalogue.position() != (self._file, self._pos):
                pieces = self._events()
                if pieces:
                    return pieces
            if self._has_just_beaten:
                # Or a round would never end.
                self._has_just_beaten = False
                return []
            interval = self._settings["heartbeat.interval.ms"]
            is_due = interval and time.monotonic() - self._heartbeat_at >= interval / 1000
            is_between = self._transaction is None and len(self._span) == 0
            if is_due and is_between and self._span.may_end(max(self._place, self._span.out)):
                self._heartbeat_at, self._has_just_beaten = time.monotonic(), True
                beat = heartbeat(self._settings["topic.prefix"], self._settings["topic.heartbeat.prefix"])
                return [Read(beat, self._whole_offset())]
            left = deadline - time.monotonic()
            if left <= 0:
                return []
            time.sleep(min(left, 0.1))

    def _connect(self) -> None:
        self._stream = BinLogStreamReader(
            connection_settings=connection_options(self._settings),
            server_id=self._settings["database.server.id"],
            only_events=_EVENTS,
            log_file=self._file,
            log_pos=self._pos,
            resume_stream=True,
            blocking=False,
            pymysql_wrapper=BinlogConnection,
            enable_logging=False,
        )
        self._transaction = None
        self._at_file = self._file

    def _events(self) -> list[Read]:
        """Until there is enough, or the end of the binlog."""
        most = self._settings["max.batch.size"]
        with telling_failures("stream its changes"):
            if self._stream is None:
                self._connect()
            while (event := self._stream.fetchone()) is not None:
                if pieces := self._handle(event):
                    return pieces
                if (len(self._span) >= most or self._span.must_end(self._place)) and (pieces := self._cut()):
                    return pieces
        self._disconnect()
        return self._cut()

    def _handle(self, event: Any) -> list[Read] | None:
        if isinstance(event, WriteRowsEvent | UpdateRowsEvent | DeleteRowsEvent):
            return self._rows(event)
        if isinstance(event, RotateEvent):
            if self._transaction is None and event.next_binlog != self._at_file:
                self._file, self._pos = event.next_binlog, event.position
            self._at_file = event.next_binlog
        elif isinstance(event, MariadbGtidEvent | GtidEvent):
            self._gtid = event.gtid
            if isinstance(event, MariadbGtidEvent):
                self._start(event)
        elif isinstance(event, QueryEvent):
            if event.query == "BEGIN":
                self._start(event)
            else:
                # DDL, or the COMMIT of a table without transactions.
                self._end(event)
        elif isinstance(event, XidEvent):
            self._end(event)
        return None

    def _start(self, event: Any) -> None:
        if len(self._span) == 0:
            self._before = self._rest()
        self._transaction, self._number = encoded(self._at_file, event.packet.log_pos), 0
        self._covered.begin(self._transaction, self._transaction)

    def _end(self, event: Any) -> None:
        self._file, self._pos = self._at_file, event.packet.log_pos
        self._transaction = None

    def _cut(self) -> list[Read]:
        place = max(self._place, self._span.out)
        if not self._span.may_end(place):
            return []
        after = self._rest()
        pieces = self._span.cut(place, self._before, after)
        self._before = after
        return pieces

    def _rows(self, event: Any) -> list[Read]:
        shape, pieces = self._shape_of(event)
        if shape is None:
            return []
        if self._transaction is None:
            self._start(event)
        assert self._transaction is not None
        for row in event.rows:
            self._number += 1
            place = self._place = (self._transaction, self._number)
            if not self._span.is_out(shape.shape.table, place):
                self._change(shape, event, row)
        return pieces

    def _shape_of(self, event: Any) -> tuple[MysqlShape | None, list[Read]]:
        table = f"{event.schema}.{event.table}"
        databases = self._settings["database.include.list"]
        if table not in self._tables and not (self._wanted.has(table) and (not databases or event.schema in databases)):
            return None, []
        if not self._wanted.has(table):
            return None, []
        look = tuple((column.name, column.type, column.unsigned) for column in event.columns)
        key = event.primary_key
        named = [key] if isinstance(key, str) and key else list(key or ())
        known = self._names.get((table, repr((look, named))))
        if known is None:
            if any(name is None for name, _, _ in look):
                raise ConnectorFailure(
                    f"The binlog does not name the columns of {table}: set binlog_row_metadata=FULL on the server."
                )
            known = self._names[table, repr((look, named))] = self._shapes.of_event(table, event.columns, named)
            self._tables = sorted({*self._tables, table})
        pieces = [] if self._span.fits(known.shape) else self._cut()
        return known, pieces

    def _change(self, shape: MysqlShape, event: Any, row: Mapping[str, Any]) -> None:
        settings = self._settings
        made = self._span.changes(shape.shape)
        before_count = len(made)
        ts_ms = event.timestamp * 1000
        source = self._source(shape.shape.table, ts_ms, "false", event.packet.server_id, self._number)
        old = new = None
        if isinstance(event, UpdateRowsEvent):
            op, old, new = "u", shape.row(row["before_values"]), shape.row(row["after_values"])
        elif isinstance(event, WriteRowsEvent):
            op, new = "c", shape.row(row["values"])
        else:
            op, old = "d", shape.row(row["values"])
        if op in settings["skipped.operations"]:
            return
        old_key = None if old is None else shape.key(old)
        new_key = None if new is None else shape.key(new)
        if old is not None and (new is None or old_key != new_key):
            if not self._has(shape, old_key):
                made.add("d", old_key, old, None, source)
                if old_key is not None and settings["tombstones.on.delete"]:
                    made.add(None, old_key, None, None, source)
            old, op = None, "c"
        if new is not None and not self._has(shape, new_key):
            made.add(op, new_key, old, new, source)
        if len(made) > before_count:
            self._span.added()

    def _has(self, shape: MysqlShape, key: Any) -> bool:
        return not self._covered.is_over and self._covered.has(shape.shape.table, shape.comparable(key))
