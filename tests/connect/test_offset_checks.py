"""Offsets that a person gives to a source are looked at before they are written: one from which it cannot go on would
fail it again and again. Without a cluster and without Spark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.connect.api import Source
from ottla.connect.connectors.file_stream import FileStreamSource
from ottla.connect.connectors.files.source import FilesSource
from ottla.connect.connectors.generator import DataGenerator
from ottla.connect.databases.mysql.source import MysqlSource
from ottla.connect.databases.postgres.source import PostgresSource
from ottla.connect.databases.tables.source import JdbcSource
from ottla.connect.storage import configs, statuses
from ottla.connect.worker import moving
from ottla.connect.worker.errors import Refused

STREAM = {"file": "/a", "topic": "t"}
FILES = {"path": "/tmp", "format": "csv", "topic": "t"}
JDBC = {"connection.url": "jdbc:sqlite:/nowhere.db", "mode": "incrementing", "topic.prefix": "x-"}
DATABASE = {"database.hostname": "h", "database.user": "u", "topic.prefix": "shop"}
POSTGRES = {**DATABASE, "database.dbname": "d"}
SHOP = {"server": "shop"}
CASES: list[tuple[type[Source], dict[str, str], Any, Any, str | None]] = [
    (FileStreamSource, STREAM, {"filename": "/a"}, {"position": 5}, None),
    (FileStreamSource, STREAM, {"filename": "/a"}, {"position": "5"}, "'position' must be a whole number"),
    (FileStreamSource, STREAM, {"filename": "/a"}, {"position": -1}, "at least 0, and is -1"),
    (FileStreamSource, STREAM, {"filename": "/a"}, {"position": True}, "and is true"),
    (FileStreamSource, STREAM, {"filename": "/a"}, {}, "must have the key 'position'"),
    (FileStreamSource, STREAM, {"file": "/a"}, {"position": 5}, "must have the key 'filename'"),
    (FilesSource, FILES, {"file": "/tmp/a"}, {"position": 9, "done": True}, None),
    (FilesSource, FILES, {"path": "/tmp/a"}, {"position": 9}, "must have the key 'file'"),
    (FilesSource, FILES, {"file": "/tmp/a"}, {"row_group": None}, "'row_group' must be"),
    (DataGenerator, {"topic": "t"}, {"generator": 0, "of": 1}, {"next": 7}, None),
    (DataGenerator, {"topic": "t"}, {"generator": 0, "of": 1}, {"next": 0.5}, "'next' must be"),
    (JdbcSource, JDBC, {"table": "a"}, {"incrementing": -7, "timestamp": 5}, None),
    (JdbcSource, JDBC, {"table": "a"}, {"incrementing": "x"}, "'incrementing' must be"),
    (JdbcSource, JDBC, {"table": "a"}, {"timestamp": "now"}, "'timestamp' must be"),
    (JdbcSource, JDBC, {}, {"incrementing": 1}, "'table' or 'query'"),
    (PostgresSource, POSTGRES, SHOP, {"lsn": 5, "tables": ["public.a"]}, None),
    (PostgresSource, POSTGRES, SHOP, {"lsn": "0/16B"}, "'lsn' must be"),
    (PostgresSource, POSTGRES, {"server": "other"}, {"lsn": 5}, 'must be {"server": "shop"}'),
    (MysqlSource, DATABASE, SHOP, {"file": "binlog.1", "pos": 4}, None),
    (MysqlSource, DATABASE, SHOP, {"pos": 4}, "'file' and 'pos'"),
    (MysqlSource, DATABASE, SHOP, {"file": "binlog.1", "pos": 4, "tables": "a"}, "'tables' must be"),
]


@pytest.mark.parametrize(("source", "config", "partition", "offset", "words"), CASES)
def test_an_offset_says_what_is_wrong_with_it(
    source: type[Source], config: dict[str, str], partition: Any, offset: Any, words: str | None
) -> None:
    told = source(config).check_offset(partition, offset)
    assert told is None if words is None else words in (told or ""), told


def test_what_is_wrong_is_refused_before_anything_is_written() -> None:
    config = {"connector.class": "FileStreamSource", "name": "in", **STREAM}
    worker: Any = SimpleNamespace(
        settings=SimpleNamespace(defaults={}, providers={}),
        configs=SimpleNamespace(configs={"in": config}, target=lambda name: configs.STOPPED),
        statuses=SimpleNamespace(connectors={"in": SimpleNamespace(state=statuses.STOPPED)}),
    )
    good = {"partition": {"filename": "/a"}, "offset": {"position": 1}}
    bad = {"partition": {"filename": "/a"}, "offset": {"position": "x"}}
    with pytest.raises(Refused, match="'position' must be a whole number") as caught:
        moving.alter(worker, "in", {"offsets": [good, bad]})
    assert caught.value.status == 400
