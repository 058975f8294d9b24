"""DuckDB for SQLAlchemy: as much of a dialect as `JdbcSource` and `JdbcSink` ask for.

The dialect that others have written does not work with SQLAlchemy 2.1. Two things are unlike other databases:

- A cursor of DuckDB's own is a connection with a transaction of its own. So the cursors here all stand for their
  connection, and one that reads has to be done before another begins.
- A file belongs to one process, or to many that only read it. Whoever comes second waits here for a while.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL, default
from sqlalchemy.engine.interfaces import (
    ReflectedColumn,
    ReflectedIndex,
    ReflectedPrimaryKeyConstraint,
    ReflectedUniqueConstraint,
)
from sqlalchemy.sql import compiler

_WAIT_S = 60
_PAUSE_S = 0.02
_TYPES: dict[str, Any] = {
    "BOOLEAN": sa.Boolean(),
    "TINYINT": sa.SmallInteger(),
    "UTINYINT": sa.SmallInteger(),
    "SMALLINT": sa.SmallInteger(),
    "USMALLINT": sa.Integer(),
    "INTEGER": sa.Integer(),
    "UINTEGER": sa.BigInteger(),
    "BIGINT": sa.BigInteger(),
    "UBIGINT": sa.Numeric(20, 0),
    # More digits than a decimal of DuckDB's has.
    "HUGEINT": sa.Numeric(39, 0),
    "UHUGEINT": sa.Numeric(39, 0),
    "FLOAT": sa.REAL(),
    "DOUBLE": sa.Double(),
    "BLOB": sa.LargeBinary(),
    "DATE": sa.Date(),
    "TIME": sa.Time(),
    "TIMESTAMP": sa.DateTime(),
    "TIMESTAMP_S": sa.DateTime(),
    "TIMESTAMP_MS": sa.DateTime(),
    "TIMESTAMP_NS": sa.DateTime(),
    "TIMESTAMP WITH TIME ZONE": sa.DateTime(timezone=True),
}
_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")
_COLUMNS = (
    "SELECT column_name, data_type, is_nullable FROM information_schema.columns "
    "WHERE table_schema = ? AND table_name = ? AND table_catalog = current_database() ORDER BY ordinal_position"
)
_CONSTRAINTS = (
    "SELECT constraint_type, constraint_column_names, constraint_name FROM duckdb_constraints() "
    "WHERE schema_name = ? AND table_name = ? AND database_name = current_database()"
)
_INDEXES = (
    "SELECT index_name, expressions FROM duckdb_indexes() "
    "WHERE schema_name = ? AND table_name = ? AND database_name = current_database() AND is_unique"
)
_TABLES = (
    "SELECT table_name FROM information_schema.tables WHERE table_schema = ? AND table_type = 'BASE TABLE' "
    "AND table_catalog = current_database() ORDER BY table_name"
)


class Cursor:
    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.arraysize = 1

    def execute(self, statement: str, parameters: Sequence[Any] | None = None) -> None:
        self._connection.execute(statement, list(parameters) if parameters else None)

    def executemany(self, statement: str, parameters: Sequence[Sequence[Any]]) -> None:
        self._connection.executemany(statement, [list(each) for each in parameters])

    def register(self, name: str, table: Any) -> None:
        """An Arrow table as a view of this connection."""
        self._connection.register(name, table)

    def unregister(self, name: str) -> None:
        self._connection.unregister(name)

    @property
    def description(self) -> Any:
        return self._connection.description

    @property
    def rowcount(self) -> int:
        return int(self._connection.rowcount)

    def fetchone(self) -> Any:
        return self._connection.fetchone()

    def fetchmany(self, size: int | None = None) -> list[Any]:
        found: list[Any] = self._connection.fetchmany(size or self.arraysize)
        return found

    def fetchall(self) -> list[Any]:
        found: list[Any] = self._connection.fetchall()
        return found

    def close(self) -> None:
        """The connection goes on."""


class Connection:
    """Transactions begin with the first statement, as the DBAPI has it."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._connection.execute("SET TimeZone = 'UTC'")
        self._connection.begin()

    def cursor(self) -> Cursor:
        return Cursor(self._connection)

    def commit(self) -> None:
        self._connection.commit()
        self._connection.begin()

    def rollback(self) -> None:
        self._connection.rollback()
        self._connection.begin()

    def close(self) -> None:
        self._connection.close()


class _Compiler(compiler.SQLCompiler):
    def limit_clause(self, select: Any, **more: Any) -> str:
        text = "" if select._limit_clause is None else f"\n LIMIT {self.process(select._limit_clause, **more)}"
        if select._offset_clause is not None:
            text += f"\n OFFSET {self.process(select._offset_clause, **more)}"
        return text


class _Preparer(compiler.IdentifierPreparer):
    def _requires_quotes(self, value: str) -> bool:
        """Always: its words are not those of the standard."""
        return True


class DuckDialect(default.DefaultDialect):
    name = "duckdb"
    driver = "ottla"
    default_paramstyle = "qmark"
    supports_statement_cache = True
    supports_native_boolean = True
    supports_native_decimal = True
    statement_compiler = _Compiler
    preparer = _Preparer

    @classmethod
    def import_dbapi(cls) -> Any:
        import duckdb  # an extra

        return duckdb

    def create_connect_args(self, url: URL) -> Any:
        return [url.database], {}

    def connect(self, *arguments: Any, **settings: Any) -> Any:
        deadline = time.monotonic() + _WAIT_S
        while True:
            try:
                return Connection(self.loaded_dbapi.connect(*arguments, **settings))
            except self.loaded_dbapi.Error as error:
                # Of another process, or of this one: who reads only and who writes cannot share it.
                is_taken = "Could not set lock" in str(error) or "different configuration" in str(error)
                if not is_taken or time.monotonic() > deadline:
                    raise
            time.sleep(_PAUSE_S)

    def _get_default_schema_name(self, connection: Any) -> str:
        return "main"

    def get_schema_names(self, connection: Any, **more: Any) -> list[str]:
        return [name for (name,) in connection.exec_driver_sql("SELECT schema_name FROM information_schema.schemata")]

    def get_table_names(self, connection: Any, schema: str | None = None, **more: Any) -> list[str]:
        return [name for (name,) in connection.exec_driver_sql(_TABLES, (schema or "main",))]

    def get_view_names(self, connection: Any, schema: str | None = None, **more: Any) -> list[str]:
        return []

    def has_table(self, connection: Any, table_name: str, schema: str | None = None, **more: Any) -> bool:
        return bool(connection.exec_driver_sql(_COLUMNS, (schema or "main", table_name)).fetchall())

    def get_columns(
        self, connection: Any, table_name: str, schema: str | None = None, **more: Any
    ) -> list[ReflectedColumn]:
        found = connection.exec_driver_sql(_COLUMNS, (schema or "main", table_name)).fetchall()
        if not found:
            raise sa.exc.NoSuchTableError(table_name)
        return [
            {"name": name, "type": _type(kind), "nullable": nullable == "YES", "default": None}
            for name, kind, nullable in found
        ]

    def get_pk_constraint(
        self, connection: Any, table_name: str, schema: str | None = None, **more: Any
    ) -> ReflectedPrimaryKeyConstraint:
        for kind, columns, name in self._constraints(connection, table_name, schema):
            if kind == "PRIMARY KEY":
                return {"constrained_columns": list(columns), "name": name}
        return {"constrained_columns": [], "name": None}

    def get_unique_constraints(
        self, connection: Any, table_name: str, schema: str | None = None, **more: Any
    ) -> list[ReflectedUniqueConstraint]:
        found = self._constraints(connection, table_name, schema)
        return [{"column_names": list(columns), "name": name} for kind, columns, name in found if kind == "UNIQUE"]

    def get_indexes(
        self, connection: Any, table_name: str, schema: str | None = None, **more: Any
    ) -> list[ReflectedIndex]:
        found = connection.exec_driver_sql(_INDEXES, (schema or "main", table_name)).fetchall()
        return [
            {"name": name, "column_names": _names(expressions), "unique": True, "dialect_options": {}}
            for name, expressions in found
        ]

    def get_foreign_keys(self, *arguments: Any, **more: Any) -> Any:
        return []

    def get_check_constraints(self, *arguments: Any, **more: Any) -> Any:
        return []

    def get_table_comment(self, *arguments: Any, **more: Any) -> Any:
        return {"text": None}

    def _constraints(self, connection: Any, table_name: str, schema: str | None) -> list[Any]:
        found: list[Any] = connection.exec_driver_sql(_CONSTRAINTS, (schema or "main", table_name)).fetchall()
        return found


def _type(kind: str) -> Any:
    if (decimal := _DECIMAL.fullmatch(kind)) is not None:
        return sa.Numeric(int(decimal.group(1)), int(decimal.group(2)))
    return _TYPES.get(kind, sa.String())


def _names(expressions: str) -> list[str | None]:
    """Of an index, as in `[id, '"at"']`."""
    return [each.strip().strip("'").strip('"') for each in expressions.strip("[]").split(",")]
