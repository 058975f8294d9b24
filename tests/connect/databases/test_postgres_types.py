"""Types of PostgreSQL in Debezium's mapping, by snapshot and by stream, and on into a table of PostgreSQL again."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from ottla.common.ids import TopicPartition
from ottla.connect.api import ConnectorFailure, Records, Schema
from ottla.connect.databases.postgres.source import PostgresSource
from ottla.connect.databases.tables.sink import JdbcSink
from tests.connect.databases.driving import Driven
from tests.support.databases import PASSWORD, Database

NAMED = "io.debezium."
MICROS = 2**63 - 1


class Case(NamedTuple):
    kind: str
    written: str
    value: Any
    # Of the schema: type and name.
    schema: tuple[str, str | None]


def case(kind: str, written: str, value: Any, type_name: str, name: str | None = None) -> Case:
    return Case(kind, written, value, (type_name, name and NAMED + name))


CASES = [
    case("BIT(12)", "B'100000000001'", b"\x01\x08", "bytes", "data.Bits"),
    case("VARBIT", "B'101101111'", b"\x6f\x01", "bytes", "data.Bits"),
    case("BIT(1)", "B'1'", True, "boolean"),
    case(
        "HSTORE",
        """'a=>1, "b \\" c"=>NULL, d=>"NULL"'""",
        {"a": "1", 'b " c': None, "d": "NULL"},
        "string",
        "data.Json",
    ),
    case("LTREE", "'a.b'", "a.b", "string", "data.Ltree"),
    case("CITEXT", "'Ab'", "Ab", "string"),
    case("OID", "4294967295", 4294967295, "int64"),
    case("DOUBLE PRECISION", "'-Infinity'", float("-inf"), "double"),
    case("JSONB", "'{\"a\": 1234567890.1234567890}'", {"a": 1234567890.1234567890}, "string", "data.Json"),
    case("INT4RANGE", "'[1,5)'", "[1,5)", "string"),
    case("BOX[]", "'{(1,1),(0,0);(2,2),(1,1)}'", "{(1,1),(0,0);(2,2),(1,1)}", "string"),
    case("TEXT[]", """'{NULL,"NULL","a,b","x\\"y"}'""", [None, "NULL", "a,b", 'x"y'], "array"),
    case("TIMESTAMPTZ[]", "'{2026-01-01 12:00:00+02}'", ["2026-01-01T10:00:00Z"], "array"),
    case("TIMETZ", "'10:00:00+02'", "10:00:00+02", "string", "time.ZonedTime"),
    case("TIME", "'24:00:00'", 86_400_000_000, "int64", "time.MicroTime"),
    case("TIMESTAMPTZ", "'-infinity'", "-infinity", "string", "time.ZonedTimestamp"),
    case("TIMESTAMP", "'infinity'", MICROS, "int64", "time.MicroTimestamp"),
    case("TIMESTAMP(3)", "'-infinity'", -(MICROS // 1000), "int64", "time.Timestamp"),
    case("TIMESTAMP", "'0044-03-15 12:00:00 BC'", -63_517_780_800_000_000, "int64", "time.MicroTimestamp"),
    case("DATE", "'infinity'", 2**31 - 1, "int32", "time.Date"),
    case("DATE", "'-infinity'", -(2**31), "int32", "time.Date"),
    case("DATE", "'0044-03-15 BC'", -735_160, "int32", "time.Date"),
    case("DATE", "'20000-01-01'", 6_585_322, "int32", "time.Date"),
    Case("MONEY", "'-1234.5'", Decimal("-1234.50"), ("bytes", "org.apache.kafka.connect.data.Decimal")),
]


def reading(database: Database, **settings: str) -> Driven:
    config = {
        **database.settings,
        "database.dbname": database.name,
        "topic.prefix": "s",
        "slot.name": database.name,
        "poll.interval.ms": "300",
        **{name.replace("_", "."): value for name, value in settings.items()},
    }
    return Driven(lambda: PostgresSource(config))


def fill(database: Database, cases: list[Case], *rows: int) -> None:
    values = ", ".join(each.written for each in cases)
    database.sql(*(f"INSERT INTO t VALUES ({number}, {values})" for number in rows))


@pytest.fixture
def made(postgres: Database) -> Database:
    database = postgres
    database.sql(*(f"CREATE EXTENSION IF NOT EXISTS {name}" for name in ("hstore", "ltree", "citext")))
    columns = ", ".join(f"c{number} {each.kind}" for number, each in enumerate(CASES))
    database.sql(f"CREATE TABLE t (id INT PRIMARY KEY, {columns})")
    return database


def test_snapshot_and_stream_tell_the_same_value_in_debeziums_type(made: Database) -> None:
    fill(made, CASES, 1)
    driven = reading(made)
    driven.round()
    fill(made, CASES, 2)
    driven.until(lambda: len(driven.topics) == 2)
    driven.die()
    row = _schema(driven, "after")
    wrong = []
    for number, each in enumerate(CASES):
        name = f"c{number}"
        column = row.field_named(name)
        assert column is not None
        found = [told.value["after"][name] for told in driven.topics]
        if isinstance(each.value, dict):
            found = [json.loads(one) for one in found]
        if (*found, (str(column.type), column.name)) != (each.value, each.value, each.schema):
            wrong.append((each, found, column))
    assert not wrong


def _schema(driven: Driven, part: str) -> Schema:
    schema = next(each.values.schema for each in driven.batches if len(each))
    assert schema is not None
    found = schema.field_named(part)
    assert found is not None
    return found


def test_moments_that_python_does_not_know_come_into_another_table_as_they_were(made: Database) -> None:
    times = [
        number for number, each in enumerate(CASES) if each.kind.startswith(("DATE", "TIME")) and "[" not in each.kind
    ]
    fill(made, CASES, 1)
    driven = reading(made)
    driven.round()
    driven.die()
    login = {"connection.user": made.server.login, "connection.password": PASSWORD}
    sink = JdbcSink(
        {
            "name": "x",
            "connection.url": made.url,
            **login,
            "insert.mode": "upsert",
            "pk.mode": "record_key",
            "auto.create": "true",
            "table.name.format": "copied",
        }
    )
    sink.begin(["t"])
    writer = sink.open(TopicPartition("t", 0), 0)
    writer.write(_as_read(next(each for each in driven.batches if len(each))))
    writer.close()
    for number in times:
        question = f"SELECT c{number}::text FROM "
        assert made.sql(question + "copied") == made.sql(question + "t"), CASES[number]


def _as_read(records: Records) -> Records:
    count = len(records)
    return replace(
        records,
        topics=pa.repeat(pa.scalar("t"), count),
        partitions=pa.array([0] * count, pa.int32()),
        timestamps=pa.array([0] * count, pa.int64()),
        offsets=pa.array(range(count), pa.int64()),
    )


def test_a_number_that_is_none_is_told_with_the_setting_that_takes_it(postgres: Database) -> None:
    postgres.sql("CREATE TABLE t (id INT PRIMARY KEY, v NUMERIC(6,2), w MONEY)", "INSERT INTO t VALUES (1, 'NaN', 1)")
    with pytest.raises(ConnectorFailure, match=r"column v \(numeric\).*decimal\.handling\.mode"):
        reading(postgres).round()
    driven = reading(postgres, decimal_handling_mode="string")
    driven.round()
    driven.die()
    assert driven.topics[0].value["after"] == {"id": 1, "v": "NaN", "w": "1.00"}
