"""`table.include.list` is changed while a connector is stopped, also in the middle of a transaction that is half
published: every change of a table that is wanted comes once, and a table that comes back is read anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from ottla.connect.api import Source
from ottla.connect.databases.mysql.source import MysqlSource
from ottla.connect.databases.postgres.source import PostgresSource
from tests.connect.databases.driving import Driven
from tests.support.databases import Database, Postgres


@pytest.fixture(params=["postgres", "mariadb"])
def database(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(request.param)
    found.sql(*(f"CREATE TABLE {name} (id INT PRIMARY KEY, version INT)" for name in "abc"))
    return found


class Reader:
    """Reads the tables that it is told to; what is published stays."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._is_postgres = isinstance(database.server, Postgres)
        self.begin = f"shop.{'public' if self._is_postgres else database.name}"
        self.driven = Driven(self._make("abc"))

    def _make(self, tables: str) -> Callable[[], Source]:
        config = {
            **self._database.settings,
            "name": "shop",
            "topic.prefix": "shop",
            "table.include.list": rf".*\.[{tables}]",
            "max.batch.size": "4",
            "poll.interval.ms": "20",
        }
        if self._is_postgres:
            own = {"database.dbname": self._database.name, "slot.name": self._database.name}
            return lambda: PostgresSource({**config, **own})
        return lambda: MysqlSource({**config, "database.include.list": self._database.name})

    def reads(self, tables: str) -> None:
        self.driven.die()
        self.driven.make = self._make(tables)

    def ids(self, table: str) -> list[int]:
        return [each.key["id"] for each in self.driven.of(f"{self.begin}.{table}")]

    def until_idle(self) -> None:
        while self.driven.round():
            pass

    def one_piece(self) -> None:
        while not self.driven.round_of_one_piece():
            pass  # a busy database has not sent it yet

    def has(self, *tables: str, ids: Iterable[int]) -> None:
        """These come, and nothing else after them."""
        wanted = list(ids)
        self.driven.until(lambda: all(len(self.ids(table)) >= len(wanted) for table in tables))
        self.until_idle()
        assert {table: self.ids(table) for table in tables} == dict.fromkeys(tables, wanted)


@pytest.fixture
def reader(database: Database) -> Reader:
    return Reader(database)


def one_transaction(database: Database, *statements: str) -> None:
    connection = database.connect()
    cursor = connection.cursor()
    for statement in ("BEGIN", *statements, "COMMIT"):
        cursor.execute(statement)
    connection.close()


@pytest.mark.parametrize("pieces", [1, 2, 3, 4])
def test_a_table_goes_in_the_middle_of_a_transaction(database: Database, reader: Reader, pieces: int) -> None:
    reader.until_idle()
    one_transaction(database, *(f"INSERT INTO {name} VALUES ({n}, {n})" for n in range(6) for name in "abc"))
    for _ in range(pieces):
        reader.one_piece()
    reader.reads("ac")
    reader.has("a", "c", ids=range(6))
    assert reader.ids("b") == list(range(len(reader.ids("b"))))
    database.sql("INSERT INTO a VALUES (6, 6)", "INSERT INTO c VALUES (6, 6)")
    reader.has("a", "c", ids=range(7))
    reader.driven.die()


@pytest.mark.parametrize("pieces", [1, 2, 3])
def test_a_table_comes_in_the_middle_of_a_transaction(database: Database, reader: Reader, pieces: int) -> None:
    reader.reads("ac")
    reader.until_idle()
    one_transaction(database, *(f"INSERT INTO {name} VALUES ({n}, {n})" for n in range(6) for name in "abc"))
    for _ in range(pieces):
        reader.one_piece()
    reader.reads("abc")
    reader.has("a", "b", "c", ids=range(6))
    reader.driven.die()


def test_a_table_that_was_left_out_for_a_while_is_read_anew(database: Database, reader: Reader) -> None:
    database.sql("INSERT INTO a VALUES (1, 1)", "INSERT INTO b VALUES (1, 1)")
    reader.until_idle()
    reader.reads("ac")
    database.sql("INSERT INTO b VALUES (2, 1)", "INSERT INTO a VALUES (2, 1)")
    reader.until_idle()
    reader.reads("abc")
    reader.until_idle()
    assert reader.ids("a") == [1, 2] and reader.ids("b") == [1, 1, 2]
    reader.driven.die()


def test_a_table_goes_in_the_middle_of_its_snapshot(database: Database, reader: Reader) -> None:
    database.sql(*(f"INSERT INTO {name} VALUES (1, 1)" for name in "abc"))
    assert reader.driven.round_of_one_piece() and reader.ids("a") == [1]
    reader.reads("ac")
    reader.until_idle()
    assert reader.ids("a") == reader.ids("c") == [1] and reader.ids("b") == []
    reader.driven.die()
