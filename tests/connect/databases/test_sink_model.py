"""The sink's table equals the topic, whatever dies: tasks before and after their commit, tasks that are only slow, and
the database."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from ottla.common.ids import TopicPartition
from ottla.connect.api import Column, Outage, Records, Schema, SchemaType
from ottla.connect.databases.schemas import arrow_type, struct
from ottla.connect.databases.tables.sink import JdbcSink
from tests.support.databases import PASSWORD, Database, Mariadb, Postgres

KEY = struct(None, [("id", Schema(SchemaType.INT32))])
VALUE = struct(None, [("id", Schema(SchemaType.INT32)), ("version", Schema(SchemaType.INT64))])


def records(topic: list[tuple[int, int | None]], begin: int, end: int) -> Records:
    some = topic[begin:end]
    values = [None if version is None else {"id": key, "version": version} for key, version in some]
    return Records(
        pa.repeat(pa.scalar("t"), len(some)),
        pa.array([0] * len(some), pa.int32()),
        pa.array([0] * len(some), pa.int64()),
        Column(KEY, pa.array([{"id": key} for key, _ in some], arrow_type(KEY))),
        Column(VALUE, pa.array(values, arrow_type(VALUE))),
        pa.array(range(begin, end), pa.int64()),
    )


def test_the_table_equals_the_topic_of_postgres(own_postgres: Postgres) -> None:
    play(own_postgres, own_postgres.database(), seed=1, steps=25)


def test_the_table_equals_the_topic_of_mariadb(own_mariadb: Mariadb) -> None:
    play(own_mariadb, own_mariadb.database(), seed=1, steps=12)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(10, 13))
def test_the_table_equals_the_topic_through_many_kills(own_postgres: Postgres, seed: int) -> None:
    assert play(own_postgres, own_postgres.database(), seed, steps=400) >= 30


def play(server: Postgres | Mariadb, database: Database, seed: int, steps: int) -> int:
    """How many tasks and servers died. `insert` mode writes each record as it is: a second one would be seen."""
    chance = random.Random(seed)
    topic: list[tuple[int, int | None]] = []
    config = {
        "name": "s",
        "connection.url": database.url,
        "connection.user": server.login,
        "connection.password": PASSWORD,
    }
    upsert = JdbcSink(
        {**config, "insert.mode": "upsert", "pk.mode": "record_key", "delete.enabled": "true", "auto.create": "true"}
    )
    log = JdbcSink({**config, "name": "log", "auto.create": "true", "table.name.format": "log_of_${topic}"})
    partition = TopicPartition("t", 0)
    for sink in (upsert, log):
        sink.begin(["t"])
    zombies, kills = [], 0
    for step in range(steps):
        topic += [
            (chance.randrange(20), None if chance.random() < 0.2 else step * 100 + n)
            for n in range(chance.randrange(30))
        ]
        for sink in (upsert, log):
            seen = topic if sink is upsert else [(key, version or 0) for key, version in topic]
            try:
                position = sink.positions([partition]).get(partition, 0)
                writer = sink.open(partition, position)
                while position < len(topic):
                    end = min(len(topic), position + chance.randrange(1, 20))
                    writer.write(records(seen, position, end))
                    if chance.random() < 0.1:
                        # It is thought dead, and comes back later with what it last had.
                        zombies.append((writer, records(seen, position, end)))
                        kills += 1
                        break
                    position = end
                else:
                    writer.close()
            except Outage:
                kills += 1
        if zombies and chance.random() < 0.3:
            late, old = zombies.pop()
            with pytest.raises(Outage):
                late.write(old)
            late.close()
        if chance.random() < 0.05:
            kills += 1
            server.kill()
            server.start()
    for sink in (upsert, log):
        seen = topic if sink is upsert else [(key, version or 0) for key, version in topic]
        position = sink.positions([partition]).get(partition, 0)
        writer = sink.open(partition, position)
        writer.write(records(seen, position, len(topic)))
        writer.close()
    for late, _ in zombies:
        late.close()
    table = {key: version for key, version in topic if version is not None}
    last = dict(topic)
    assert dict(database.sql("SELECT id, version FROM t")) == {
        k: v for k, v in table.items() if last[k] is not None and v == last[k]
    }
    assert sorted(database.sql("SELECT id, version FROM log_of_t")) == sorted(
        (key, version or 0) for key, version in topic
    )
    return kills
