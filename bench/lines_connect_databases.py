"""Connect and databases: rows and changes out of PostgreSQL, and rows into it, by the connectors' own classes.

Each is compared with what PostgreSQL's own tools do by hand: COPY out into nothing, `pg_recvlogical` into nothing, COPY
of a file that is ready into the same table. `share of the database` is how much of the time of all cores that were busy
was the server's: what is left for a faster reader to gain.
"""

from __future__ import annotations

import io
import itertools
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from bench.measure import Arm, Comparison, Values, throughput
from bench.measure import cost as costs
from tests.support.process import family_cpu_seconds

ROWS = 300_000
CHANGES = 100_000
UPSERTS = 200_000
BATCH = 20_000
_COLUMNS = "id BIGINT PRIMARY KEY, customer TEXT NOT NULL, euro NUMERIC(10,2), at TIMESTAMP NOT NULL, note TEXT"
_MADE = (
    "SELECT n, 'customer-' || n %% 1000, n * 0.5, TIMESTAMP '2026-01-01' + n * INTERVAL '1 second', NULL "
    "FROM generate_series(%s, %s) n"
)
_numbers = itertools.count()


@contextmanager
def server() -> Iterator[Any]:
    from tests.support.databases import Postgres, why_no_postgres

    reason = why_no_postgres()
    if reason is not None:
        raise RuntimeError(reason)
    started = Postgres()
    started.start()
    try:
        yield started
    finally:
        started.stop()


class _Meter:
    def __init__(self, running: Any) -> None:
        self._server = running.process.pid
        self._started = time.perf_counter()
        self._cpu = self._now()

    def _now(self) -> tuple[float, float]:
        database = family_cpu_seconds(self._server)
        return database, family_cpu_seconds(os.getpid()) - database

    def values(self, name: str, count: int) -> Values:
        elapsed = time.perf_counter() - self._started
        database, ours = (now - before for now, before in zip(self._now(), self._cpu, strict=True))
        return {name: count / elapsed / 1e3, "share": 100 * database / max(0.01, database + ours)}


def _table(database: Any, rows: int) -> None:
    database.sql(f"CREATE TABLE orders ({_COLUMNS})", "INSERT INTO orders " + _MADE % (1, rows), "ANALYZE")


def _config(database: Any, **more: str) -> dict[str, str]:
    name = f"bench_{next(_numbers)}"
    return {
        **database.settings,
        "database.dbname": database.name,
        "topic.prefix": "bench",
        "slot.name": name,
        "publication.name": name,
        "poll.interval.ms": "1000",
        **more,
    }


def _read(source: Any, count: int, offset: Any = None) -> Any:
    (partition,) = source.partitions(1)
    seen = 0
    while seen < count:
        for piece in source.read(partition, offset):
            seen += len(piece.records)
            offset = piece.offset
            if seen >= count:
                break
        source.published(partition, offset)
    return offset


def snapshot_line(enter: Callable[[Any], Any], share: float = 1.0) -> Comparison:
    running = enter(server())
    rows = int(ROWS * share)
    database = running.database()
    _table(database, rows)

    def by_hand() -> Values:
        class Nothing(io.RawIOBase):
            def write(self, data: Any) -> int:
                return len(data)

        with database.session() as cursor:
            meter = _Meter(running)
            cursor.copy_expert("COPY (SELECT * FROM orders ORDER BY id) TO STDOUT (FORMAT csv)", Nothing())
            return meter.values("rows", rows)

    def ours() -> Values:
        from ottla.connect.databases.postgres.source import PostgresSource

        config = _config(database)
        source = PostgresSource(config)
        try:
            meter = _Meter(running)
            _read(source, rows)
            return meter.values("rows", rows)
        finally:
            source.close()
            database.sql(
                f"SELECT pg_drop_replication_slot('{config['slot.name']}')", f"DROP PUBLICATION {config['slot.name']}"
            )

    return Comparison(
        "postgres-snapshot",
        "rows of a table of five columns out of PostgreSQL",
        [throughput("rows", "k/s", goal=None, digits=0), costs("share", "% of CPU in the database", digits=0)],
        [Arm("COPY into nothing", by_hand), Arm("PostgresSource, as records", ours)],
        notes="records are Arrow columns in Debezium's envelope; the broker is not part of it",
    )


def changes_line(enter: Callable[[Any], Any], share: float = 1.0) -> Comparison:
    running = enter(server())
    count = int(CHANGES * share)
    database = running.database()
    _table(database, 0)
    writes = itertools.count()

    def write() -> None:
        begin = next(writes) * count
        # Transactions of a hundred rows.
        with database.session() as cursor:
            for at in range(begin, begin + count, 100):
                cursor.execute("INSERT INTO orders " + _MADE, (at + 1, at + 100))

    def by_hand() -> Values:
        from tests.support.databases import HOST, PASSWORD, postgres_programs

        programs, slot = postgres_programs(), f"bench_{next(_numbers)}"
        database.sql(
            f"CREATE PUBLICATION {slot} FOR TABLE orders",
            f"SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput')",
        )
        write()
        ((end,),) = database.sql("SELECT pg_current_wal_lsn()")
        place = ["-h", HOST, "-p", str(database.port), "-U", running.login, "-d", database.name, "-S", slot]
        asked = ["-o", "proto_version=1", "-o", f"publication_names={slot}"]
        command = [f"{programs}/pg_recvlogical", *place, "--start", "-f", "/dev/null", "--endpos", end, *asked]
        meter = _Meter(running)
        subprocess.run(command, check=True, env={**os.environ, "PGPASSWORD": PASSWORD}, capture_output=True)
        values = meter.values("changes", count)
        database.sql(f"SELECT pg_drop_replication_slot('{slot}')", f"DROP PUBLICATION {slot}")
        return values

    def ours() -> Values:
        from ottla.connect.databases.postgres.source import PostgresSource

        config = _config(database, **{"snapshot.mode": "never"})
        source = PostgresSource(config)
        try:
            (partition,) = source.partitions(1)
            for _ in source.read(partition, None):
                raise RuntimeError("nothing was written yet")
            write()
            meter = _Meter(running)
            _read(source, count)
            return meter.values("changes", count)
        finally:
            source.close()
            database.sql(
                f"SELECT pg_drop_replication_slot('{config['slot.name']}')", f"DROP PUBLICATION {config['slot.name']}"
            )

    return Comparison(
        "postgres-changes",
        "inserts in transactions of a hundred out of PostgreSQL's log",
        [throughput("changes", "k/s", goal=None, digits=1), costs("share", "% of CPU in the database", digits=0)],
        [Arm("pg_recvlogical into nothing", by_hand), Arm("PostgresSource, as records", ours)],
        notes="all changes are in the log before the reader begins",
    )


def upserts_line(enter: Callable[[Any], Any], share: float = 1.0) -> Comparison:
    running = enter(server())
    count = int(UPSERTS * share)
    database = running.database()
    batches = _batches(count)

    def fresh() -> None:
        database.sql("DROP TABLE IF EXISTS orders, ottla_connect_positions", f"CREATE TABLE orders ({_COLUMNS})")

    def by_hand() -> Values:
        from ottla.connect.databases.tables.dialects import Postgres as Dialect
        from ottla.connect.databases.tables.sink_rows import rows_of

        fresh()
        settings = {"pk.mode": "record_key", "pk.fields": [], "fields.whitelist": [], "delete.enabled": True}
        rows = [rows_of(batch, settings) for batch in batches]
        connection = database.connect()
        connection.autocommit = False
        meter = _Meter(running)
        for each in rows:
            Dialect().insert(connection.cursor(), "orders", each)
            connection.commit()
        values = meter.values("rows", count)
        connection.close()
        return values

    def ours() -> Values:
        from ottla.common.ids import TopicPartition
        from ottla.connect.databases.tables.sink import JdbcSink
        from tests.support.databases import PASSWORD

        fresh()
        login = {"connection.user": running.login, "connection.password": PASSWORD}
        mode = {"insert.mode": "upsert", "pk.mode": "record_key", "delete.enabled": "true"}
        sink = JdbcSink({"name": "bench", "connection.url": database.url, **login, **mode})
        sink.begin(["orders"])
        meter = _Meter(running)
        writer = sink.open(TopicPartition("orders", 0), 0)
        for batch in batches:
            writer.write(batch)
        writer.close()
        return meter.values("rows", count)

    return Comparison(
        "postgres-upserts",
        "records into a table of PostgreSQL",
        [throughput("rows", "k/s", goal=0.5, digits=1), costs("share", "% of CPU in the database", digits=0)],
        [Arm("COPY by hand, at least once", by_hand), Arm("JdbcSink, upserts, exactly once", ours)],
        notes=f"batches of {BATCH:,} records, each a transaction; the table is empty at first",
    )


def _batches(count: int) -> list[Any]:
    import datetime
    from decimal import Decimal

    import pyarrow as pa

    from ottla.connect.api.data import TIMESTAMP, Column, Records, Schema, SchemaType
    from ottla.connect.databases.schemas import arrow_type, decimal, struct

    key = struct(None, [("id", Schema(SchemaType.INT64))])
    value = struct(
        None,
        [
            ("id", Schema(SchemaType.INT64)),
            ("customer", Schema(SchemaType.STRING)),
            ("euro", decimal(10, 2, True)),
            ("at", Schema(SchemaType.INT64, False, TIMESTAMP, 1)),
            ("note", Schema(SchemaType.STRING, True)),
        ],
    )
    at = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    found = []
    for begin in range(0, count, BATCH):
        ids = range(begin, min(count, begin + BATCH))
        rows = [
            {"id": n, "customer": f"customer-{n % 1000}", "euro": Decimal(n) / 2, "at": at, "note": None} for n in ids
        ]
        found.append(
            Records(
                pa.repeat(pa.scalar("orders"), len(ids)),
                pa.array([0] * len(ids), pa.int32()),
                pa.array([0] * len(ids), pa.int64()),
                Column(key, pa.array([{"id": n} for n in ids], arrow_type(key))),
                Column(value, pa.array(rows, arrow_type(value))),
                pa.array(ids, pa.int64()),
            )
        )
    return found
