"""The table that a sink writes to: is it there, has it the columns and the key; made and widened where that is asked
for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import sqlalchemy as sa

from ottla.connect.api.plugins import ConnectorFailure
from ottla.connect.databases.failures import is_there_already
from ottla.connect.databases.tables.dialects import Dialect
from ottla.connect.databases.tables.sink_rows import Rows

T = TypeVar("T")
# Each time another task was faster with one of the columns.
_RACES_MOST = 20


def done_by_one(make: Callable[[], T]) -> T:
    """Tables and columns that several tasks may want to make at the same moment: who comes late looks again."""
    for _ in range(_RACES_MOST):
        try:
            return make()
        except sa.exc.DBAPIError as error:
            if not is_there_already(error):
                raise
    return make()


def _change(connection: sa.Connection, statement: str) -> None:
    """A % in a name is no mark of a value."""
    connection.exec_driver_sql(statement, execution_options={"no_parameters": True})


@dataclass(frozen=True)
class Known:
    columns: frozenset[str]
    keys: tuple[frozenset[str], ...]


class SinkTable:
    def __init__(self, name: str, settings: Mapping[str, Any], dialect: Dialect) -> None:
        self.name = name
        self._settings = settings
        self._dialect = dialect
        self._known: Known | None = None

    def forget(self) -> None:
        self._known = None

    def look(self, connection: sa.Connection) -> Known | None:
        schema, _, name = self.name.rpartition(".")
        inspector = sa.inspect(connection)
        if not inspector.has_table(name, schema or None):
            return None
        columns = frozenset(column["name"] for column in inspector.get_columns(name, schema or None))
        keys = [frozenset(inspector.get_pk_constraint(name, schema or None)["constrained_columns"])]
        keys += [frozenset(each["column_names"]) for each in inspector.get_unique_constraints(name, schema or None)]
        keys += [
            frozenset(column for column in each["column_names"] if column)
            for each in inspector.get_indexes(name, schema or None)
            if each["unique"]
        ]
        return Known(columns, tuple(key for key in keys if key))

    def prepare(self, engine: sa.Engine, rows: Rows) -> None:
        """Before the transaction of the rows: some databases commit when a table is made."""
        names = {column.name for column in rows.columns}
        if self._known is not None and names <= self._known.columns:
            return
        self._known = done_by_one(lambda: self._made(engine, rows, names))
        self.check_key(self._known, set(rows.key))

    def _made(self, engine: sa.Engine, rows: Rows, names: set[str]) -> Known:
        with engine.begin() as connection:
            known = self.look(connection)
            if known is None:
                self._create(connection, rows)
            elif missing := names - known.columns:
                self._evolve(connection, rows, missing)
            else:
                return known
            known = self.look(connection)
            assert known is not None
            return known

    def check_key(self, known: Known, key: set[str]) -> None:
        if self._settings["insert.mode"] == "upsert" and key and frozenset(key) not in known.keys:
            columns = ", ".join(sorted(key))
            raise ConnectorFailure(
                f"insert.mode=upsert needs a primary key or unique constraint on ({columns}) in the table "
                f"{self.name}, which has none: "
                f"ALTER TABLE {self.name} ADD PRIMARY KEY ({columns}), or change pk.fields."
            )

    def _create(self, connection: sa.Connection, rows: Rows) -> None:
        if not self._settings["auto.create"]:
            raise ConnectorFailure(
                f"There is no table {self.name}: create it, set auto.create=true, or change table.name.format."
            )
        columns = [self._column(column, False) for column in rows.columns]
        if rows.key:
            columns.append(f"PRIMARY KEY ({self._dialect.names(rows.key)})")
        _change(
            connection, f"CREATE TABLE IF NOT EXISTS {self._dialect.quoted_table(self.name)} ({', '.join(columns)})"
        )

    def _evolve(self, connection: sa.Connection, rows: Rows, missing: set[str]) -> None:
        if not self._settings["auto.evolve"]:
            raise ConnectorFailure(
                f"The table {self.name} has no column {', '.join(sorted(missing))}, which the records have: add "
                "it, set auto.evolve=true, "
                "or name the columns to write in fields.whitelist."
            )
        for column in rows.columns:
            if column.name in missing:
                # Rows that are there already have no value for it.
                _change(
                    connection,
                    f"ALTER TABLE {self._dialect.quoted_table(self.name)} ADD COLUMN {self._column(column, True)}",
                )

    def _column(self, column: Any, is_added: bool) -> str:
        must = " NOT NULL" if column.is_key or (not column.schema.optional and not is_added) else ""
        return f"{self._dialect.quote(column.name)} {self._dialect.type_of(column.schema, column.is_key)}{must}"
