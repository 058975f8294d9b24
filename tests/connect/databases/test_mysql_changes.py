"""What MariaDB's binlog has beside plain transactions; and binlogs that are others than the one that was read."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from ottla.connect.api import ConnectorFailure, Outage
from ottla.connect.databases.mysql.source import MysqlSource
from tests.connect.databases.driving import Driven
from tests.support.databases import Database, Mariadb, why_no_mariadb


def test_a_prepared_transaction_is_refused_and_what_was_before_it_is_published(mariadb: Database) -> None:
    """Its rows are in the binlog though it may be rolled back."""
    mariadb.sql("CREATE TABLE orders (id INT PRIMARY KEY)")
    config = {
        **mariadb.settings,
        "name": "shop",
        "topic.prefix": "shop",
        "database.include.list": mariadb.name,
        "poll.interval.ms": "20",
    }
    driven = Driven(lambda: MysqlSource(config))
    driven.round()
    mariadb.sql(
        "INSERT INTO orders VALUES (1)",
        "XA START 'one'",
        "INSERT INTO orders VALUES (2)",
        "XA END 'one'",
        "XA PREPARE 'one'",
        "XA ROLLBACK 'one'",
        "INSERT INTO orders VALUES (3)",
    )
    with pytest.raises(ConnectorFailure, match="XA transaction at binlog"):
        driven.round()
    assert [each.key["id"] for each in driven.topics] == [1]
    with pytest.raises(ConnectorFailure, match="without XA PREPARE"):
        driven.round()
    assert [each.key["id"] for each in driven.topics] == [1]
    driven.die()


ANEW = "DELETE the connector's offsets while it is stopped, and it begins with a new snapshot"


def shop(server: Mariadb, **more: str) -> dict[str, str]:
    """A source of `shop.orders`, which has one row."""
    admin = Database(server, "mysql")
    admin.sql("CREATE DATABASE IF NOT EXISTS shop", "CREATE OR REPLACE TABLE shop.orders (id INT PRIMARY KEY)")
    admin.sql("INSERT INTO shop.orders VALUES (1)")
    return {
        **admin.settings,
        "name": "shop",
        "topic.prefix": "shop",
        "database.include.list": "shop",
        "poll.interval.ms": "20",
        **more,
    }


def ids(driven: Driven) -> list[int]:
    return [each.key["id"] for each in driven.topics]


def insert(server: Mariadb, *numbers: int) -> None:
    Database(server, "shop").sql(*(f"INSERT INTO orders VALUES ({number})" for number in numbers))


def next_second() -> None:
    """Files that are made in one second are told apart by their length only."""
    now = int(time.time())
    while int(time.time()) == now:
        time.sleep(0.02)


@pytest.fixture
def other_mariadb() -> Iterator[Any]:
    if (reason := why_no_mariadb()) is not None:
        pytest.skip(reason)
    server = Mariadb()
    try:
        next_second()
        server.start()
        yield server
    finally:
        server.stop()


@pytest.mark.parametrize("dies", [True, False])
@pytest.mark.parametrize("grows", [True, False])
def test_a_binlog_that_was_begun_anew_is_no_place_to_go_on_from(own_mariadb: Mariadb, dies: bool, grows: bool) -> None:
    """Its file has the name of the one that was read, and may be longer or shorter than that."""
    config = shop(own_mariadb)
    driven = Driven(lambda: MysqlSource(config))
    driven.round()
    insert(own_mariadb, 2)
    driven.until(lambda: ids(driven) == [1, 2])
    assert driven.offset is not None
    place = driven.offset["pos"]
    next_second()
    Database(own_mariadb, "mysql").sql("RESET MASTER")
    if dies:
        driven.die()
    insert(own_mariadb, *range(100, 200 if grows else 101))
    (row,) = Database(own_mariadb, "mysql").sql("SHOW MASTER STATUS")
    assert row[0] == driven.offset["file"] and (row[1] > place) == grows
    for _ in range(2):
        with pytest.raises(ConnectorFailure, match=ANEW):
            driven.round()
    assert ids(driven) == [1, 2], "nothing of an unrelated place"
    driven.die()
    driven.offset = None
    driven.round()
    assert ids(driven)[2:] == [1, 2, *range(100, 200 if grows else 101)]
    driven.die()


def test_a_server_that_was_replaced_is_noticed(own_mariadb: Mariadb, other_mariadb: Mariadb) -> None:
    """Another server answers at the same address: its files have the same names, and it calls itself 1 as well."""
    config = shop(own_mariadb)
    driven = Driven(lambda: MysqlSource(config))
    driven.round()
    insert(own_mariadb, 2)
    driven.until(lambda: ids(driven) == [1, 2])
    config.update(shop(other_mariadb))
    insert(other_mariadb, *range(300, 400))
    driven.die()
    with pytest.raises(ConnectorFailure, match=ANEW):
        driven.round()
    assert ids(driven) == [1, 2]
    driven.die()


def test_a_server_that_was_only_started_again_is_the_same(own_mariadb: Mariadb) -> None:
    """And so is one whose binlog has gone on in other files, or whose offset does not say which file it is of."""
    config = shop(own_mariadb)
    driven = Driven(lambda: MysqlSource(config))
    driven.round()
    insert(own_mariadb, 2)
    own_mariadb.kill()
    with pytest.raises(Outage):
        driven.round()
    own_mariadb.start()
    insert(own_mariadb, 3)
    driven.until(lambda: 3 in ids(driven))
    Database(own_mariadb, "mysql").sql("FLUSH BINARY LOGS")
    insert(own_mariadb, 4)
    driven.until(lambda: 4 in ids(driven))
    driven.die()
    insert(own_mariadb, 5)
    driven.until(lambda: 5 in ids(driven))
    assert driven.offset is not None and driven.offset["made"][0] == 1
    driven.die()
    driven.offset = {name: value for name, value in driven.offset.items() if name != "made"}
    insert(own_mariadb, 6)
    driven.until(lambda: 6 in ids(driven))
    assert ids(driven) == [1, 2, 3, 4, 5, 6] and "made" in driven.offset
    driven.die()
    admin = Database(own_mariadb, "mysql")
    admin.sql("FLUSH BINARY LOGS")
    # Files that a crash would need are kept for a while.
    deadline = time.monotonic() + 60
    while len(admin.sql("SHOW BINARY LOGS")) > 1:
        assert time.monotonic() < deadline
        (now,) = admin.sql("SHOW MASTER STATUS")
        admin.sql(f"PURGE BINARY LOGS TO '{now[0]}'")
    with pytest.raises(ConnectorFailure, match="has no file"):
        driven.round()
    driven.die()
