"""The topics have every change of a key once and in order, and as tables they equal PostgreSQL's, whatever dies."""

from __future__ import annotations

import random

import pytest

from ottla.connect.databases.postgres.source import PostgresSource
from tests.connect.databases.model import TABLES, Writer
from tests.connect.databases.playing import play
from tests.support.databases import Postgres


@pytest.mark.parametrize("seed", [1, 2])
def test_every_change_comes_once_and_in_order_whatever_dies(own_postgres: Postgres, seed: int) -> None:
    play_postgres(own_postgres, seed, steps=60)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(10, 14))
def test_every_change_comes_once_through_many_kills(own_postgres: Postgres, seed: int) -> None:
    kills = play_postgres(own_postgres, seed, steps=400)
    assert kills["reader"] + kills["server"] >= 30, kills


def play_postgres(server: Postgres, seed: int, steps: int) -> dict[str, int]:
    database = server.database()
    writer = Writer(database, seed)
    writer.create()
    # So that a large value which did not change is told all the same.
    database.sql(*(f"ALTER TABLE {table} REPLICA IDENTITY FULL" for table in TABLES))
    database.sql("CREATE TABLE signals (id VARCHAR(40) PRIMARY KEY, type VARCHAR(32), data TEXT)")
    database.sql("CREATE TABLE marks (id INT PRIMARY KEY)")
    writer.change(60)
    # A slot is made only when all transactions that are open have ended.
    database.sql("CREATE PUBLICATION ottla_publication FOR TABLE numbers, words, pairs, signals, marks")
    database.sql(f"SELECT pg_create_logical_replication_slot('{database.name}', 'pgoutput')")
    writer.large_transaction(10)
    config = {
        **database.settings,
        "name": "shop",
        "database.dbname": database.name,
        "topic.prefix": "shop",
        "slot.name": database.name,
        "signal.data.collection": "public.signals",
        "snapshot.fetch.size": "7",
        "max.batch.size": "5",
        "poll.interval.ms": "20",
    }

    def signal(chance: random.Random) -> None:
        if chance.random() < 0.02:
            data = '{"data-collections": ["public.numbers", "public.pairs"]}'
            database.sql(f"INSERT INTO signals VALUES ('{chance.random()}', 'execute-snapshot', '{data}')")

    return play(server, writer, lambda: PostgresSource(config), seed, steps, "shop.public", signal)
