"""MySQL's and MariaDB's side of a session: the binlog.

Of an offset it has for itself `file` and `pos`: every transaction that ends before is out; the binlog is read from
here. `made` says which file that is, see `binlog_file.py`: on another server, or after RESET MASTER, a file of this
name is another one.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, cast

from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import (
    FormatDescriptionEvent,
    GtidEvent,
    MariadbGtidEvent,
    QueryEvent,
    RotateEvent,
    XidEvent,
)
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

from ottla.connect.api.data import Records
from ottla.connect.api.plugins import ConnectorFailure, Offset, Read
from ottla.connect.databases.changes.again import Again
from ottla.connect.databases.changes.covered import Key
from ottla.connect.databases.changes.envelope import Changes, no_records
from ottla.connect.databases.changes.progress import Progress
from ottla.connect.databases.changes.session import ChangeSession
from ottla.connect.databases.mysql.as_selected import keep_bytes
from ottla.connect.databases.mysql.binlog_file import Made, look_at, made_of, refuse_other, refuse_place
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
    FormatDescriptionEvent,
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
_FL_PREPARED_XA = 64
# The number of a change in its transaction: that of the event, whoever's table it is of, and of the row in it. So it
# stays the same when other tables are wanted.
_ROWS_OF_EVENT = 1 << 32


class MysqlSession(ChangeSession[MysqlShape, SnapshotReader]):
    def __init__(self, settings: Mapping[str, Any], offset: Offset | None) -> None:
        self._catalogue = Catalogue(settings)
        self._stream: Any = None
        super().__init__(settings, offset)

    def _begin(self, offset: Offset | None) -> None:
        catalogue = self._catalogue
        self._shapes = MysqlShapes(self._settings, catalogue, self._wanted)
        catalogue.check()
        tables = catalogue.tables(self._wanted)
        if offset is None:
            self._file, self._pos = catalogue.position()
            self._made: Made | None = look_at(self._settings, self._file)
        else:
            self._file, self._pos = offset["file"], offset["pos"]
            catalogue.check_place(self._file, self._pos)
            self._made = look_at(self._settings, self._file)
            # Offsets that somebody has set, or that an earlier version has written, do not say it.
            if "made" in offset and self._made != tuple(offset["made"]):
                raise refuse_other(self._file)
        # Up to here everything was read, though it may have been nothing of a transaction.
        self._passed = encoded(self._file, self._pos)
        self._again = Again.from_json((offset or {}).get("asked"))
        has_snapshot = self._settings["snapshot.mode"] == "initial"
        self._progress = Progress(offset, tables, self._wanted.has, has_snapshot, _is_seen)
        self._progress.begin(self._position())
        self._names: dict[tuple[str, str], MysqlShape] = {}
        self._transaction: int | None = None
        self._gtid: str | None = None
        self._events_of_transaction = 0

    def close(self) -> None:
        self._catalogue.close()
        super().close()

    def _disconnect(self) -> None:
        if self._stream is not None:
            stream, self._stream = self._stream, None
            stream.close()

    def published(self, offset: Offset) -> None:
        """The server keeps its binlog by its own rules."""

    def _position(self) -> dict[str, Any]:
        made = {} if self._made is None else {"made": list(self._made)}
        return {"file": self._file, "pos": self._pos, **made, **self._again.to_json()}

    # --- snapshot

    def _new_reader(self) -> SnapshotReader:
        """A moment that has seen everything that is out of the stream: a commit is in the binlog an instant before
        others see it, and longer than that with replicas that are waited for."""
        while True:
            reader = SnapshotReader(self._settings)
            if reader.until >= encoded(self._file, self._pos):
                return reader
            reader.close()
            self._catalogue.check_place(self._file, self._pos)
            time.sleep(0.05)

    def _shape_of_table(self, table: str) -> MysqlShape | None:
        shape = self._shapes.of_table(table)
        return shape if shape.names else None

    def _begin_rows(self, reader: SnapshotReader, shape: MysqlShape, after: Key | None) -> None:
        reader.begin(shape, after, self._settings["snapshot.fetch.size"])

    def _next_rows(self, reader: SnapshotReader, shape: MysqlShape) -> tuple[Records, Sequence[Any] | None] | None:
        rows = reader.rows()
        if not rows:
            return None
        return self._rows_as_records(shape, rows, reader.ts_ms), shape.key(rows[-1])

    def _rows_as_records(self, shape: MysqlShape, rows: Sequence[Any], ts_ms: int) -> Records:
        changes = Changes(shape.shape)
        source = self._source(shape.shape.table, ts_ms, "true", 0, 0)
        for row in rows:
            changes.add("r", shape.key(row), None, row, source)
        return changes.to_records()

    def _tables(self) -> list[str]:
        return self._catalogue.tables(self._wanted)

    def _reached(self) -> int:
        return max(self._passed, encoded(self._file, self._pos))

    def _read_again(self, reader: SnapshotReader, shape: MysqlShape, most: int) -> None:
        # The server would not wait with the binlog for as long as that takes.
        self._disconnect()
        has_key = bool(shape.shape.key)
        reader.begin(shape, self._again.after, most, most if has_key else None)
        chunk: list[Any] = []
        while rows := reader.rows():
            chunk += rows
        keys = [shape.comparable(shape.key(row)) for row in chunk] if has_key else None

        def made(rows: list[int] | None) -> Records:
            some = chunk if rows is None else [chunk[row] for row in rows]
            return self._rows_as_records(shape, some, reader.ts_ms) if some else no_records()

        self._again.waits(made, cast("list[Key] | None", keys), len(chunk) < most or not has_key, reader.until)

    def _source(self, table: str, ts_ms: int, snapshot: str, server_id: int, row: int) -> tuple[Any, ...]:
        database, _, name = table.partition(".")
        prefix = self._settings["topic.prefix"]
        place = (server_id, self._gtid, self._file, self._pos, row)
        return (VERSION, "mysql", prefix, ts_ms, snapshot, database, None, name, *place, None, None)

    # --- stream

    def _stream_pieces(self) -> list[Read]:
        deadline = time.monotonic() + self._settings["poll.interval.ms"] / 1000
        while True:
            if self._stream is not None or self._catalogue.position() != (self._file, self._pos):
                pieces = self._events()
                if pieces:
                    return pieces
            if self._transaction is None:
                if pieces := self._rows_again():
                    return pieces
                if (beat := self._idle()) is not None:
                    return beat
            left = deadline - time.monotonic()
            if left <= 0:
                return []
            time.sleep(min(left, 0.1))

    def _connect(self) -> None:
        self._end_of_binlog = encoded(*self._catalogue.position())
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
        self._at_file, self._at_made = self._file, self._made

    def _events(self) -> list[Read]:
        """Until there is enough, or the end of the binlog."""
        most = self._settings["max.batch.size"]
        with telling_failures("stream its changes"):
            while True:
                if self._stream is None:
                    self._connect()
                with refuse_place(self._file, self._pos):
                    event = self._stream.fetchone()
                if event is None:
                    break
                if pieces := self._handle(event):
                    return pieces
                if self._progress.is_full(most) and (pieces := self._cut()):
                    return pieces
                if self._transaction is None and (pieces := self._rows_again()):
                    return pieces
        if self._transaction is None:
            self._passed = self._end_of_binlog
        self._disconnect()
        return self._cut()

    def _handle(self, event: Any) -> list[Read] | None:
        if _is_prepared(event):
            return self._refuse_prepared()
        if isinstance(event, WriteRowsEvent | UpdateRowsEvent | DeleteRowsEvent):
            return self._rows(event)
        if isinstance(event, RotateEvent):
            if event.next_binlog != self._at_file:
                self._at_file, self._at_made = event.next_binlog, None
                if self._transaction is None:
                    self._file, self._pos, self._made = event.next_binlog, event.position, None
        elif isinstance(event, FormatDescriptionEvent):
            self._learn_file(made_of(event))
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

    def _learn_file(self, made: Made) -> None:
        """The server says it first of each file, and again of the one in which a stream begins."""
        if self._at_made is not None and self._at_made != made:
            raise refuse_other(self._at_file)
        self._at_made = made
        if self._file == self._at_file:
            self._made = made

    def _refuse_prepared(self) -> list[Read]:
        """What comes before it is published first: the next time it is the first that is read."""
        if pieces := self._cut():
            self._disconnect()
            return pieces
        raise ConnectorFailure(
            f"The binlog has an XA transaction at {self._file}:{self._pos}, whose rows are there before it is known "
            "whether they are committed, and these are not supported: write to these tables without XA PREPARE, then "
            "DELETE the connector's offsets while it is stopped, and it begins with a new snapshot."
        )

    def _start(self, event: Any) -> None:
        self._progress.begin(self._position())
        self._transaction, self._events_of_transaction = encoded(self._at_file, event.packet.log_pos), 0
        self._progress.covered.begin(self._transaction, self._transaction)

    def _end(self, event: Any) -> None:
        if self._transaction is not None:
            self._progress.passed(self._transaction)
        self._file, self._pos, self._made = self._at_file, event.packet.log_pos, self._at_made
        self._transaction = None

    def _rows(self, event: Any) -> list[Read]:
        if self._transaction is None:
            self._start(event)
        assert self._transaction is not None
        progress = self._progress
        self._events_of_transaction += 1
        first = self._events_of_transaction * _ROWS_OF_EVENT
        shape, pieces = self._shape_of(event)
        if shape is None:
            progress.place = (self._transaction, first)
            if f"{event.schema}.{event.table}" == self._settings["signal.data.collection"] and isinstance(
                event, WriteRowsEvent
            ):
                for row in event.rows:
                    self._signal(progress.place, *list(row["values"].values())[1:3])
            return pieces
        for number, row in enumerate(event.rows):
            place = progress.place = (self._transaction, first + number)
            if not progress.span.is_out(shape.shape.table, place):
                self._change(shape, event, number, row)
        return pieces

    def _shape_of(self, event: Any) -> tuple[MysqlShape | None, list[Read]]:
        table = f"{event.schema}.{event.table}"
        if not self._wanted.has(table):
            return None, []
        keep_bytes(event.columns)
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
            self._progress.knows(table)
        pieces = [] if self._progress.span.fits(known.shape) else self._cut()
        return known, pieces

    def _change(self, shape: MysqlShape, event: Any, number: int, row: Mapping[str, Any]) -> None:
        source = self._source(shape.shape.table, event.timestamp * 1000, "false", event.packet.server_id, number)
        old = new = None
        if isinstance(event, UpdateRowsEvent):
            old = shape.row(row["before_values"], row["before_none_sources"])
            op, new = "u", shape.row(row["after_values"], row["after_none_sources"])
        elif isinstance(event, WriteRowsEvent):
            op, new = "c", shape.row(row["values"], row["none_sources"])
        else:
            op, old = "d", shape.row(row["values"], row["none_sources"])
        if self._again.chunk is not None:
            keys = (shape.comparable(shape.key(row)) for row in (old, new) if row is not None)
            self._again.changed(shape.shape.table, keys)
        if op not in self._settings["skipped.operations"]:
            self._collect(shape, op, old, new, source, tells_old=True)


def _is_prepared(event: Any) -> bool:
    """MariaDB says so before the rows by a flag, MySQL by a statement."""
    if isinstance(event, MariadbGtidEvent):
        return bool(event.flags & _FL_PREPARED_XA)
    return isinstance(event, QueryEvent) and event.query.startswith("XA START")


def _is_seen(moment: str, transaction: int) -> bool:
    return transaction < int(moment)
