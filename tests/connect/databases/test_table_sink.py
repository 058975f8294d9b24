"""JdbcSink on PostgreSQL, MariaDB, SQLite and DuckDB: what is written, what is refused, and that it is written once."""

from __future__ import annotations

import datetime
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import sqlalchemy as sa

from ottla.common.ids import TopicPartition
from ottla.connect.api import BadRecords, Column, ConnectorFailure, Outage, Records, Schema, SchemaType
from ottla.connect.api.config import ConfigInvalid
from ottla.connect.api.data import DATE, TIMESTAMP
from ottla.connect.databases.addresses import engine
from ottla.connect.databases.schemas import arrow_type, decimal, struct
from ottla.connect.databases.tables.sink import JdbcSink
from tests.support.databases import PASSWORD, Database, why_no_mariadb, why_no_postgres
from tests.support.process import free_ports

KEY = struct(None, [("id", Schema(SchemaType.INT64))])
VALUE = struct(
    None,
    [
        ("id", Schema(SchemaType.INT64)),
        ("name", Schema(SchemaType.STRING, optional=True)),
        ("price", decimal(10, 2, optional=True)),
        ("day", Schema(SchemaType.INT32, True, DATE, 1)),
        ("at", Schema(SchemaType.INT64, True, TIMESTAMP, 1)),
        ("ok", Schema(SchemaType.BOOLEAN, optional=True)),
        ("data", Schema(SchemaType.BYTES, optional=True)),
    ],
)
KEY_OF_TWO = struct(None, [("region", Schema(SchemaType.STRING)), ("id", Schema(SchemaType.INT64))])
NOW = datetime.datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=datetime.UTC)
ORDERS = TopicPartition("orders", 0)


def record(number: int, name: str | None = "x", **more: Any) -> dict[str, Any]:
    return {
        "id": number,
        "name": name,
        "price": Decimal("1.50"),
        "day": NOW.date(),
        "at": NOW,
        "ok": True,
        "data": b"\x00\xff",
        **more,
    }


def records(
    first: int, values: list[dict[str, Any] | None], ids: list[int] | None = None, schema: Schema = VALUE
) -> Records:
    count = len(values)
    keys = [{"id": value["id"] if value else 0} for value in values] if ids is None else [{"id": i} for i in ids]
    return Records(
        pa.repeat(pa.scalar("orders"), count),
        pa.array([0] * count, pa.int32()),
        pa.array([0] * count, pa.int64()),
        Column(KEY, pa.array(keys, arrow_type(KEY))),
        Column(schema, pa.array(values, arrow_type(schema))),
        pa.array(range(first, first + count), pa.int64()),
    )


UPSERT = {
    "insert.mode": "upsert",
    "pk.mode": "record_key",
    "delete.enabled": "true",
    "auto.create": "true",
    "auto.evolve": "true",
}


class Target:
    def __init__(self, url: str, user: str | None) -> None:
        self.config = {"name": "orders-sink", "connection.url": url}
        if user:
            self.config |= {"connection.user": user, "connection.password": PASSWORD}

    def sink(self, **settings: str) -> JdbcSink:
        return JdbcSink({**self.config, **{name.replace("_", "."): value for name, value in settings.items()}})

    def sql(self, statement: str) -> list[Any]:
        made = engine({"connection.user": None, "connection.password": None, **self.sink().settings})
        with made.begin() as connection:
            result = connection.execute(sa.text(statement))
            return [tuple(row) for row in result] if result.returns_rows else []


@pytest.fixture(params=["postgres", "mariadb", "sqlite", "duckdb"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Target]:
    if request.param == "duckdb":
        pytest.importorskip("duckdb", reason="DuckDB is not installed: pip install 'ottla[duckdb]'")
    if request.param in ("sqlite", "duckdb"):
        yield Target(f"jdbc:{request.param}:{tmp_path / 'target.db'}", None)
        return
    reason = why_no_postgres() if request.param == "postgres" else why_no_mariadb()
    if reason:
        pytest.skip(reason)
    database = request.getfixturevalue(request.param)
    yield Target(database.url, database.server.login)


def test_the_last_record_of_each_key_is_in_the_table_and_deleted_ones_are_not(target: Target) -> None:
    sink = target.sink(**UPSERT)
    sink.begin(["orders"])
    writer = sink.open(ORDERS, 0)
    writer.write(records(0, [record(1, "a"), record(2, "b"), record(1, "c"), None, record(3, "d")], [1, 2, 1, 2, 3]))
    writer.write(records(5, [record(2, 'quote " \\ ,\n'), None, record(4, "")], [2, 3, 4]))
    writer.close()
    assert target.sql("SELECT id, name FROM orders ORDER BY id") == [(1, "c"), (2, 'quote " \\ ,\n'), (4, "")]
    assert sink.positions([ORDERS]) == {ORDERS: 8}
    (row,) = target.sql("SELECT price, day, orders.at, ok, data FROM orders WHERE id = 4")
    assert Decimal(str(row[0])) == Decimal("1.50") and str(row[1]) == "2026-01-02" and bool(row[3])
    assert str(row[2]).startswith("2026-01-02 03:04:05.678") and bytes(row[4]) == b"\x00\xff"


def test_topics_that_differ_in_the_size_of_a_letter_have_positions_of_their_own(target: Target) -> None:
    other = TopicPartition("Orders", 0)
    sink = target.sink(insert_mode="insert", auto_create="true", table_name_format="alike")
    sink.begin([])
    for place, first in ((ORDERS, 5), (other, 0), (ORDERS, 6), (other, 1)):
        sink.open(place, first).write(records(first, [record(first)]))
    assert sink.positions([ORDERS, other]) == {ORDERS: 7, other: 2}
    assert target.sql("SELECT id FROM alike ORDER BY id") == [(0,), (1,), (5,), (6,)]


@pytest.mark.parametrize("key_schema", [Schema(SchemaType.STRING), KEY_OF_TWO], ids=["text", "composite"])
def test_keys_that_differ_in_a_letter_or_a_space_are_rows_of_their_own(target: Target, key_schema: Schema) -> None:
    """Databases may compare text without the size of letters, accents and spaces at the end; topics do not."""
    names = ["a", "A", "á", "a ", "ß", "ss", ""]
    is_composite = key_schema is KEY_OF_TWO
    keys = [{"region": name, "id": 1} if is_composite else name for name in (*names, *names)]
    value = struct(None, [("name", Schema(SchemaType.STRING, optional=True))])
    count = len(keys)
    written = Records(
        pa.repeat(pa.scalar("orders"), count),
        pa.array([0] * count, pa.int32()),
        pa.array([0] * count, pa.int64()),
        Column(key_schema, pa.array(keys, arrow_type(key_schema))),
        Column(value, pa.array([{"name": str(n)} for n in range(count)], arrow_type(value))),
        pa.array(range(count), pa.int64()),
    )
    sink = target.sink(**UPSERT, pk_fields="" if is_composite else "region")
    sink.begin(["orders"])
    writer = sink.open(ORDERS, 0)
    writer.write(written)
    deleted = replace(
        written.slice(0, 1),
        values=Column(value, pa.array([None], arrow_type(value))),
        offsets=pa.array([count], pa.int64()),
    )
    writer.write(deleted)
    writer.close()
    rows = sorted(target.sql("SELECT region, name FROM orders"))
    assert rows == sorted((name, str(len(names) + n)) for n, name in enumerate(names) if n)


def test_a_transform_that_names_another_topic_names_another_table(target: Target) -> None:
    """As with Kafka Connect, whose RegexRouter is how many choose their tables."""
    sink = target.sink(**UPSERT)
    sink.begin(["orders"])
    mixed = records(0, [record(n) for n in range(4)])
    sink.open(ORDERS, 0).write(replace(mixed, topics=pa.array(["big", "small", "small", "big"])))
    assert target.sql("SELECT id FROM big ORDER BY id") == [(0,), (3,)]
    assert target.sql("SELECT id FROM small ORDER BY id") == [(1,), (2,)]
    assert sink.positions([ORDERS, TopicPartition("big", 0)]) == {ORDERS: 4}
    with pytest.raises(Outage, match="Another task"):
        sink.open(ORDERS, 0).write(replace(mixed, topics=pa.array(["big"] * 4)))


def test_records_of_two_topics_that_go_to_one_table_do_not_replace_each_other(target: Target) -> None:
    sink = target.sink(insert_mode="upsert", pk_mode="kafka", auto_create="true")
    for topic in ("north", "south"):
        routed = replace(records(0, [record(1, topic)]), topics=pa.array(["orders"]))
        sink.begin([])
        sink.open(TopicPartition(topic, 0), 0).write(routed)
    assert sorted(target.sql("SELECT name FROM orders")) == [("north",), ("south",)]


def test_a_task_that_comes_back_late_is_refused_and_leaves_nothing(target: Target) -> None:
    sink = target.sink(insert_mode="insert", auto_create="true")
    sink.begin(["orders"])
    late, current = sink.open(ORDERS, 0), sink.open(ORDERS, 0)
    current.write(records(0, [record(1), record(2)]))
    with pytest.raises(Outage, match="Another task"):
        late.write(records(0, [record(1), record(2), record(3)]))
    current.write(records(2, [record(3)]))
    with pytest.raises(Outage):
        late.write(records(1, [record(2)]))
    assert target.sql("SELECT id FROM orders ORDER BY id") == [(1,), (2,), (3,)]
    # Offsets may have gaps: compacted topics, transactions, records that a transform left out.
    current.write(records(10, [record(4)]))
    assert sink.positions([ORDERS, TopicPartition("orders", 1)]) == {ORDERS: 11}
    sink.moved({ORDERS: None})
    assert sink.positions([ORDERS]) == {}
    late.close()
    current.close()


def test_a_batch_with_a_bad_record_is_not_written_at_all(target: Target) -> None:
    target.sql("CREATE TABLE orders (id BIGINT PRIMARY KEY, name VARCHAR(5) NOT NULL)")
    sink = target.sink(insert_mode="insert", fields_whitelist="id,name")
    sink.begin(["orders"])
    writer = sink.open(ORDERS, 0)
    with pytest.raises(BadRecords):
        writer.write(records(0, [record(1), record(2, None)]))
    assert target.sql("SELECT * FROM orders") == [] and sink.positions([ORDERS]) == {}
    writer.write(records(0, [record(1)]))
    with pytest.raises(BadRecords):
        writer.write(records(1, [record(1)]))
    writer.write(records(2, [record(2)]))
    assert target.sql("SELECT id FROM orders ORDER BY id") == [(1,), (2,)]
    writer.close()


def test_tables_get_columns_that_they_lack_only_if_asked(target: Target) -> None:
    target.sql("CREATE TABLE orders (id BIGINT PRIMARY KEY)")
    writer = target.sink(insert_mode="upsert", pk_mode="record_key").open(ORDERS, 0)
    with pytest.raises(ConnectorFailure, match=r"no column at, data, day, name, ok, price.*auto\.evolve=true"):
        writer.write(records(0, [record(1)]))
    sink = target.sink(**UPSERT)
    sink.begin(["orders"])
    writer = sink.open(ORDERS, 0)
    writer.write(records(0, [record(1, "grown")]))
    assert target.sql("SELECT id, name FROM orders") == [(1, "grown")]
    target.sql("ALTER TABLE orders DROP COLUMN name")
    strict = target.sink(insert_mode="upsert", pk_mode="record_key").open(ORDERS, 1)
    with pytest.raises(ConnectorFailure, match=r"no column name"):
        strict.write(records(1, [record(2)]))
    writer.close()


def test_a_column_that_disappears_while_the_sink_runs_is_named(target: Target) -> None:
    sink = target.sink(insert_mode="upsert", pk_mode="record_key", auto_create="true")
    sink.begin(["orders"])
    writer = sink.open(ORDERS, 0)
    writer.write(records(0, [record(1)]))
    target.sql("ALTER TABLE orders DROP COLUMN name")
    with pytest.raises(ConnectorFailure, match="name"):
        writer.write(records(1, [record(2)]))
    with pytest.raises(ConnectorFailure, match=r"no column name.*auto\.evolve"):
        writer.write(records(1, [record(2)]))
    assert sink.positions([ORDERS]) == {ORDERS: 1}
    writer.close()


ODD = ("address.city", "100%", "%s", 'a"b', "a`b", "select", "größe", "a b", ":p", "?")


@pytest.mark.parametrize("mode", ["insert", "upsert", "update"])
def test_columns_may_have_any_name(target: Target, mode: str) -> None:
    schema = struct(None, [("id", Schema(SchemaType.INT64)), *((name, Schema(SchemaType.INT64, True)) for name in ODD)])
    key = struct(None, [("the.id", Schema(SchemaType.INT64))])

    def batch(first: int, values: list[dict[str, Any] | None]) -> Records:
        made = records(first, values, [1] * len(values), schema)
        return replace(made, keys=Column(key, pa.array([{"the.id": 1}] * len(values), arrow_type(key))))

    def row(number: int) -> dict[str, Any]:
        return {"id": 1, **dict.fromkeys(ODD, number)}

    writer = target.sink(**{**UPSERT, "fields.whitelist": f"id,{ODD[0]}"}).open(ORDERS, 0)
    target.sink(**UPSERT).begin(["orders"])
    writer.write(batch(0, [row(1)]))
    writer.close()
    writer = target.sink(**{**UPSERT, "insert.mode": mode}).open(ORDERS, 1)
    writer.write(batch(1, [None, row(2)] if mode == "insert" else [row(2)]))
    found = target.sql("SELECT * FROM orders")
    assert len(found) == 1 and sorted(found[0]) == [1, 1] + [2] * len(ODD)
    writer.write(batch(3, [None]))
    assert target.sql("SELECT * FROM orders") == []
    writer.close()


def test_upserts_need_a_key_in_the_table(target: Target) -> None:
    target.sql("CREATE TABLE orders (id BIGINT, name VARCHAR(20))")
    with pytest.raises(ConnectorFailure, match=r"insert\.mode=upsert needs a primary key .* on \(id\)"):
        target.sink(insert_mode="upsert", pk_mode="record_key", pk_fields="id").begin(["orders"])
    writer = target.sink(insert_mode="upsert", pk_mode="record_key", fields_whitelist="name").open(ORDERS, 0)
    with pytest.raises(ConnectorFailure, match="ADD PRIMARY KEY"):
        writer.write(records(0, [record(1)]))


def test_updates_change_rows_that_are_there(target: Target) -> None:
    target.sql("CREATE TABLE orders (id BIGINT PRIMARY KEY, name VARCHAR(20))")
    target.sql("INSERT INTO orders VALUES (1, 'old')")
    sink = target.sink(insert_mode="update", pk_mode="record_value", pk_fields="id", fields_whitelist="name")
    sink.begin(["orders"])
    writer = sink.open(ORDERS, 0)
    writer.write(records(0, [record(1, "new"), record(2, "nowhere")]))
    writer.close()
    assert target.sql("SELECT * FROM orders") == [(1, "new")]


def test_the_place_in_the_topic_can_be_the_key(target: Target) -> None:
    sink = target.sink(insert_mode="upsert", pk_mode="kafka", auto_create="true", fields_whitelist="name")
    sink.begin(["orders"])
    writer = sink.open(ORDERS, 0)
    writer.write(records(3, [record(1, "a"), record(1, "b")]))
    writer.close()
    assert target.sql("SELECT * FROM orders ORDER BY name") == [("orders", 0, 3, "a"), ("orders", 0, 4, "b")]


def test_wrong_passwords_and_databases_that_are_not_there_are_told_in_a_sentence(target: Target) -> None:
    if target.config["connection.url"].startswith(("jdbc:sqlite", "jdbc:duckdb")):
        pytest.skip("SQLite and DuckDB have no server")
    wrong = JdbcSink({**target.config, "connection.password": "wrong"})
    with pytest.raises(ConnectorFailure, match=r"check connection\.user and connection\.password"):
        wrong.begin(["orders"])
    url = target.config["connection.url"]
    with pytest.raises(ConnectorFailure, match=r"no such database.*check connection\.url"):
        JdbcSink({**target.config, "connection.url": url.rsplit("/", 1)[0] + "/nowhere"}).positions([ORDERS])
    nobody = url.replace(url.split(":")[3].split("/")[0], str(free_ports(1)[0]))
    with pytest.raises(Outage, match=r"cannot be reached.*check connection\.url"):
        JdbcSink({**target.config, "connection.url": nobody}).begin(["orders"])


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"insert.mode": "upsert"}, "set pk.mode"),
        ({"pk.mode": "record_value"}, "needs pk.fields"),
        ({"delete.enabled": "true"}, "needs pk.mode=record_key"),
        ({"insert.mode": "merge"}, "insert, upsert, update"),
        ({"connection.url": "jdbc:oracle:thin:@x"}, "no driver for oracle"),
        ({"connection.url": "nonsense"}, "neither a JDBC URL"),
    ],
)
def test_settings_that_do_not_go_together_are_named(settings: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigInvalid, match=words.replace(".", r"\.")):
        JdbcSink({"name": "x", "connection.url": "jdbc:sqlite:x.db", **settings})


def test_a_transaction_that_a_deadlock_has_ended_is_done_again(mariadb: Database) -> None:
    target = Target(mariadb.url, mariadb.server.login)
    sink = target.sink(**{name.replace(".", "_"): value for name, value in UPSERT.items()})
    sink.begin(["orders"])
    writer = sink.open(ORDERS, 0)
    writer.write(records(0, [record(number) for number in range(200)]))
    other = mariadb.connect()
    cursor = other.cursor()
    cursor.execute("BEGIN")
    # The server ends the one that has changed less.
    cursor.execute("UPDATE orders SET name = 'other' WHERE id >= 2")
    failures: list[BaseException] = []

    def write() -> None:
        try:
            writer.write(records(200, [record(1, "new"), record(2, "new")]))
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    deadline = time.monotonic() + 60
    waiting = "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'"
    while mariadb.sql(waiting) == [(0,)]:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    cursor.execute("UPDATE orders SET name = 'other' WHERE id = 1")
    cursor.execute("COMMIT")
    other.close()
    thread.join(60)
    writer.close()
    assert not failures
    assert mariadb.sql("SELECT id, name FROM orders WHERE id <= 3 ORDER BY id") == [
        (0, "x"),
        (1, "new"),
        (2, "new"),
        (3, "other"),
    ]


def test_tasks_may_make_a_table_and_its_columns_at_the_same_moment(target: Target) -> None:
    """IF NOT EXISTS is no promise: of two tasks one would be told that its record is bad."""
    sinks = [target.sink(**UPSERT) for _ in range(4)]
    wider = struct(None, [("id", Schema(SchemaType.INT64)), ("more", Schema(SchemaType.STRING, optional=True))])
    failures: list[BaseException] = []

    def write(number: int, together: threading.Barrier) -> None:
        writer = sinks[number].open(TopicPartition("orders", number), 0)
        try:
            together.wait(60)
            writer.write(records(0, [record(number)]))
            together.wait(60)
            writer.write(records(1, [{"id": number, "more": "m"}], schema=wider))
        except BaseException as error:
            failures.append(error)
            together.abort()
        finally:
            writer.close()

    for _ in range(5):
        sinks[0].begin(["orders"])
        together = threading.Barrier(len(sinks))
        threads = [threading.Thread(target=write, args=(number, together)) for number in range(len(sinks))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert failures == []
        assert [row[0] for row in target.sql("SELECT id FROM orders ORDER BY id")] == [0, 1, 2, 3]
        target.sql("DROP TABLE orders")
        target.sql("DROP TABLE ottla_connect_positions")
