"""Values that are unlike Python's, by the JDBC connectors: out of tables, out of queries, and into tables."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ottla.common.ids import TopicPartition
from ottla.connect.api import BadRecords, Column, ConnectorFailure, Records, Schema, SchemaType
from ottla.connect.databases.schemas import arrow_type, decimal, struct
from ottla.connect.databases.tables.sink import JdbcSink
from ottla.connect.databases.tables.source import JdbcSource
from tests.connect.databases.driving import Driven
from tests.support.databases import PASSWORD, Database

UUID = "6f1f9a3e-0000-4000-8000-000000000000"
WORDS = '[null, "NULL", "a,b"]'
# By the type of a column: what is written, and what a table and a query give.
POSTGRES: list[tuple[str, str, Any, Any]] = [
    ("BYTEA", r"'\x00ff'", b"\x00\xff", b"\x00\xff"),
    ("JSONB", "'\"text\"'", '"text"', '"text"'),
    ("JSONB", "'null'", "null", "null"),
    (
        "JSON",
        "'{\"a\": 12345678901234567890.123}'",
        '{"a": 12345678901234567890.123}',
        '{"a": 12345678901234567890.123}',
    ),
    ("INTERVAL", "'1 mon 26 days 00:00:01.5'", "P1M26DT1.5S", "P1M26DT1.5S"),
    ("BYTEA[]", r"ARRAY['\x00ff'::bytea]", '["00ff"]', '["00ff"]'),
    ("NUMERIC", "'NaN'", "NaN", "NaN"),
    ("DOUBLE PRECISION", "'-Infinity'", float("-inf"), float("-inf")),
    ("UUID", "'6f1f9a3e-0000-4000-8000-000000000000'", UUID, UUID),
    ("TEXT[]", """'{NULL,"NULL","a,b"}'""", WORDS, WORDS),
]
MARIADB: list[tuple[str, str, Any, Any]] = [
    ("BIT(12)", "b'100000000001'", b"\x08\x01", b"\x08\x01"),
    ("BIT(1)", "b'1'", b"\x01", b"\x01"),
    ("BINARY(3)", "x'00ff'", b"\x00\xff\x00", b"\x00\xff\x00"),
    ("VARBINARY(3)", "x'00ff'", b"\x00\xff", b"\x00\xff"),
    ("SET('b','a','c')", "'c,b'", "b,c", "b,c"),
    ("SET('a')", "''", "", ""),
    ("DATE", "'0000-00-00'", None, "0000-00-00"),
    ("DATETIME", "'0000-00-00'", None, "0000-00-00 00:00:00"),
    ("JSON", "'null'", "null", "null"),
    ("POINT", "ST_GeomFromText('POINT(1 1)')", "00000000" + "0101000000" + 2 * "000000000000f03f", None),
]


def reading(database: Database, **settings: str) -> Driven:
    config = {
        "name": "s",
        "connection.url": database.url,
        "connection.user": database.server.login,
        "connection.password": PASSWORD,
        "topic.prefix": "s",
        "mode": "bulk",
        **{name.replace("_", "."): value for name, value in settings.items()},
    }
    return Driven(lambda: JdbcSource(config))


def read(database: Database, **settings: str) -> dict[str, Any]:
    driven = reading(database, **settings)
    driven.round()
    driven.die()
    value: dict[str, Any] = driven.topics[0].value
    return value


def make(database: Database, *columns: tuple[str, str]) -> None:
    names = ", ".join(f"c{number} {kind}" for number, (kind, _) in enumerate(columns))
    with database.session() as cursor:
        if database.url.startswith("jdbc:mysql") or "mariadb" in database.url:
            cursor.execute("SET sql_mode = ''")
        cursor.execute(f"CREATE TABLE t ({names})")
        cursor.execute(f"INSERT INTO t VALUES ({', '.join(written for _, written in columns)})")


@pytest.mark.parametrize(("name", "cases"), [("postgres", POSTGRES), ("mariadb", MARIADB)])
def test_a_table_and_a_query_give_what_was_written(
    request: pytest.FixtureRequest, name: str, cases: list[tuple[str, str, Any, Any]]
) -> None:
    database = request.getfixturevalue(name)
    make(database, *((kind, written) for kind, written, _, _ in cases))
    table, query = read(database, table_whitelist="t"), read(database, query="SELECT * FROM t")
    for number, (kind, written, of_table, of_query) in enumerate(cases):
        assert table[f"c{number}"] == of_table, (kind, written)
        assert of_query is None or query[f"c{number}"] == of_query, (kind, written)


@pytest.mark.parametrize(
    ("name", "kind", "written", "words"),
    [
        ("postgres", "NUMERIC(10,2)", "'NaN'", "column c0 .*Decimal.*NaN.*query"),
        ("postgres", "DATE", "'0044-03-15 BC'", "years 1 to 9999.*query"),
        ("mariadb", "DATE NOT NULL", "'0000-00-00'", "column c0 .*no date 0000-00-00"),
        ("mariadb", "TIME", "'25:00:00'", "column c0 .*no time of a day"),
        ("mariadb", "BIGINT UNSIGNED", "18446744073709551615", "column c0 .*too large"),
    ],
)
def test_a_value_that_does_not_fit_is_told_by_its_column(
    request: pytest.FixtureRequest, name: str, kind: str, written: str, words: str
) -> None:
    database = request.getfixturevalue(name)
    make(database, (kind, written))
    with pytest.raises(ConnectorFailure, match=words):
        read(database, table_whitelist="t")


def test_a_time_with_a_zone_is_that_of_utc(postgres: Database) -> None:
    make(postgres, ("TIMETZ", "'01:00:00+02'"))
    assert str(read(postgres, table_whitelist="t")["c0"]) == "23:00:00"


# --- into tables

CLOCK = Schema(SchemaType.INT64, name="io.debezium.time.MicroTime", version=1)
DAY = Schema(SchemaType.INT32, True, "io.debezium.time.Date", 1)
KEY = struct(None, [("id", Schema(SchemaType.INT32))])


def write(settings: dict[str, str], *values: dict[str, Any], **columns: Schema) -> None:
    value, count = struct(None, [("id", Schema(SchemaType.INT32)), *columns.items()]), len(values)
    rows = [{"id": number, **each} for number, each in enumerate(values)]
    base = {"name": "x", "insert.mode": "upsert", "pk.mode": "record_key", "auto.create": "true"}
    sink = JdbcSink({**base, "table.name.format": "written", **settings})
    sink.begin(["t"])
    writer = sink.open(TopicPartition("t", 0), 0)
    writer.write(
        Records(
            pa.repeat(pa.scalar("t"), count),
            pa.array([0] * count, pa.int32()),
            pa.array([0] * count, pa.int64()),
            Column(KEY, pa.array([{"id": number} for number in range(count)], arrow_type(KEY))),
            Column(value, pa.array(rows, arrow_type(value))),
            pa.array(range(count), pa.int64()),
        )
    )
    writer.close()


def login(database: Database) -> dict[str, str]:
    return {
        "connection.url": database.url,
        "connection.user": database.server.login,
        "connection.password": PASSWORD,
    }


def test_clocks_of_mariadb_show_more_than_a_day_and_those_of_others_do_not(
    mariadb: Database, postgres: Database
) -> None:
    micros = [90_000_500_000, -1_500_000, 1]
    write(login(mariadb), *({"at": each} for each in micros), at=CLOCK)
    assert mariadb.sql("SELECT CAST(at AS CHAR) FROM written ORDER BY id") == [
        ("25:00:00.500000",),
        ("-00:00:01.500000",),
        ("00:00:00.000001",),
    ]
    with pytest.raises(BadRecords, match="25:00:00"):
        write(login(postgres), *({"at": each} for each in micros), at=CLOCK)


def test_a_day_that_a_database_has_no_text_for_is_a_bad_record(mariadb: Database, tmp_path: Path) -> None:
    sqlite = {"connection.url": f"jdbc:sqlite:{tmp_path / 'x.db'}"}
    for settings in (login(mariadb), sqlite):
        with pytest.raises(BadRecords, match="value of day is a moment"):
            write(settings, {"day": 2**31 - 1}, day=DAY)


def test_decimals_can_be_updated_in_sqlite(tmp_path: Path) -> None:
    settings = {"connection.url": f"jdbc:sqlite:{tmp_path / 'x.db'}"}
    write(settings, {"euro": Decimal("1.50")}, euro=decimal(6, 2))
    write({**settings, "name": "y", "insert.mode": "update"}, {"euro": Decimal("2.50")}, euro=decimal(6, 2))


def test_bytes_in_lists_are_written_as_json_has_them(postgres: Database) -> None:
    listed = Schema(SchemaType.ARRAY, value_schema=Schema(SchemaType.BYTES))
    write(login(postgres), {"all": [b"\x00\xff"]}, all=listed)
    assert postgres.sql('SELECT "all"::text FROM written') == [('["AP8="]',)]
