"""A game in which rows change at random while the reader, the worker and the server die at random."""

from __future__ import annotations

import random
from collections.abc import Callable

from ottla.connect.api import Outage, Source
from tests.connect.databases.driving import Driven
from tests.connect.databases.model import Writer
from tests.support.databases import Mariadb, Postgres


def play(
    server: Postgres | Mariadb,
    writer: Writer,
    make: Callable[[], Source],
    seed: int,
    steps: int,
    topics: str,
    other: Callable[[random.Random], None],
) -> dict[str, int]:
    """`topics`: what their names begin with. `other`: what else may happen. Returns how often which side was killed."""
    chance = random.Random(seed)
    driven = Driven(make)
    kills = {"reader": 0, "server": 0}
    try:
        for _ in range(steps):
            act(chance, writer, other)
            try:
                for piece in driven.pieces():
                    luck = chance.random()
                    if luck < 0.1:
                        # Before the transaction of the records and their offset, which never happens.
                        kills["reader"] += 1
                        driven.die()
                        break
                    driven.publish(piece)
                    if luck < 0.15:
                        # After it, and the source is not told.
                        kills["reader"] += 1
                        driven.die()
                        break
                    if luck < 0.5:
                        act(chance, writer, other)
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
        writer.database.sql("INSERT INTO marks VALUES (1)")
        driven.until(lambda: bool(driven.of(f"{topics}.marks")))
        writer.check(driven.topics, topics)
    finally:
        driven.die()
        writer.close()
    return kills


def act(chance: random.Random, writer: Writer, other: Callable[[random.Random], None]) -> None:
    writer.change(chance.randrange(4))
    if chance.random() < 0.2:
        writer.large_transaction(chance.randrange(1, 15))
    if chance.random() < 0.2:
        writer.commit()
    other(chance)
