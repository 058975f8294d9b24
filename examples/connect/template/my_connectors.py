"""A source and a sink to begin with: tables of a SQLite file that only grow.

`JournalSource` reads rows by their `rowid`, each table in a task of its own. `JournalSink` is exactly once:
it writes records and the offset behind them in one transaction of the database.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import pyarrow as pa

from ottla.common.ids import TopicPartition
from ottla.connect.api import (
    BadRecords,
    Column,
    ConfigDef,
    ConfigKey,
    ConfigType,
    ConnectorFailure,
    Importance,
    Offset,
    Outage,
    Partition,
    Read,
    Records,
    Schema,
    SchemaType,
    Sink,
    SinkWriter,
    Source,
)

FILE = ConfigKey("file", ConfigType.STRING, "The database file.", importance=Importance.HIGH)
ROWS_AT_A_TIME = 1_000


class JournalSource(Source):
    version = "0.1.0"
    config_def = ConfigDef(
        (
            FILE,
            ConfigKey("tables", ConfigType.LIST, "Tables, separated by commas.", importance=Importance.HIGH),
            ConfigKey("topic.prefix", ConfigType.STRING, "Topics are called PREFIX and the table's name.", default=""),
        )
    )

    def partitions(self, most: int) -> Sequence[Partition]:
        return [{"table": table} for table in self.settings["tables"]]

    def read(self, partition: Partition, offset: Offset | None) -> Iterator[Read]:
        table, behind = partition["table"], int((offset or {}).get("rowid", 0))
        query = f'SELECT rowid AS "#", * FROM "{table}" WHERE rowid > ? ORDER BY rowid LIMIT {ROWS_AT_A_TIME}'
        try:
            with closing(sqlite3.connect(self.settings["file"])) as database:
                database.row_factory = sqlite3.Row
                while rows := database.execute(query, (behind,)).fetchall():
                    behind = rows[-1]["#"]
                    # The offset of a piece is where to go on after it. It has to move whenever there are records.
                    yield Read(self._records(table, rows), {"rowid": behind})
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):
                raise ConnectorFailure(f"{self.settings['file']} has no table '{table}': see `tables`.") from None
            raise Outage(f"{self.settings['file']} cannot be read: {error}.") from None

    def _records(self, table: str, rows: Sequence[sqlite3.Row]) -> Records:
        count = len(rows)
        return Records(
            topics=pa.repeat(self.settings["topic.prefix"] + table, count),
            partitions=pa.nulls(count, pa.int32()),  # the key decides
            timestamps=pa.nulls(count, pa.int64()),  # now
            keys=Column(Schema(SchemaType.INT64), pa.array([row["#"] for row in rows], pa.int64())),
            # Without a schema: any values of Python. With one, an Arrow array of it (see ottla.connect.api.data).
            values=Column(None, [{name: value for name, value in dict(row).items() if name != "#"} for row in rows]),
        )


class JournalSink(Sink):
    version = "0.1.0"
    is_exactly_once = True
    config_def = ConfigDef((FILE,))

    def positions(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        with closing(_opened(self.settings["file"])) as database:
            rows = database.execute("SELECT topic, partition, next FROM positions").fetchall()
        known = {TopicPartition(topic, number): next_ for topic, number, next_ in rows}
        return {partition: known[partition] for partition in partitions if partition in known}

    def open(self, partition: TopicPartition, position: int) -> SinkWriter:
        return _Writer(self.settings["file"], partition)

    def moved(self, offsets: Mapping[TopicPartition, int | None]) -> None:
        with closing(_opened(self.settings["file"])) as database, database:
            for partition in offsets:
                database.execute("DELETE FROM positions WHERE topic = ? AND partition = ?", partition)


class _Writer(SinkWriter):
    def __init__(self, file: str, partition: TopicPartition) -> None:
        self._database = _opened(file)
        self._partition = partition

    def write(self, records: Records) -> None:
        assert records.offsets is not None
        values = records.values.data if records.values.schema is None else records.values.data.to_pylist()
        offsets = records.offsets.to_pylist()
        try:
            with self._database as database:  # a transaction: commits at the end, or nothing of it is there
                database.execute("BEGIN IMMEDIATE")
                known = database.execute(
                    "SELECT next FROM positions WHERE topic = ? AND partition = ?", self._partition
                ).fetchone()
                if known is not None and known[0] > offsets[0]:
                    raise Outage(f"{self._partition} was written by another task: this one begins anew behind it.")
                rows = [(*self._partition, offset, _text(value)) for offset, value in zip(offsets, values, strict=True)]
                database.executemany("INSERT INTO records VALUES (?, ?, ?, ?)", rows)
                database.execute(
                    "INSERT OR REPLACE INTO positions VALUES (?, ?, ?)", (*self._partition, offsets[-1] + 1)
                )
        except sqlite3.OperationalError as error:
            raise Outage(f"the database cannot be written: {error}.") from None

    def close(self) -> None:
        self._database.close()


def _opened(file: str) -> sqlite3.Connection:
    database = sqlite3.connect(file, timeout=30, isolation_level=None)
    database.execute("CREATE TABLE IF NOT EXISTS records (topic TEXT, partition INT, number INT, value TEXT)")
    database.execute(
        "CREATE TABLE IF NOT EXISTS positions (topic TEXT, partition INT, next INT, PRIMARY KEY (topic, partition))"
    )
    return database


def _text(value: Any) -> str:
    try:
        return value if isinstance(value, str) else json.dumps(value)
    except TypeError as error:
        # The worker halves what was given until the bad record is alone, and sends that one to the dead letters.
        raise BadRecords(f"a value cannot be kept as text: {error}") from None
