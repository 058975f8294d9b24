"""Rows are read again when a signal asks for it, while the stream goes on, on PostgreSQL and on MariaDB."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from ottla.connect.databases.mysql import session as mysql_session
from ottla.connect.databases.mysql.source import MysqlSource
from ottla.connect.databases.postgres.source import PostgresSource
from tests.connect.databases.driving import Driven
from tests.support.databases import Database, Postgres


class Shop:
    """Tables `orders` and `lines`, the latter without a key, and one of signals."""

    def __init__(self, database: Database) -> None:
        self.database = database
        is_postgres = isinstance(database.server, Postgres)
        self.schema = "public" if is_postgres else database.name
        database.sql(
            "CREATE TABLE orders (id INT PRIMARY KEY, version INT)",
            "CREATE TABLE signals (id VARCHAR(40) PRIMARY KEY, type VARCHAR(32), data TEXT)",
            "INSERT INTO orders VALUES (1, 1), (2, 1), (3, 1), (4, 1), (5, 1)",
        )
        config = {
            **database.settings,
            "name": "shop",
            "topic.prefix": "shop",
            "signal.data.collection": f"{self.schema}.signals",
            "snapshot.fetch.size": "2",
            "poll.interval.ms": "50",
        }
        if is_postgres:
            own = {"database.dbname": database.name, "slot.name": database.name}
            self.driven = Driven(lambda: PostgresSource({**config, **own}))
        else:
            self.driven = Driven(lambda: MysqlSource({**config, "database.include.list": database.name}))

    def signal(self, number: str, data: str, kind: str = "execute-snapshot") -> None:
        self.database.sql(f"INSERT INTO signals VALUES ('{number}', '{kind}', '{data}')")

    def named(self, *tables: str) -> str:
        return json.dumps({"data-collections": [f"{self.schema}.{table}" for table in tables], "type": "incremental"})

    def until_idle(self) -> None:
        while self.driven.round():
            pass

    def rows(self, table: str = "orders") -> list[tuple[str, int, int]]:
        found = self.driven.of(f"shop.{self.schema}.{table}")
        return [(each.value["op"], each.value["after"]["id"], each.value["after"]["version"]) for each in found]


@pytest.fixture(params=["postgres", "mariadb"])
def shop(request: pytest.FixtureRequest) -> Any:
    made = Shop(request.getfixturevalue(request.param))
    yield made
    made.driven.die()


def test_rows_come_again_though_nobody_writes_and_before_changes_that_follow(shop: Shop) -> None:
    shop.until_idle()
    first = [("r", number, 1) for number in range(1, 6)]
    assert shop.rows() == first
    shop.signal("1", shop.named("orders"))
    shop.database.sql("UPDATE orders SET version = 2 WHERE id = 3")
    shop.driven.until(lambda: len(shop.rows()) >= 11)
    shop.until_idle()
    again = shop.rows()[5:]
    # The change is told, and what is read again is not older.
    assert sorted(each for each in again if each[1] != 3) == [each for each in first if each[1] != 3]
    assert [each for each in again if each[1] == 3] in ([("u", 3, 2)], [("u", 3, 2), ("r", 3, 2)])
    shop.driven.die()
    shop.until_idle()
    assert shop.rows()[5:] == again


def test_the_reader_dies_between_rows_that_come_again(shop: Shop) -> None:
    shop.until_idle()
    shop.signal("1", shop.named("orders", "nowhere"))
    while len(shop.rows()) < 7:
        shop.driven.round_of_one_piece()
        shop.driven.die()
    shop.driven.until(lambda: len(shop.rows()) >= 10)
    shop.until_idle()
    assert shop.rows()[5:] == [("r", number, 1) for number in range(1, 6)]


def test_a_signal_that_cannot_be_understood_is_passed_over(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    wrong = ["", "no JSON", "null", "5", "[]", '{"data-collections": 5}', '{"data-collections": ["("]}', "{}"]
    shop.until_idle()
    with caplog.at_level(logging.WARNING, "ottla.connect"):
        for number, data in enumerate(wrong):
            shop.signal(str(number), data)
        shop.signal("log", shop.named("orders"), kind="log")
        shop.database.sql("INSERT INTO orders VALUES (6, 1)")
        shop.driven.until(lambda: len(shop.rows()) >= 6)
        shop.until_idle()
    assert shop.rows()[5:] == [("c", 6, 1)]
    assert caplog.text.count("A signal execute-snapshot was passed over") >= len(wrong)


def test_rows_are_those_of_a_moment_that_has_seen_what_is_out(
    mariadb: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that waits for its replicas shows a commit in the binlog before others can read it. Rows that are read
    in between lack what the stream does not bring any more."""
    shop = Shop(mariadb)
    read = mysql_session.SnapshotReader
    before = [read(shop.driven.make().settings)]
    mariadb.sql("UPDATE orders SET version = 2")
    monkeypatch.setattr(mysql_session, "SnapshotReader", lambda settings: before.pop() if before else read(settings))
    shop.until_idle()
    assert not before
    assert shop.rows() == [("r", number, 2) for number in range(1, 6)]
    shop.driven.die()
