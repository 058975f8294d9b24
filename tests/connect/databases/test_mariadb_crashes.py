"""What MariaDB promises after a crash, and what the topics have then: always what the binlog has. Its tables have the
same only with innodb_flush_log_at_trx_commit=1 and sync_binlog=1."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import time

import pytest

from ottla.connect.databases.mysql.source import MysqlSource
from tests.connect.databases.driving import Driven
from tests.support.databases import Database, Mariadb

pytestmark = pytest.mark.slow
Table = dict[int, int]


class Told:
    """What the server has said yes to."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.rows: Table = {}
        self._version = 0
        database.sql("CREATE TABLE t (id INT PRIMARY KEY, version INT)", "CREATE TABLE marks (id INT PRIMARY KEY)")

    def change(self, chance: random.Random, seconds: float) -> None:
        end = time.monotonic() + seconds
        with self.database.session() as cursor:
            while time.monotonic() < end:
                key = chance.randrange(50)
                self._version += 1
                if key not in self.rows:
                    cursor.execute("INSERT INTO t VALUES (%s, %s)", (key, self._version))
                elif chance.random() < 0.4:
                    cursor.execute("DELETE FROM t WHERE id = %s", (key,))
                    del self.rows[key]
                    continue
                else:
                    cursor.execute("UPDATE t SET version = %s WHERE id = %s", (self._version, key))
                self.rows[key] = self._version


def of_the_table(database: Database) -> Table:
    return dict(database.sql("SELECT id, version FROM t"))


def of_the_binlog(server: Mariadb) -> Table:
    """As MariaDB's own program reads it."""
    program = shutil.which("mariadb-binlog")
    assert program is not None
    files = sorted(str(path) for path in (server.folder / "data").glob("binlog.0*"))
    command = [program, "--no-defaults", "--base64-output=decode-rows", "--verbose", *files]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows: Table = {}
    # Each row is a verb with its table, then `@1=` and so on, of an update first as it was and then as it is.
    for verb, body in re.findall(r"^### (\w+)[^@\n]*`t`\n((?:###\s.*[^`]\n)+)", told, re.MULTILINE):
        key, version = (int(re.findall(rf"@{number}=(\d+)", body)[-1]) for number in (1, 2))
        if verb == "DELETE":
            rows.pop(key, None)
        else:
            rows[key] = version
    return rows


def of_the_topic(driven: Driven, topic: str) -> Table:
    rows: Table = {}
    for each in driven.of(topic):
        if each.value is None or each.value["after"] is None:
            rows.pop(each.key["id"], None)
        else:
            rows[each.key["id"]] = each.value["after"]["version"]
    return rows


def crash(server: Mariadb, chance: random.Random, crashes: int) -> bool:
    """Whether tables and binlog were the same after each crash. Ends at the first at which they were not."""
    told = Told(server.database())
    config = {
        **told.database.settings,
        "name": "shop",
        "database.include.list": told.database.name,
        "topic.prefix": "shop",
        "poll.interval.ms": "20",
    }
    driven = Driven(lambda: MysqlSource(config))
    begin = f"shop.{told.database.name}"
    try:
        driven.round()
        for number in range(crashes):
            told.change(chance, chance.uniform(0.2, 1.5))
            server.kill()
            server.start()
            driven.die()
            told.database.sql(f"INSERT INTO marks VALUES ({number})")
            driven.until(lambda number=number: len(driven.of(f"{begin}.marks")) > number)
            assert of_the_binlog(server) == told.rows, "the binlog has what was acknowledged"
            assert of_the_topic(driven, f"{begin}.t") == told.rows, "and so has the topic"
            if of_the_table(told.database) != told.rows:
                return False
    finally:
        driven.die()
    return True


@pytest.mark.timeout(600)
def test_tables_topic_and_binlog_agree_where_the_server_promises_it(own_mariadb: Mariadb) -> None:
    assert crash(own_mariadb, random.Random(1), crashes=12)


@pytest.mark.timeout(600)
def test_a_server_that_promises_less_loses_rows_that_its_binlog_and_the_topic_have(
    forgetful_mariadb: Mariadb,
) -> None:
    assert not crash(forgetful_mariadb, random.Random(1), crashes=12)
