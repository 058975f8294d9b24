"""What PostgreSQL knows of its tables, and the slot and publication that the stream needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg2

from ottla.connect.api.plugins import ConnectorFailure, Outage
from ottla.connect.databases.changes.settings import TableFilter
from ottla.connect.databases.failures import CDC, telling
from ottla.connect.databases.postgres.types import SESSION, PostgresType

CONNECT_SECONDS = 15
_SLOT_SECONDS = 30
_TABLES = """
    SELECT n.nspname || '.' || c.relname, c.relreplident,
           EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence = 'p'
      AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_%%'
    ORDER BY 1
"""
_COLUMNS = """
    SELECT a.attname, a.atttypid, a.atttypmod, a.attnotnull,
           array_position(
               (SELECT i.indkey::int2[] FROM pg_index i WHERE i.indrelid = a.attrelid AND i.indisprimary), a.attnum)
    FROM pg_attribute a WHERE a.attrelid = %s::regclass AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
    ORDER BY a.attnum
"""
_IS_PARTITIONED = "SELECT relkind = 'p' FROM pg_class WHERE oid = %s::regclass"
# The second is not there before PostgreSQL 13.
_PUBLICATION = """
    SELECT puballtables, COALESCE((to_jsonb(p) ->> 'pubviaroot')::bool, false)
    FROM pg_publication p WHERE pubname = %s
"""
# Changes of partitions as those of their table.
_BY_ROOT = "publish_via_partition_root = true"
_TYPE = """
    SELECT t.typname, t.typtype, t.typelem, t.typbasetype, t.typtypmod,
           (SELECT string_agg(e.enumlabel, ',' ORDER BY e.enumsortorder) FROM pg_enum e WHERE e.enumtypid = t.oid)
    FROM pg_type t WHERE t.oid = %s
"""


def connection_options(settings: Mapping[str, Any]) -> dict[str, Any]:
    options = {
        "host": settings["database.hostname"],
        "port": settings["database.port"],
        "user": settings["database.user"],
        "password": settings["database.password"],
        "dbname": settings["database.dbname"],
        "connect_timeout": CONNECT_SECONDS,
        "application_name": "ottla connect",
        "options": SESSION,
        "keepalives_idle": 30,
    }
    if settings["database.sslmode"] != "prefer":
        options["sslmode"] = settings["database.sslmode"]
    return options


@contextmanager
def telling_failures(doing: str) -> Iterator[None]:
    with telling(CDC, doing, psycopg2.Error):
        yield


def quoted(table: str) -> str:
    schema, name = table.split(".", 1)
    return f"{quote(schema)}.{quote(name)}"


def quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def text_of_lsn(lsn: int) -> str:
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def lsn_of_text(text: str) -> int:
    high, low = text.split("/")
    return (int(high, 16) << 32) + int(low, 16)


class Catalogue:
    """Questions on a connection of its own, which is made when it is needed."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = settings
        self._connection: Any = None
        self._types: dict[int, PostgresType] = {}

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def ask(self, question: str, *values: Any) -> list[tuple[Any, ...]]:
        with telling_failures("be looked at"):
            if self._connection is None:
                self._connection = psycopg2.connect(**connection_options(self._settings))
                self._connection.autocommit = True
            with self._connection.cursor() as cursor:
                cursor.execute(question, values)
                return list(cursor.fetchall()) if cursor.description else []

    # --- tables

    def tables(self, wanted: TableFilter) -> list[str]:
        found = []
        for table, identity, has_key in self.ask(_TABLES):
            if not wanted.has(table):
                continue
            if identity == "n" or (identity == "d" and not has_key):
                raise ConnectorFailure(
                    f"The table {table} has no primary key, so PostgreSQL would refuse to update or delete its "
                    "rows while they are "
                    f"published: ALTER TABLE {table} REPLICA IDENTITY FULL, or leave it out with table.exclude.list."
                )
            found.append(table)
        if not found:
            raise ConnectorFailure("There is no table that table.include.list and table.exclude.list leave.")
        return found

    def columns(self, table: str) -> list[tuple[str, int, int, bool, int | None]]:
        """Name, type, modifier, whether it must not be null, place in the primary key."""
        return [tuple(row) for row in self.ask(_COLUMNS, quoted(table))]

    def exists(self, table: str) -> bool:
        return bool(self.ask("SELECT to_regclass(%s) IS NOT NULL", quoted(table))[0][0])

    def type(self, oid: int) -> PostgresType:
        if oid not in self._types:
            rows = self.ask(_TYPE, oid)
            if not rows:
                return PostgresType("unknown", "b")
            name, kind, element, base, modifier, labels = rows[0]
            self._types[oid] = PostgresType(
                name,
                kind,
                self.type(element) if element and name.startswith("_") else None,
                self.type(base) if base else None,
                tuple(labels.split(",")) if labels else (),
                modifier,
            )
        return self._types[oid]

    # --- what the stream needs

    def check_level(self) -> None:
        level = self.ask("SHOW wal_level")[0][0]
        if level != "logical":
            raise ConnectorFailure(
                f"PostgreSQL's wal_level is {level}: ALTER SYSTEM SET wal_level = logical, and restart the server."
            )

    def publish(self, name: str, tables: Sequence[str], mode: str, signals: str) -> None:
        """Make the publication, or add what it lacks."""
        wanted = [*tables, *([signals] if signals and signals not in tables else [])]
        partitioned = [table for table in tables if self.ask(_IS_PARTITIONED, quoted(table))[0][0]]
        known = self.ask(_PUBLICATION, name)
        if not known:
            if mode == "disabled":
                raise ConnectorFailure(
                    f"There is no publication {name}: create it, or set publication.autocreate.mode=filtered."
                )
            what = "ALL TABLES" if mode == "all_tables" else "TABLE " + ", ".join(map(quoted, wanted))
            self.ask(f"CREATE PUBLICATION {quote(name)} FOR {what}{f' WITH ({_BY_ROOT})' if partitioned else ''}")
            return
        if partitioned and not known[0][1]:
            change = f"ALTER PUBLICATION {quote(name)} SET ({_BY_ROOT})"
            if mode == "disabled":
                raise ConnectorFailure(
                    f"The table {partitioned[0]} has partitions, and the publication {name} tells their changes under "
                    f"their own names: {change}, or leave it out with table.exclude.list."
                )
            self.ask(change)
        if known[0][0] or mode == "disabled":
            return
        has = {
            row[0]
            for row in self.ask(
                "SELECT schemaname || '.' || tablename FROM pg_publication_tables WHERE pubname = %s", name
            )
        }
        if missing := [table for table in wanted if table not in has]:
            self.ask(f"ALTER PUBLICATION {quote(name)} ADD TABLE {', '.join(map(quoted, missing))}")

    def slot(self, name: str, is_expected: bool) -> int:
        """Where the slot stands; it is made if there is none. `is_expected`: something was read from it before."""
        rows = self.ask(
            "SELECT confirmed_flush_lsn, plugin, database = current_database(), wal_status FROM "
            "pg_replication_slots WHERE slot_name = %s",
            name,
        )
        if not rows:
            if is_expected:
                raise ConnectorFailure(
                    f"The replication slot {name} is gone, so changes may be missing: DELETE the connector's "
                    "offsets while it is "
                    "stopped, and it begins with a new slot and a new snapshot (or check slot.name)."
                )
            return self._new_slot(name)
        lsn, plugin, is_here, status = rows[0]
        if plugin != "pgoutput" or not is_here:
            raise ConnectorFailure(
                f"The replication slot {name} belongs to something else (plugin {plugin}): choose another slot.name."
            )
        if status == "lost":
            raise ConnectorFailure(
                f"PostgreSQL has removed WAL that the slot {name} needed (max_slot_wal_keep_size): drop the slot, "
                "DELETE the connector's "
                "offsets while it is stopped, and it begins with a new snapshot."
            )
        return lsn_of_text(lsn)

    def _new_slot(self, name: str) -> int:
        self.ask(f"SET statement_timeout = {_SLOT_SECONDS * 1000}")
        try:
            rows = self.ask("SELECT lsn FROM pg_create_logical_replication_slot(%s, 'pgoutput')", name)
            return lsn_of_text(rows[0][0])
        except Outage as error:
            if getattr(error.__cause__, "pgcode", None) == "57014":
                raise Outage(
                    f"PostgreSQL makes the slot {name} when every transaction that is open has ended, and one has "
                    "not for "
                    f"{_SLOT_SECONDS} seconds: SELECT pid, xact_start, query FROM pg_stat_activity shows it."
                ) from error
            raise
        finally:
            if self._connection is not None and not self._connection.closed:
                self.ask("SET statement_timeout = 0")
