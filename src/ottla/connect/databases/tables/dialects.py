"""How each database takes many rows at once, and what it calls its types.

| database | rows | upsert |
|---|---|---|
| PostgreSQL | COPY, for upserts into a temporary table first | INSERT ... SELECT, ON CONFLICT if keys are there |
| MySQL, MariaDB | statements of many rows | ON DUPLICATE KEY UPDATE |
| SQLite | one prepared statement, many times | ON CONFLICT |
| DuckDB | INSERT ... SELECT from the Arrow table itself | ON CONFLICT |
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.csv as pacsv
from psycopg2.errors import UniqueViolation

from ottla.connect.api.data import Schema
from ottla.connect.api.plugins import ConnectorFailure
from ottla.connect.databases.tables.sink_rows import RowColumn, Rows
from ottla.connect.databases.tables.sql_values import (
    kind_of,
    mysql_values,
    plain,
    postgres_text,
    precision_and_scale,
    python_values,
    sqlite_values,
)

# The rows, as DuckDB sees them.
_ARROW = "ottla_rows"


class Dialect:
    mark = "%s"
    types: ClassVar[Mapping[str, str]]
    decimal_any = "NUMERIC"
    # Text that can be part of a key.
    key_text = "VARCHAR(255)"
    # Behind the type of a text of which every letter counts.
    exact = ""
    # While a connection is open no other process gets one.
    is_exclusive = False

    def quote(self, name: str) -> str:
        """Of a column, which may have dots in its name: fields that Flatten has made do."""
        return '"' + name.replace('"', '""') + '"'

    def escaped(self, name: str) -> str:
        """The same in a statement that has marks for values."""
        return self.quote(name)

    def quoted_table(self, name: str) -> str:
        return ".".join(map(self.quote, name.split(".")))

    def type_of(self, schema: Schema, is_key: bool) -> str:
        kind = kind_of(schema)
        if kind == "decimal":
            digits = precision_and_scale(schema)
            return f"NUMERIC({digits[0]},{digits[1]})" if digits else self.decimal_any
        if kind == "string" and is_key:
            return self.key_text
        return self.types[kind]

    def values(self, column: RowColumn) -> list[Any]:
        """As the driver takes them."""
        return python_values(column)

    def names(self, columns: Sequence[str]) -> str:
        return ", ".join(map(self.quote, columns))

    # --- writing; each with a cursor of the driver

    def insert(self, cursor: Any, table: str, rows: Rows) -> None:
        self._many(cursor, self._insert(table, rows), rows)

    def upsert(self, cursor: Any, table: str, rows: Rows) -> None:
        self._many(cursor, f"{self._insert(table, rows)} {self.on_conflict(rows)}", rows)

    def update(self, cursor: Any, table: str, rows: Rows) -> None:
        free = [column for column in rows.columns if not column.is_key]
        keys = [column for column in rows.columns if column.is_key]
        setting = ", ".join(f"{self.escaped(column.name)} = {self.mark}" for column in free)
        where = " AND ".join(f"{self.escaped(column.name)} = {self.mark}" for column in keys)
        values = [self.values(column) for column in (*free, *keys)]
        cursor.executemany(
            f"UPDATE {self.quoted_table(table)} SET {setting} WHERE {where}", list(zip(*values, strict=True))
        )

    def delete(self, cursor: Any, table: str, rows: Rows) -> None:
        where = " AND ".join(f"{self.escaped(column.name)} = {self.mark}" for column in rows.columns)
        self._many(cursor, f"DELETE FROM {self.quoted_table(table)} WHERE {where}", rows)

    def on_conflict(self, rows: Rows) -> str:
        free = [column.name for column in rows.columns if not column.is_key]
        if not free:
            return f"ON CONFLICT ({self.names(rows.key)}) DO NOTHING"
        setting = ", ".join(f"{self.quote(name)} = excluded.{self.quote(name)}" for name in free)
        return f"ON CONFLICT ({self.names(rows.key)}) DO UPDATE SET {setting}"

    def _insert(self, table: str, rows: Rows) -> str:
        names = ", ".join(self.escaped(column.name) for column in rows.columns)
        return f"INSERT INTO {self.quoted_table(table)} ({names}) VALUES ({', '.join([self.mark] * len(rows.columns))})"

    def _same(self, rows: Rows) -> str:
        """Of a table t and other rows s."""
        return " AND ".join(f"t.{self.quote(name)} = s.{self.quote(name)}" for name in rows.key)

    def _many(self, cursor: Any, statement: str, rows: Rows) -> None:
        cursor.executemany(statement, list(zip(*map(self.values, rows.columns), strict=True)))


class Postgres(Dialect):
    key_text = "TEXT"
    types: ClassVar[Mapping[str, str]] = {
        "int8": "SMALLINT",
        "int16": "SMALLINT",
        "int32": "INTEGER",
        "int64": "BIGINT",
        "float": "REAL",
        "double": "DOUBLE PRECISION",
        "boolean": "BOOLEAN",
        "string": "TEXT",
        "bytes": "BYTEA",
        "date": "DATE",
        "time": "TIME",
        "timestamp": "TIMESTAMP",
        "zoned": "TIMESTAMPTZ",
        "uuid": "UUID",
        "json": "JSONB",
    }

    def insert(self, cursor: Any, table: str, rows: Rows) -> None:
        self._copy(cursor, self.quoted_table(table), rows)

    def upsert(self, cursor: Any, table: str, rows: Rows) -> None:
        names, staged = self.names([column.name for column in rows.columns]), self._staged(cursor, table, rows)
        insert = f"INSERT INTO {self.quoted_table(table)} ({names}) SELECT {names} FROM {staged}"
        if self._are_new(cursor, table, staged, rows):
            cursor.execute("SAVEPOINT ottla_new")
            try:
                cursor.execute(insert)
                return
            except UniqueViolation:
                # Somebody else has inserted one of them in between.
                cursor.execute("ROLLBACK TO SAVEPOINT ottla_new")
        cursor.execute(f"{insert} {self.on_conflict(rows)}")

    def _are_new(self, cursor: Any, table: str, staged: str, rows: Rows) -> bool:
        """Whether the table has none of the rows: with this question an insert still costs the server a quarter less
        than ON CONFLICT (0.30 s and 0.41 s of CPU for 100,000 rows). Where rows are there, the first one ends it."""
        cursor.execute(
            f"SELECT EXISTS (SELECT FROM {staged} s JOIN {self.quoted_table(table)} t ON {self._same(rows)})"
        )
        return not cursor.fetchone()[0]

    def update(self, cursor: Any, table: str, rows: Rows) -> None:
        staged = self._staged(cursor, table, rows)
        free = [self.quote(column.name) for column in rows.columns if not column.is_key]
        setting = ", ".join(f"{name} = s.{name}" for name in free)
        cursor.execute(f"UPDATE {self.quoted_table(table)} t SET {setting} FROM {staged} s WHERE {self._same(rows)}")

    def delete(self, cursor: Any, table: str, rows: Rows) -> None:
        staged = self._staged(cursor, table, rows)
        cursor.execute(f"DELETE FROM {self.quoted_table(table)} t USING {staged} s WHERE {self._same(rows)}")

    def _staged(self, cursor: Any, table: str, rows: Rows) -> str:
        """A temporary table of the same types: COPY parses what it gets by them."""
        names = self.names([column.name for column in rows.columns])
        cursor.execute("DROP TABLE IF EXISTS pg_temp.ottla_staged")
        cursor.execute(
            f"CREATE TEMPORARY TABLE ottla_staged ON COMMIT DROP AS SELECT {names} FROM {self.quoted_table(table)} "
            "WITH NO DATA"
        )
        self._copy(cursor, "pg_temp.ottla_staged", rows)
        return "pg_temp.ottla_staged"

    def _copy(self, cursor: Any, target: str, rows: Rows) -> None:
        table = pa.table([postgres_text(column) for column in rows.columns], [str(n) for n in range(len(rows.columns))])
        buffer = io.BytesIO()
        pacsv.write_csv(table, buffer, pacsv.WriteOptions(include_header=False))
        buffer.seek(0)
        names = self.names([column.name for column in rows.columns])
        cursor.copy_expert(f"COPY {target} ({names}) FROM STDIN (FORMAT csv)", buffer)


class Mysql(Dialect):
    types: ClassVar[Mapping[str, str]] = {
        "int8": "TINYINT",
        "int16": "SMALLINT",
        "int32": "INT",
        "int64": "BIGINT",
        "float": "FLOAT",
        "double": "DOUBLE",
        "boolean": "TINYINT(1)",
        "string": "LONGTEXT",
        "bytes": "LONGBLOB",
        "date": "DATE",
        "time": "TIME(6)",
        "timestamp": "DATETIME(6)",
        "zoned": "VARCHAR(40)",
        "uuid": "CHAR(36)",
        "json": "LONGTEXT",
    }
    decimal_any = "DECIMAL(65,30)"
    exact = " CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
    # Every letter and every space at the end counts. Each server reads its own of the two comments, which name its
    # collation (MariaDB 10.2, MySQL 8.0.17): by default 'a', 'A' and 'a ' would be one row.
    key_text = "VARCHAR(255) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */"

    def quote(self, name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    def escaped(self, name: str) -> str:
        return self.quote(name).replace("%", "%%")

    def values(self, column: RowColumn) -> list[Any]:
        return mysql_values(column)

    def on_conflict(self, rows: Rows) -> str:
        free = [column.name for column in rows.columns if not column.is_key] or list(rows.key)
        return "ON DUPLICATE KEY UPDATE " + ", ".join(
            f"{self.escaped(name)} = VALUES({self.escaped(name)})" for name in free
        )

    def delete(self, cursor: Any, table: str, rows: Rows) -> None:
        keys = list(zip(*map(self.values, rows.columns), strict=True))
        names = ", ".join(map(self.escaped, rows.key))
        for begin in range(0, len(keys), 1000):
            some = keys[begin : begin + 1000]
            marks = ", ".join(["(" + ", ".join([self.mark] * len(rows.key)) + ")"] * len(some))
            values = [value for key in some for value in key]
            cursor.execute(f"DELETE FROM {self.quoted_table(table)} WHERE ({names}) IN ({marks})", values)


class Sqlite(Dialect):
    mark = "?"
    key_text = "TEXT"
    types: ClassVar[Mapping[str, str]] = {
        "int8": "INTEGER",
        "int16": "INTEGER",
        "int32": "INTEGER",
        "int64": "BIGINT",
        "float": "REAL",
        "double": "REAL",
        "boolean": "BOOLEAN",
        "string": "TEXT",
        "bytes": "BLOB",
        "date": "DATE",
        "time": "TIME",
        "timestamp": "TIMESTAMP",
        "zoned": "TEXT",
        "uuid": "TEXT",
        "json": "TEXT",
    }

    def values(self, column: RowColumn) -> list[Any]:
        return sqlite_values(column)


class DuckDb(Dialect):
    mark = "?"
    key_text = "VARCHAR"
    # A decimal has as many digits behind the point as its column says: only text keeps all of any.
    decimal_any = "VARCHAR"
    is_exclusive = True
    types: ClassVar[Mapping[str, str]] = {
        **Postgres.types,
        "int8": "TINYINT",
        "float": "FLOAT",
        "double": "DOUBLE",
        "string": "VARCHAR",
        "bytes": "BLOB",
        "json": "VARCHAR",
    }

    def type_of(self, schema: Schema, is_key: bool) -> str:
        digits = precision_and_scale(schema)
        return self.decimal_any if digits and digits[0] > 38 else super().type_of(schema, is_key)

    def insert(self, cursor: Any, table: str, rows: Rows) -> None:
        self._from(cursor, self._insert(table, rows), rows)

    def upsert(self, cursor: Any, table: str, rows: Rows) -> None:
        self._from(cursor, f"{self._insert(table, rows)} {self.on_conflict(rows)}", rows)

    def update(self, cursor: Any, table: str, rows: Rows) -> None:
        free = [self.quote(column.name) for column in rows.columns if not column.is_key]
        setting = ", ".join(f"{name} = s.{name}" for name in free)
        self._from(
            cursor, f"UPDATE {self.quoted_table(table)} t SET {setting} FROM {_ARROW} s WHERE {self._same(rows)}", rows
        )

    def delete(self, cursor: Any, table: str, rows: Rows) -> None:
        self._from(cursor, f"DELETE FROM {self.quoted_table(table)} t USING {_ARROW} s WHERE {self._same(rows)}", rows)

    def _insert(self, table: str, rows: Rows) -> str:
        names = self.names([column.name for column in rows.columns])
        return f"INSERT INTO {self.quoted_table(table)} ({names}) SELECT {names} FROM {_ARROW}"

    def _from(self, cursor: Any, statement: str, rows: Rows) -> None:
        arrays = [_duckdb(plain(column)) for column in rows.columns]
        cursor.register(_ARROW, pa.table(arrays, names=[column.name for column in rows.columns]))
        cursor.execute(statement)
        # After a failure the connection is not used any more.
        cursor.unregister(_ARROW)


def _duckdb(data: Any) -> Any:
    return data.cast(pa.string()) if pa.types.is_decimal256(data.type) else data


def dialect(backend: str) -> Dialect:
    known = {"postgresql": Postgres, "mysql": Mysql, "mariadb": Mysql, "sqlite": Sqlite, "duckdb": DuckDb}
    if backend not in known:
        raise ConnectorFailure(
            f"Rows cannot be written to {backend} (connection.url): postgresql, mysql, mariadb, sqlite and duckdb only."
        )
    return known[backend]()
