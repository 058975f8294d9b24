"""Rows of tables as they are at one moment, in the order of their keys.

All tables are read in one transaction, whose snapshot PostgreSQL names (`pg_current_snapshot`), so that the stream can
tell which of its transactions the rows already have. Rows come by COPY as CSV, which Arrow parses: the fastest way out
of PostgreSQL that leaves values in the same text form as the stream has them.
"""

from __future__ import annotations

import io
import queue
import threading
from collections.abc import Mapping
from typing import Any

import psycopg2
import pyarrow as pa
import pyarrow.csv as pacsv

from ottla.connect.databases.changes.covered import Key
from ottla.connect.databases.failures import CDC, told
from ottla.connect.databases.postgres.catalogue import connection_options, lsn_of_text, quote, quoted, telling_failures
from ottla.connect.databases.postgres.shapes import PostgresShape

_CHUNK_BYTES = 8 * 1024 * 1024
_CHUNKS_AHEAD = 2


class _Closed(Exception):
    """Whoever reads the rows has gone."""


class SnapshotReader:
    """One transaction. `moment` and `until` are what `changes.covered` asks for."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        with telling_failures("be read"):
            self._connection = psycopg2.connect(**connection_options(settings))
            self._connection.set_session(isolation_level="REPEATABLE READ", readonly=True)
            with self._connection.cursor() as cursor:
                # The snapshot first: the end of the WAL is then behind everything that it sees.
                cursor.execute("SELECT pg_current_snapshot()::text")
                self.moment: str = cursor.fetchone()[0]
                cursor.execute(
                    "SELECT pg_current_wal_insert_lsn()::text, (extract(epoch FROM clock_timestamp()) * 1000)::bigint"
                )
                position, self.ts_ms = cursor.fetchone()
                self.until = lsn_of_text(position)
        self._copy: _Copy | None = None

    def close(self) -> None:
        if self._copy is not None:
            self._copy.close(self._connection)
        self._connection.close()

    def begin(self, shape: PostgresShape, after: Key | None, rows_each: int, rows_most: int | None = None) -> None:
        self._shape = shape
        limit = "" if rows_most is None else f" LIMIT {rows_most}"
        self._copy = _Copy(self._connection, _question(shape, after) + limit, rows_each)

    def columns(self) -> list[Any] | None:
        """The next rows of the table, as columns of text; None at its end."""
        assert self._copy is not None
        data = self._copy.next()
        if data is None:
            self._copy = None
            return None
        names = [str(n) for n in range(len(self._shape.shape.columns))]
        table = pacsv.read_csv(
            io.BytesIO(data),
            read_options=pacsv.ReadOptions(column_names=names, use_threads=False, block_size=len(data) + 1),
            parse_options=pacsv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
            convert_options=pacsv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
        return [column.combine_chunks() for column in table.columns]


def _question(shape: PostgresShape, after: Key | None) -> str:
    columns = ", ".join(quote(column.name) for column in shape.shape.columns)
    text = f"SELECT {columns} FROM {quoted(shape.shape.table)}"
    names = [quote(shape.shape.columns[i].name) for i in shape.shape.key]
    order = [
        name if integer else f"format('%s', {name}) COLLATE \"C\""
        for name, integer in zip(names, shape.integer_keys, strict=True)
    ]
    if not order:
        return text
    if after is not None:
        values = ", ".join(str(value) if isinstance(value, int) else _literal(value) for value in after)
        text += f" WHERE ({', '.join(order)}) > ({values})"
    return f"{text} ORDER BY {', '.join(order)}"


def _literal(text: str) -> str:
    # An E-string means the same under every setting of standard_conforming_strings.
    return "E'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


class _Copy:
    """psycopg2 pushes the rows of a COPY; here they are pulled: a thread runs it, a few chunks ahead."""

    def __init__(self, connection: Any, question: str, rows_each: int) -> None:
        self._chunks: queue.Queue[bytes | BaseException | None] = queue.Queue(_CHUNKS_AHEAD)
        self._rows: list[bytes] = []
        self._bytes = 0
        self._rows_each = rows_each
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, args=(connection, question), daemon=True)
        self._thread.start()

    def next(self) -> bytes | None:
        chunk = self._chunks.get()
        if isinstance(chunk, BaseException):
            raise told(chunk, CDC, "be read") from chunk
        return chunk

    def close(self, connection: Any) -> None:
        self._is_closed = True
        try:
            connection.cancel()
        except psycopg2.Error:
            connection.close()
        while self._thread.is_alive():
            try:
                self._chunks.get(timeout=0.05)
            except queue.Empty:
                continue

    def write(self, row: bytes) -> None:
        """Called by psycopg2, once for each row."""
        self._rows.append(row)
        self._bytes += len(row)
        if len(self._rows) >= self._rows_each or self._bytes >= _CHUNK_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._is_closed:
            raise _Closed
        self._chunks.put(b"".join(self._rows))
        self._rows, self._bytes = [], 0

    def _run(self, connection: Any, question: str) -> None:
        end: BaseException | None = None
        try:
            with connection.cursor() as cursor:
                cursor.copy_expert(f"COPY ({question}) TO STDOUT (FORMAT csv)", self)
            if self._rows:
                self._flush()
        except _Closed:
            return
        except BaseException as error:  # a thread has nobody above it: the reader raises it
            end = error
        if not self._is_closed:
            self._chunks.put(end)
