"""The topics have every change of a key once and in order, and as tables they equal MariaDB's, whatever dies."""

from __future__ import annotations

import random

import pytest

from ottla.connect.databases.mysql.source import MysqlSource
from tests.connect.databases.model import Writer
from tests.connect.databases.playing import play
from tests.support.databases import Mariadb


def test_every_change_comes_once_and_in_order_whatever_dies(own_mariadb: Mariadb) -> None:
    play_mariadb(own_mariadb, seed=1, steps=25)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(10, 12))
def test_every_change_comes_once_through_many_kills(own_mariadb: Mariadb, seed: int) -> None:
    kills = play_mariadb(own_mariadb, seed, steps=300)
    assert kills["reader"] + kills["server"] >= 30, kills


def play_mariadb(server: Mariadb, seed: int, steps: int) -> dict[str, int]:
    database = server.database()
    writer = Writer(database, seed)
    writer.create()
    database.sql("CREATE TABLE marks (id INT PRIMARY KEY)")
    writer.change(60)
    writer.large_transaction(10)
    config = {
        **database.settings,
        "name": "shop",
        "database.include.list": database.name,
        "topic.prefix": "shop",
        "snapshot.fetch.size": "7",
        "max.batch.size": "5",
        "poll.interval.ms": "20",
    }

    def rotate(chance: random.Random) -> None:
        if chance.random() < 0.02:
            database.sql("FLUSH BINARY LOGS")

    return play(server, writer, lambda: MysqlSource(config), seed, steps, f"shop.{database.name}", rotate)
