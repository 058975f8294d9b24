"""Rows of tables as they are at one position of the binlog, in the order of their keys.

MariaDB tells the position of a consistent snapshot by itself. MySQL does not: there all tables are locked for the
instant in which the snapshot is taken, which needs the right RELOAD.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pymysql
import pymysql.cursors

from ottla.connect.databases.changes.covered import Key
from ottla.connect.databases.mysql.catalogue import connection_options, encoded, quote, quoted, telling_failures
from ottla.connect.databases.mysql.shapes import MysqlShape


class SnapshotReader:
    def __init__(self, settings: Mapping[str, Any]) -> None:
        with telling_failures("be read"):
            self._connection = pymysql.connect(
                **connection_options(settings), autocommit=True, cursorclass=pymysql.cursors.SSCursor
            )
            self._ask("SET time_zone = '+00:00'")
            self._ask("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            self.file, self.position = self._begin()
        self.until = encoded(self.file, self.position)
        self.moment = str(self.until)
        self.ts_ms = int(time.time() * 1000)
        self._cursor: Any = None

    def _ask(self, question: str) -> list[Any]:
        with self._connection.cursor() as cursor:
            cursor.execute(question)
            return list(cursor.fetchall())

    def _begin(self) -> tuple[str, int]:
        is_mariadb = "mariadb" in self._ask("SELECT VERSION()")[0][0].lower()
        if is_mariadb:
            self._ask("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
            status = dict(self._ask("SHOW STATUS LIKE 'binlog_snapshot_%'"))
            return status["Binlog_snapshot_file"], int(status["Binlog_snapshot_position"])
        self._ask("FLUSH TABLES WITH READ LOCK")
        try:
            self._ask("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
            try:
                row = self._ask("SHOW MASTER STATUS")[0]
            except pymysql.ProgrammingError:
                row = self._ask("SHOW BINARY LOG STATUS")[0]
        finally:
            self._ask("UNLOCK TABLES")
        return row[0], row[1]

    def begin(self, shape: MysqlShape, after: Key | None, rows_each: int, rows_most: int | None = None) -> None:
        names = ", ".join(map(quote, shape.names))
        question, order = f"SELECT {names} FROM {quoted(shape.shape.table)}", shape.order
        values: tuple[Any, ...] = ()
        if order and after is not None:
            question += f" WHERE ({', '.join(order)}) > ({', '.join(['%s'] * len(order))})"
            values = tuple(value if isinstance(value, int) else value.encode() for value in after)
        if order:
            question += f" ORDER BY {', '.join(order)}"
        if rows_most is not None:
            question += f" LIMIT {rows_most}"
        self._rows_each = rows_each
        with telling_failures("be read"):
            self._cursor = self._connection.cursor()
            self._cursor.execute(question, values or None)

    def rows(self) -> list[tuple[Any, ...]]:
        """The next rows of the table; none at its end."""
        with telling_failures("be read"):
            found = list(self._cursor.fetchmany(self._rows_each))
            if not found:
                self._cursor.close()
            return found

    def close(self) -> None:
        # Rows that nobody reads would be waited for otherwise, here or when the cursor is collected.
        if self._cursor is not None:
            result, self._cursor.connection = self._cursor._result, None
            if result is not None:
                result.unbuffered_active, result.connection = False, None
        self._connection._force_close()
