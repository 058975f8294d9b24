"""Types of MariaDB in Debezium's mapping: a row that the snapshot reads and one that the binlog brings are the same."""

from __future__ import annotations

import datetime
from typing import Any, NamedTuple

import pytest

from ottla.connect.api import ConnectorFailure
from ottla.connect.databases.mysql.source import MysqlSource
from tests.connect.databases.driving import Driven
from tests.support.databases import Database

NAMED = "io.debezium."


class Case(NamedTuple):
    kind: str
    written: str
    value: Any
    # Of the schema: type and name.
    schema: tuple[str, str | None]


def case(kind: str, written: str, value: Any, type_name: str, name: str | None = None) -> Case:
    return Case(kind, written, value, (type_name, name and NAMED + name))


CASES = [
    case("TINYINT(1)", "5", 5, "int16"),
    case("INT UNSIGNED", "4294967295", 4294967295, "int64"),
    case("BIT(12)", "b'100000000001'", b"\x01\x08", "bytes", "data.Bits"),
    case("BIT(1)", "b'1'", True, "boolean"),
    case("YEAR", "0", 0, "int32", "time.Year"),
    case("YEAR", "2026", 2026, "int32", "time.Year"),
    case("ENUM('a','b')", "'b'", "b", "string", "data.Enum"),
    case("SET('b','a','c')", "'c,b'", "b,c", "string", "data.EnumSet"),
    case("SET('a','b')", "''", "", "string", "data.EnumSet"),
    case("SET('a','b')", "NULL", None, "string", "data.EnumSet"),
    case("BINARY(4)", "x'00ff'", b"\x00\xff\x00\x00", "bytes"),
    case("VARBINARY(4)", "x'00ff00'", b"\x00\xff\x00", "bytes"),
    case("VARCHAR(9) CHARACTER SET latin1", "'é'", "é", "string"),
    case("VARCHAR(9) CHARACTER SET ucs2", "'é'", "é", "string"),
    case("VARCHAR(9) CHARACTER SET utf16", "'é🦦'", "é🦦", "string"),
    case("TEXT CHARACTER SET utf32", "'🦦'", "🦦", "string"),
    case("UUID", "'6f1f9a3e-1122-4000-8123-0000000000ff'", "6f1f9a3e-1122-4000-8123-0000000000ff", "string"),
    case("UUID", "'00000000-0000-0000-0000-000000000000'", "00000000-0000-0000-0000-000000000000", "string"),
    case("UUID", "'01890a5d-ac96-774b-bcce-b302099a8057'", "01890a5d-ac96-774b-bcce-b302099a8057", "string"),
    case("UUID", "'ffffffff-ffff-ffff-ffff-ffffffffffff'", "ffffffff-ffff-ffff-ffff-ffffffffffff", "string"),
    case("INET6", "'fe80::a:0'", "fe80::a:0", "string"),
    case("TIME(3)", "'25:00:00.500'", 90_000_500_000, "int64", "time.MicroTime"),
    case("TIME(3)", "'-00:00:01.500'", -1_500_000, "int64", "time.MicroTime"),
    case(
        "TIMESTAMP(3) NULL", "'2026-01-01 10:00:00.120'", "2026-01-01T10:00:00.120000Z", "string", "time.ZonedTimestamp"
    ),
    # Dates that there are none of are null, or the beginning of time where they must not be null.
    case("DATE", "'0000-00-00'", None, "int32", "time.Date"),
    case("DATE NOT NULL", "'2026-00-00'", 0, "int32", "time.Date"),
    case("DATETIME", "'0000-00-00'", None, "int64", "time.Timestamp"),
    case("DATETIME(6) NOT NULL", "'0000-00-00'", 0, "int64", "time.MicroTimestamp"),
    case("TIMESTAMP NULL", "'0000-00-00'", None, "string", "time.ZonedTimestamp"),
    case("TIMESTAMP NOT NULL DEFAULT 0", "'0000-00-00'", "1970-01-01T00:00:00Z", "string", "time.ZonedTimestamp"),
]


def reading(database: Database, **settings: str) -> Driven:
    config = {
        **database.settings,
        "database.include.list": database.name,
        "topic.prefix": "s",
        "poll.interval.ms": "300",
        **{name.replace("_", "."): value for name, value in settings.items()},
    }
    return Driven(lambda: MysqlSource(config))


def sql(database: Database, *statements: str) -> None:
    """As an old server does it, which takes dates that there are none of."""
    with database.session() as cursor:
        for statement in ("SET sql_mode = ''", *statements):
            cursor.execute(statement)


def test_snapshot_and_binlog_tell_the_same_value_in_debeziums_type(mariadb: Database) -> None:
    columns = ", ".join(f"c{number} {each.kind}" for number, each in enumerate(CASES))
    values = ", ".join(each.written for each in CASES)
    sql(mariadb, f"CREATE TABLE t (id INT PRIMARY KEY, {columns})", f"INSERT INTO t VALUES (1, {values})")
    driven = reading(mariadb)
    driven.round()
    sql(mariadb, f"INSERT INTO t VALUES (2, {values})")
    driven.until(lambda: len(driven.topics) == 2)
    driven.die()
    schema = next(each.values.schema for each in driven.batches if len(each))
    assert schema is not None
    row = schema.field_named("after")
    assert row is not None
    wrong = []
    for number, each in enumerate(CASES):
        name = f"c{number}"
        column = row.field_named(name)
        assert column is not None
        snapshot, stream = (told.value["after"][name] for told in driven.topics)
        if (snapshot, stream, (str(column.type), column.name)) != (each.value, each.value, each.schema):
            wrong.append((each, snapshot, stream, column))
    assert not wrong


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("BINARY(4)", ["x'01'", "x'0100ff'", "x'02'"]),
        ("DATETIME(3)", ["'2026-01-01 10:00:00'", "'2026-01-01 10:00:00.001'", "'2026-01-01 10:00:01'"]),
        ("TIME", ["'09:00:00'", "'10:00:00'", "'25:00:00'"]),
        ("UUID", ["'00000000-0000-4000-8000-00000000000a'", "'6f1f9a3e-1122-4000-8123-0000000000ff'", "UUID()"]),
    ],
)
def test_a_snapshot_goes_on_behind_a_key_of_whatever_type(mariadb: Database, kind: str, values: list[str]) -> None:
    rows = ", ".join(f"({value}, {number})" for number, value in enumerate(values))
    mariadb.sql(f"CREATE TABLE t (id {kind} PRIMARY KEY, n INT)", f"INSERT INTO t VALUES {rows}")
    driven = reading(mariadb, snapshot_fetch_size="1")
    while driven.round_of_one_piece():
        driven.die()
    mariadb.sql("UPDATE t SET n = n + 10")
    driven.until(lambda: len(driven.topics) >= 6)
    driven.die()
    found = [(each.key["id"], each.value["op"], each.value["after"]["n"]) for each in driven.topics]
    assert sorted(number for _, op, number in found if op == "r") == [0, 1, 2], found
    assert {key for key, op, _ in found if op == "u"} == {key for key, op, _ in found if op == "r"}, found
    assert len(found) == 6


def test_a_time_that_no_clock_shows_and_a_number_that_does_not_fit_are_told(mariadb: Database) -> None:
    mariadb.sql("CREATE TABLE t (id INT PRIMARY KEY, v TIME, n BIGINT UNSIGNED)")
    mariadb.sql("INSERT INTO t VALUES (1, '25:00:00', NULL)")
    with pytest.raises(ConnectorFailure, match=r"column v \(time\).*25:00:00|1 day, 1:00:00.*time\.precision\.mode"):
        reading(mariadb, time_precision_mode="connect").round()
    mariadb.sql("UPDATE t SET v = '10:00', n = 18446744073709551615")
    with pytest.raises(ConnectorFailure, match=r"column n \(bigint\).*bigint\.unsigned\.handling\.mode"):
        reading(mariadb).round()
    driven = reading(mariadb, time_precision_mode="connect", bigint_unsigned_handling_mode="precise")
    driven.round()
    driven.die()
    after = driven.topics[0].value["after"]
    assert (after["v"], int(after["n"])) == (datetime.time(10), 18446744073709551615)
