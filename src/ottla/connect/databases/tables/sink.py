"""JdbcSink: records of topics into tables, each once.

One transaction for each batch: first the position (see `positions`), then the rows. So whatever dies, rows and position
agree, and the worker goes on from the position in the database.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from ottla.common.errors import OttlaError
from ottla.common.ids import TopicPartition
from ottla.connect.api.config import ConfigDef, ConfigInvalid, ConfigValue
from ottla.connect.api.data import Records
from ottla.connect.api.plugins import Batching, Sink, SinkWriter
from ottla.connect.databases.addresses import engine
from ottla.connect.databases.failures import JDBC, is_deadlock, told
from ottla.connect.databases.tables.dialects import dialect
from ottla.connect.databases.tables.positions import Positions
from ottla.connect.databases.tables.sink_rows import Rows, by_topic, rows_of
from ottla.connect.databases.tables.sink_settings import SINK, validate
from ottla.connect.databases.tables.sink_tables import SinkTable, done_by_one

_BATCH_WAIT_MS = 200
_DEADLOCKS_MOST = 10


@contextmanager
def _telling(doing: str) -> Iterator[None]:
    try:
        yield
    except OttlaError:
        raise
    except Exception as error:
        if getattr(error, "orig", None) is None and not type(error).__module__.startswith(
            ("psycopg2", "pymysql", "sqlite3", "_duckdb")
        ):
            raise
        raise told(error, JDBC, doing) from error


class JdbcSink(Sink):
    aliases: ClassVar[Sequence[str]] = (
        "io.confluent.connect.jdbc.JdbcSinkConnector",
        "io.aiven.connect.jdbc.JdbcSinkConnector",
    )
    config_def: ClassVar[ConfigDef] = SINK
    is_exactly_once: ClassVar[bool] = True

    def __init__(self, config: Mapping[str, str]) -> None:
        errors = [error for value in validate(config) for error in value.errors]
        if errors:
            raise ConfigInvalid(" ".join(errors))
        super().__init__(config)
        self._engine = engine(self.settings)
        self._dialect = dialect(self._engine.dialect.name)
        self._positions = Positions(self.settings["positions.table"], self.settings["name"], self._dialect)

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> list[ConfigValue]:
        return validate(config)

    def batching(self) -> Batching:
        return Batching(records=self.settings["batch.size"], interval_ms=_BATCH_WAIT_MS)

    def begin(self, topics: Sequence[str]) -> None:
        with _telling("be looked at"):
            done_by_one(self._create_positions)
        with _telling("be looked at"), self._engine.begin() as connection:
            for topic in topics:
                table = self.table(topic)
                known = table.look(connection)
                if known is not None:
                    table.check_key(known, set(self.settings["pk.fields"]))

    def _create_positions(self) -> None:
        with self._engine.begin() as connection:
            self._positions.create(connection)

    def positions(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        with _telling("be looked at"), self._engine.connect() as connection:
            return self._positions.read(connection, partitions)

    def moved(self, offsets: Mapping[TopicPartition, int | None]) -> None:
        with _telling("be written to"), self._engine.begin() as connection:
            self._positions.move(connection, offsets)

    def open(self, partition: TopicPartition, position: int) -> SinkWriter:
        return JdbcWriter(self, partition)

    def table(self, topic: str) -> SinkTable:
        name = self.settings["table.name.format"].replace("${topic}", topic)
        return SinkTable(name, self.settings, self._dialect)

    # --- for the writer

    def advance(self, connection: Any, partition: TopicPartition, first: int, following: int) -> None:
        self._positions.advance(connection.cursor(), partition, first, following)

    def write(self, connection: Any, table: SinkTable, rows: Rows) -> None:
        cursor = connection.cursor()
        if self.settings["insert.mode"] == "insert":
            self._insert(cursor, table.name, rows)
            return
        last = rows.last_of_each_key()
        write = self._dialect.upsert if self.settings["insert.mode"] == "upsert" else self._dialect.update
        if pc.any(last.deletes).as_py():
            self._dialect.delete(cursor, table.name, last.where(last.deletes).only_keys())
            last = last.where(pc.invert(last.deletes))
        if len(last):
            write(cursor, table.name, last)

    def _insert(self, cursor: Any, table: str, rows: Rows) -> None:
        """In order: a row may be inserted, deleted and inserted again."""
        deletes = rows.deletes.to_pylist()
        begin = 0
        for end in range(1, len(deletes) + 1):
            if end < len(deletes) and deletes[end] == deletes[begin]:
                continue
            some = rows.taken(list(range(begin, end))) if end - begin < len(deletes) else rows
            if deletes[begin]:
                self._dialect.delete(cursor, table, some.only_keys())
            else:
                self._dialect.insert(cursor, table, some)
            begin = end

    def connect(self) -> Any:
        with _telling("be written to"):
            return self._engine.raw_connection()

    @property
    def engine(self) -> sa.Engine:
        return self._engine

    @property
    def is_exclusive(self) -> bool:
        return self._dialect.is_exclusive


class JdbcWriter(SinkWriter):
    def __init__(self, sink: JdbcSink, partition: TopicPartition) -> None:
        self._sink = sink
        self._partition = partition
        # By the topics that records have, which a transform may have changed.
        self._tables: dict[str, SinkTable] = {}
        self._connection: Any = None

    def write(self, records: Records) -> None:
        if not len(records):
            return
        assert records.offsets is not None
        first, last = records.offsets[0].as_py(), records.offsets[-1].as_py()
        parts = [(self._table(topic), self._rows(part)) for topic, part in by_topic(records)]
        doing = f"write to the table {', '.join(dict.fromkeys(table.name for table, _ in parts))}"
        with _telling(doing):
            for table, rows in parts:
                if not pc.all(rows.deletes).as_py():
                    table.prepare(self._sink.engine, rows)
        for attempt in range(_DEADLOCKS_MOST + 1):
            try:
                with _telling(doing):
                    self._transact(first, last + 1, parts)
                return
            except BaseException as error:
                self._gone()
                for table, _ in parts:
                    table.forget()
                # Tasks of other partitions write to the same tables.
                if attempt == _DEADLOCKS_MOST or not is_deadlock(error.__cause__):
                    raise

    def _transact(self, first: int, following: int, parts: Sequence[tuple[SinkTable, Rows]]) -> None:
        if self._connection is None:
            self._connection = self._sink.connect()
        self._sink.advance(self._connection, self._partition, first, following)
        for table, rows in parts:
            self._sink.write(self._connection, table, rows)
        self._connection.commit()
        if self._sink.is_exclusive:
            self.close()

    def _table(self, topic: str) -> SinkTable:
        if topic not in self._tables:
            self._tables[topic] = self._sink.table(topic)
        return self._tables[topic]

    def _rows(self, records: Records) -> Rows:
        """With pk.mode=kafka a row is known by where the record is, whatever a transform calls its topic."""
        topics = pa.repeat(pa.scalar(self._partition.topic), len(records))
        return rows_of(replace(records, topics=topics), self._sink.settings)

    def _gone(self) -> None:
        """Closing ends the transaction, whatever state it is in."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.invalidate()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
