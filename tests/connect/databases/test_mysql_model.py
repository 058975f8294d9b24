"""The topics have every change of a key once and in order, and as tables they equal MariaDB's, whatever dies."""

from __future__ import annotations

import json
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
    database.sql("CREATE TABLE signals (id VARCHAR(40) PRIMARY KEY, type VARCHAR(32), data TEXT)")
    writer.change(60)
    writer.large_transaction(10)
    config = {
        **database.settings,
        "name": "shop",
        "database.include.list": database.name,
        "topic.prefix": "shop",
        "signal.data.collection": f"{database.name}.signals",
        "snapshot.fetch.size": "7",
        "max.batch.size": "5",
        "poll.interval.ms": "20",
    }

    def rotate_and_signal(chance: random.Random) -> None:
        if chance.random() < 0.02:
            database.sql("FLUSH BINARY LOGS")
        if chance.random() < 0.04:
            data = json.dumps({"data-collections": [f"{database.name}.(numbers|words)", f"{database.name}.pairs"]})
            database.sql(f"INSERT INTO signals VALUES ('{chance.random()}', 'execute-snapshot', '{data}')")

    return play(server, writer, lambda: MysqlSource(config), seed, steps, f"shop.{database.name}", rotate_and_signal)
