"""What MySQL or MariaDB knows of its tables, and positions in its binlog.

A position is a number that grows: that of the binlog's file, and the place in it."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pymysql
import pymysql.cursors

from ottla.connect.api.plugins import ConnectorFailure, Outage
from ottla.connect.databases.changes.settings import TableFilter
from ottla.connect.databases.failures import CDC, telling
from ottla.connect.databases.mysql.types import MysqlType

_LOG = logging.getLogger("ottla.connect.mysql")
CONNECT_SECONDS = 15
_LOST = (2006, 2013)
_NEEDED = {
    "log_bin": ("ON", "1"),
    "binlog_format": ("ROW",),
    "binlog_row_image": ("FULL",),
    "binlog_row_metadata": ("FULL",),
}
# Else a crash of the server takes changes from its tables that its binlog, and so the topics, have.
_SAFE = {"sync_binlog": "1", "innodb_flush_log_at_trx_commit": "1"}
# What to do where nobody can know what is missing.
ANEW = "DELETE the connector's offsets while it is stopped, and it begins with a new snapshot."
_SYSTEM = ("mysql", "information_schema", "performance_schema", "sys")


class BinlogConnection(pymysql.connections.Connection):  # type: ignore[misc]
    """mysql-replication connects again by itself when a connection is lost, in the middle of a transaction, where it
    may no longer know the tables. We begin again at a place that we know."""

    def _read_packet(self, *args: Any, **more: Any) -> Any:
        try:
            return super()._read_packet(*args, **more)
        except pymysql.OperationalError as error:
            if error.args and error.args[0] in _LOST:
                raise Outage(f"The database has closed the connection ({error.args[1]}).") from error
            raise


def connection_options(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "host": settings["database.hostname"],
        "port": settings["database.port"],
        "user": settings["database.user"],
        "password": settings["database.password"],
        "connect_timeout": CONNECT_SECONDS,
        "charset": "utf8mb4",
    }


@contextmanager
def telling_failures(doing: str) -> Iterator[None]:
    with telling(CDC, doing, pymysql.Error, OSError):
        yield


def encoded(file: str, position: int) -> int:
    return (int(file.rpartition(".")[2]) << 40) + position


def quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def quoted(table: str) -> str:
    return ".".join(map(quote, table.split(".", 1)))


class Catalogue:
    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = settings
        self._connection: Any = None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def ask(self, question: str, *values: Any) -> list[tuple[Any, ...]]:
        with telling_failures("be looked at"):
            if self._connection is None:
                self._connection = pymysql.connect(**connection_options(self._settings), autocommit=True)
            with self._connection.cursor() as cursor:
                cursor.execute(question, values)
                return list(cursor.fetchall())

    def check(self) -> None:
        found: dict[str, Any] = dict(self.ask("SHOW GLOBAL VARIABLES"))
        for name, wanted in _NEEDED.items():
            value = found.get(name, "not there")
            if str(value).upper() not in wanted:
                raise ConnectorFailure(
                    f"The server's {name} is {value}, and must be {wanted[0]}: set it in its configuration."
                )
        for name, wanted_value in _SAFE.items():
            if found.get(name, wanted_value) != wanted_value:
                _LOG.warning(
                    "the server's %s is %s: if it crashes, its tables may lack changes that topics have; set it to %s",
                    name,
                    found[name],
                    wanted_value,
                )

    def position(self) -> tuple[str, int]:
        try:
            rows = self.ask("SHOW MASTER STATUS")
        except ConnectorFailure:
            rows = self.ask("SHOW BINARY LOG STATUS")
        return rows[0][0], rows[0][1]

    def check_place(self, file: str, position: int) -> None:
        """Raises ConnectorFailure where the binlog has no such place."""
        sizes = {str(row[0]): int(row[1]) for row in self.ask("SHOW BINARY LOGS")}
        if file not in sizes:
            raise ConnectorFailure(
                f"The server's binlog has no file {file}: it was removed (see expire_logs_days), or the server is "
                f"another one than before, so changes may be missing. {ANEW}"
            )
        if position > sizes[file]:
            raise ConnectorFailure(
                f"The server's binlog ends in {file} at {sizes[file]}, and was read to {position} before: the server "
                f"is another one than before, or RESET MASTER began its binlog anew. {ANEW}"
            )

    def tables(self, wanted: TableFilter) -> list[str]:
        rows = self.ask(
            "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE'"
        )
        found = sorted(
            f"{schema}.{name}" for schema, name in rows if schema not in _SYSTEM and wanted.has(f"{schema}.{name}")
        )
        if not found:
            raise ConnectorFailure(
                "There is no table that database.include.list, table.include.list and table.exclude.list leave."
            )
        return found

    def columns(self, table: str) -> list[tuple[str, MysqlType, bool]]:
        """Name, type, whether it must not be null."""
        rows = self.ask(
            "SELECT column_name, data_type, column_type, COALESCE(numeric_precision, 0), COALESCE(numeric_scale, 0), "
            "COALESCE(datetime_precision, 0), COALESCE(character_octet_length, 0), COALESCE(character_set_name, ''), "
            "is_nullable FROM information_schema.columns WHERE table_schema = %s AND table_name = %s "
            "ORDER BY ordinal_position",
            *table.split(".", 1),
        )
        return [
            (
                name,
                MysqlType(
                    kind,
                    "unsigned" in whole,
                    int(precision),
                    int(scale),
                    int(fraction),
                    _values(whole),
                    int(length),
                    charset,
                ),
                nullable == "NO",
            )
            for name, kind, whole, precision, scale, fraction, length, charset, nullable in rows
        ]

    def key(self, table: str) -> list[str]:
        rows = self.ask(
            "SELECT column_name FROM information_schema.key_column_usage WHERE table_schema = %s AND table_name = %s "
            "AND constraint_name = 'PRIMARY' ORDER BY ordinal_position",
            *table.split(".", 1),
        )
        return [row[0] for row in rows]


def _values(column_type: str) -> tuple[str, ...]:
    if not column_type.startswith(("enum(", "set(")):
        return ()
    return tuple(part.replace("''", "'") for part in re.findall(r"'((?:[^']|'')*)'", column_type))
