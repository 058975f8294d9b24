"""Rows change at random while the reader, the worker and the server die at random: the topics have every change of a key
once and in order, and as tables they equal the database's."""

from __future__ import annotations

import random

import pytest

from ottla.connect.api import Outage
from ottla.connect.databases.postgres.source import PostgresSource
from tests.connect.databases.driving import Driven
from tests.connect.databases.model import Writer
from tests.support.databases import Postgres

PREFIX = "shop"


@pytest.mark.parametrize("seed", [1, 2])
def test_every_change_comes_once_and_in_order_whatever_dies(own_postgres: Postgres, seed: int) -> None:
    play(own_postgres, seed, steps=60)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(10, 14))
def test_every_change_comes_once_through_many_kills(own_postgres: Postgres, seed: int) -> None:
    kills = play(own_postgres, seed, steps=400)
    assert kills["reader"] + kills["server"] >= 30, kills


def play(server: Postgres, seed: int, steps: int) -> dict[str, int]:
    chance = random.Random(seed)
    database = server.database()
    writer = Writer(database, seed)
    writer.create()
    # So that a large value which did not change is told all the same.
    database.sql(*(f"ALTER TABLE {table} REPLICA IDENTITY FULL" for table in ("numbers", "words", "pairs")))
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
        "topic.prefix": PREFIX,
        "slot.name": database.name,
        "signal.data.collection": "public.signals",
        "table.exclude.list": "public.signals",
        "snapshot.fetch.size": "7",
        "max.batch.size": "5",
        "poll.interval.ms": "20",
    }
    driven = Driven(lambda: PostgresSource(config))
    kills = {"reader": 0, "server": 0}
    try:
        for step in range(steps):
            act(chance, writer, step)
            try:
                for piece in driven.pieces():
                    luck = chance.random()
                    if luck < 0.1:
                        kills["reader"] += 1
                        driven.die()
                        break
                    driven.publish(piece)
                    if luck < 0.15:
                        kills["reader"] += 1
                        driven.die()
                        break
                    if luck < 0.5:
                        act(chance, writer, step)
                    if luck > 0.8:
                        driven.tell()
                        break
                else:
                    driven.tell()
            except Outage:
                pass
            if chance.random() < 0.03:
                kills["server"] += 1
                server.kill()
                server.start()
                writer.lost()
        writer.commit()
        database.sql("INSERT INTO marks VALUES (1)")
        driven.until(lambda: bool(driven.of(f"{PREFIX}.public.marks")))
        writer.check(driven.topics, f"{PREFIX}.public")
    finally:
        driven.die()
        writer.close()
    return kills


def act(chance: random.Random, writer: Writer, step: int) -> None:
    writer.change(chance.randrange(4))
    if chance.random() < 0.2:
        writer.large_transaction(chance.randrange(1, 15))
    if chance.random() < 0.2:
        writer.commit()
    if chance.random() < 0.02:
        data = '{"data-collections": ["public.numbers", "public.pairs"]}'
        writer.database.sql(f"INSERT INTO signals VALUES ('{chance.random()}', 'execute-snapshot', '{data}')")
