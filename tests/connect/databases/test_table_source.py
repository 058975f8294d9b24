"""JdbcSource on PostgreSQL, MariaDB, SQLite and DuckDB: each new row once, whatever dies, and none is passed over."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from ottla.connect.api import ConnectorFailure, Outage
from ottla.connect.api.config import ConfigInvalid
from ottla.connect.api.data import DATE, DECIMAL, TIME, TIMESTAMP
from ottla.connect.databases.addresses import engine
from ottla.connect.databases.tables.source import JdbcSource
from tests.connect.databases.driving import Driven
from tests.support.databases import PASSWORD, why_no_mariadb, why_no_postgres
from tests.support.process import free_ports


class Origin:
    def __init__(self, url: str, user: str | None) -> None:
        self.config = {"name": "orders-source", "connection.url": url, "topic.prefix": "db-", "poll.interval.ms": "0"}
        if user:
            self.config |= {"connection.user": user, "connection.password": PASSWORD}
        self._engine = engine(
            {"connection.url": url, "connection.user": user, "connection.password": PASSWORD if user else None}
        )

    def driven(self, **settings: str) -> Driven:
        config = {**self.config, **{name.replace("_", "."): value for name, value in settings.items()}}
        return Driven(lambda: JdbcSource(config))

    def sql(self, *statements: str) -> None:
        with self._engine.begin() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)


@pytest.fixture(params=["postgres", "mariadb", "sqlite", "duckdb"])
def origin(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Origin]:
    if request.param == "duckdb":
        pytest.importorskip("duckdb", reason="DuckDB is not installed: pip install 'ottla[duckdb]'")
    if request.param in ("sqlite", "duckdb"):
        yield Origin(f"jdbc:{request.param}:{tmp_path / 'origin.db'}", None)
        return
    reason = why_no_postgres() if request.param == "postgres" else why_no_mariadb()
    if reason:
        pytest.skip(reason)
    database = request.getfixturevalue(request.param)
    yield Origin(database.url, database.server.login)


def ids(driven: Driven) -> list[int]:
    return [each.value["id"] for each in driven.topics]


def test_rows_with_a_higher_number_come_once_though_the_reader_dies(origin: Origin) -> None:
    origin.sql("CREATE TABLE orders (id INT PRIMARY KEY, name VARCHAR(20))")
    origin.sql(*(f"INSERT INTO orders VALUES ({n}, 'n{n}')" for n in range(1, 26)))
    driven = origin.driven(mode="incrementing", table_whitelist="orders", batch_max_rows="4")
    for piece in driven.pieces():
        if len(driven.topics) >= 8:
            driven.die()
            break
        driven.publish(piece)
    driven.round()
    assert ids(driven) == list(range(1, 26)) and driven.offset == {"incrementing": 25}
    assert driven.topics[0].topic == "db-orders" and driven.topics[0].key == {"id": 1}
    origin.sql("INSERT INTO orders VALUES (26, NULL)")
    assert driven.round() == 1 and driven.topics[-1].value == {"id": 26, "name": None}


def test_rows_of_one_moment_are_never_cut_apart(origin: Origin) -> None:
    origin.sql("CREATE TABLE orders (id INT PRIMARY KEY, moment TIMESTAMP NOT NULL)")
    moments = [f"2026-01-01 00:00:0{n // 4}" for n in range(10)]
    origin.sql(*(f"INSERT INTO orders VALUES ({n}, '{moment}')" for n, moment in enumerate(moments)))
    driven = origin.driven(
        mode="timestamp", timestamp_column_name="moment", table_whitelist="orders", batch_max_rows="3"
    )
    while driven.round_of_one_piece():
        driven.die()
    assert sorted(ids(driven)) == list(range(10))


def test_times_and_numbers_together_tell_what_is_new(origin: Origin) -> None:
    origin.sql("CREATE TABLE orders (id INT PRIMARY KEY, moment TIMESTAMP NOT NULL, name VARCHAR(9))")
    origin.sql(*(f"INSERT INTO orders VALUES ({n}, '2026-01-01 00:00:00', 'a')" for n in range(5)))
    driven = origin.driven(
        mode="timestamp+incrementing",
        timestamp_column_name="moment",
        incrementing_column_name="id",
        table_whitelist="orders",
        batch_max_rows="2",
    )
    while driven.round_of_one_piece():
        driven.die()
    assert ids(driven) == [0, 1, 2, 3, 4]
    origin.sql("UPDATE orders SET name = 'b', moment = '2026-01-02 00:00:00' WHERE id = 1")
    assert driven.round() == 1 and driven.topics[-1].value["name"] == "b"


def test_young_rows_wait_for_transactions_that_are_still_open(origin: Origin) -> None:
    origin.sql("CREATE TABLE orders (id INT PRIMARY KEY, moment TIMESTAMP NOT NULL)")
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M:%S")
    origin.sql(f"INSERT INTO orders VALUES (1, '2026-01-01 00:00:00'), (2, '{now}')")
    driven = origin.driven(
        mode="timestamp",
        timestamp_column_name="moment",
        table_whitelist="orders",
        timestamp_delay_interval_ms="3600000",
    )
    driven.round()
    assert ids(driven) == [1]


def test_a_table_larger_than_a_round_is_read_to_its_end_in_bulk_mode(origin: Origin) -> None:
    """A worker ends a round when it has enough, and may die after any."""
    origin.sql("CREATE TABLE orders (id INT PRIMARY KEY, name VARCHAR(20))")
    origin.sql(*(f"INSERT INTO orders VALUES ({n}, 'n{n}')" for n in range(1, 11)))
    driven = origin.driven(mode="bulk", table_whitelist="orders", batch_max_rows="3", poll_interval_ms="600000")
    for number in range(4):
        assert driven.round_of_one_piece()
        if number == 1:
            driven.die()
    assert ids(driven) == list(range(1, 11))
    assert driven.round() == 0 and driven.offset is not None and "rows" not in driven.offset


def test_all_rows_come_again_in_bulk_mode_and_queries_work_as_tables_do(origin: Origin) -> None:
    origin.sql("CREATE TABLE orders (id INT PRIMARY KEY, euro INT)", "INSERT INTO orders VALUES (1, 5), (2, 50)")
    driven = origin.driven(mode="bulk", table_whitelist="orders")
    assert (driven.round(), driven.round()) == (2, 2)
    query = origin.driven(
        mode="incrementing",
        query="SELECT id, euro * 2 AS double_euro FROM orders WHERE euro > 1",
        incrementing_column_name="id",
    )
    query.round()
    assert [each.value for each in query.topics] == [{"id": 1, "double_euro": 10}, {"id": 2, "double_euro": 100}]
    assert query.topics[0].topic == "db-" and query.round() == 0


def test_types_become_connects(origin: Origin) -> None:
    origin.sql(
        "CREATE TABLE orders (id INT PRIMARY KEY, price NUMERIC(10,2) NOT NULL, day DATE, clock TIME, "
        "moment TIMESTAMP NULL, small SMALLINT, big BIGINT, f FLOAT, note TEXT)"
    )
    origin.sql(
        "INSERT INTO orders VALUES (1, 12.50, '2026-02-03', '04:05:06', '2026-02-03 04:05:06', 7, "
        "5000000000, 0.5, 'ä')",
        "INSERT INTO orders VALUES (2, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    )
    driven = origin.driven(mode="incrementing", table_whitelist="orders")
    driven.round()
    assert driven.topics[0].value == {
        "id": 1,
        "price": Decimal("12.50"),
        "day": datetime.date(2026, 2, 3),
        "clock": datetime.time(4, 5, 6),
        "moment": datetime.datetime(2026, 2, 3, 4, 5, 6, tzinfo=datetime.UTC),
        "small": 7,
        "big": 5_000_000_000,
        "f": 0.5,
        "note": "ä",
    }
    schema = driven.batches[0].values.schema
    assert schema is not None
    names = {each.name: (each.schema.name, each.schema.optional) for each in schema.fields}
    assert names["price"] == (DECIMAL, False) and names["day"] == (DATE, True) and names["clock"] == (TIME, True)
    assert names["moment"] == (TIMESTAMP, True) and names["note"] == (None, True) and names["id"] == (None, False)


def test_what_cannot_work_is_told_in_a_sentence_that_names_the_setting(origin: Origin) -> None:
    origin.sql("CREATE TABLE orders (id INT PRIMARY KEY, moment TIMESTAMP NULL)")
    for settings, words in (
        ({"table_whitelist": "nowhere"}, r"no table nowhere.*table\.whitelist"),
        (
            {"table_whitelist": "orders", "incrementing_column_name": "gone"},
            r"no column gone, which incrementing\.column\.name",
        ),
        (
            {"table_whitelist": "orders", "mode": "timestamp", "timestamp_column_name": "moment"},
            r"may be null.*validate\.non\.null",
        ),
        ({"query": "SELECT nonsense"}, "nonsense"),
    ):
        with pytest.raises((ConnectorFailure, ConfigInvalid), match=words):
            origin.driven(**{"mode": "incrementing", "incrementing_column_name": "id", **settings}).round()
    if not origin.config["connection.url"].startswith(("jdbc:sqlite", "jdbc:duckdb")):
        with pytest.raises(ConnectorFailure, match=r"connection\.password"):
            origin.driven(mode="bulk", connection_password="wrong").round()
        with pytest.raises(Outage, match=r"connection\.url"):
            nobody = f"jdbc:postgresql://127.0.0.1:{free_ports(1)[0]}/x"
            origin.driven(mode="bulk", connection_url=nobody).round()


def test_settings_that_do_not_go_together_are_named() -> None:
    base = {"connection.url": "sqlite:///x.db", "topic.prefix": "x"}
    with pytest.raises(ConfigInvalid, match=r"timestamp\.column\.name"):
        JdbcSource({**base, "mode": "timestamp"})
    with pytest.raises(ConfigInvalid, match=r"query and table\.whitelist"):
        JdbcSource({**base, "mode": "bulk", "query": "SELECT 1", "table.whitelist": "x"})
    with pytest.raises(ConfigInvalid, match='"mode"'):
        JdbcSource(base)


@pytest.mark.parametrize(("mode", "support", "is_refused"), [
    ("bulk", "required", True),
    ("bulk", "REQUIRED ", True),
    ("bulk", "requested", False),
    ("bulk", None, False),
    ("timestamp", "required", False),
])  # fmt: skip
def test_what_is_read_again_each_time_is_not_called_exactly_once(
    mode: str, support: str | None, is_refused: bool
) -> None:
    config = {"connection.url": "jdbc:sqlite:/x", "topic.prefix": "p-", "mode": mode, "timestamp.column.name": "at"}
    given = config if support is None else {**config, "exactly.once.support": support}
    told = [error for value in JdbcSource.validate(given) for error in value.errors]
    assert any("exactly.once.support=required cannot be kept" in error for error in told) == is_refused, told
