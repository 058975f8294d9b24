"""How far each topic partition is written, in a table beside the rows and in the same transaction with them.

That is what makes the sink exactly once: rows and position are committed together or not at all. A task that was
thought dead and comes back finds the position behind its records, and its transaction is refused. The row of the
position is written first, so that whoever comes second waits for the first and then sees its position.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from ottla.common.ids import TopicPartition
from ottla.connect.api.plugins import BadRecords, Outage
from ottla.connect.databases.failures import JDBC, told
from ottla.connect.databases.tables.dialects import Dialect


class Positions:
    def __init__(self, table: str, connector: str, dialect: Dialect) -> None:
        self._table = dialect.quoted_table(table)
        self._name = table
        self._connector = connector
        self._mark = dialect.mark
        self._exact = dialect.exact

    def create(self, connection: sa.Connection) -> None:
        if not sa.inspect(connection).has_table(self._name):
            # Orders and orders are two topics: some databases would take them for one.
            connection.exec_driver_sql(
                f"CREATE TABLE IF NOT EXISTS {self._table} (connector VARCHAR(200){self._exact}, "
                f"topic VARCHAR(249){self._exact}, partition_id INTEGER, next_offset BIGINT NOT NULL, "
                "PRIMARY KEY (connector, topic, partition_id))"
            )

    def read(self, connection: sa.Connection, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        if not sa.inspect(connection).has_table(self._name):
            return {}
        rows = connection.exec_driver_sql(
            f"SELECT topic, partition_id, next_offset FROM {self._table} WHERE connector = {self._mark}",
            (self._connector,),
        )
        found = {(topic, number): offset for topic, number, offset in rows}
        return {each: found[each.topic, each.partition] for each in partitions if (each.topic, each.partition) in found}

    def move(self, connection: sa.Connection, offsets: Mapping[TopicPartition, int | None]) -> None:
        if not sa.inspect(connection).has_table(self._name):
            return
        for each in offsets:
            connection.exec_driver_sql(f"DELETE FROM {self._table} WHERE {self._where()}", self._key(each))

    def advance(self, cursor: Any, partition: TopicPartition, first: int, following: int) -> None:
        """Records from `first` on are about to be written, up to before `following`. Raises Outage if somebody else
        has."""
        mark = self._mark
        cursor.execute(
            f"UPDATE {self._table} SET next_offset = {mark} WHERE {self._where()} AND next_offset <= {mark}",
            (following, *self._key(partition), first),
        )
        if cursor.rowcount == 1:
            return
        cursor.execute(f"SELECT next_offset FROM {self._table} WHERE {self._where()}", self._key(partition))
        row = cursor.fetchone()
        if row is None:
            self._insert(cursor, partition, following)
            return
        raise Outage(
            f"Another task has written {partition.topic}-{partition.partition} up to offset {row[0]} already, so "
            "the records from "
            f"offset {first} on were not written again."
        )

    def _insert(self, cursor: Any, partition: TopicPartition, following: int) -> None:
        marks = ", ".join([self._mark] * 4)
        try:
            cursor.execute(
                f"INSERT INTO {self._table} (connector, topic, partition_id, next_offset) VALUES ({marks})",
                (*self._key(partition), following),
            )
        except Exception as error:
            # Two tasks that both found nothing: the second is refused by the primary key.
            if isinstance(told(error, JDBC, "note the position"), BadRecords):
                raise Outage(
                    f"Another task has begun to write {partition.topic}-{partition.partition} as well."
                ) from error
            raise

    def _where(self) -> str:
        return f"connector = {self._mark} AND topic = {self._mark} AND partition_id = {self._mark}"

    def _key(self, partition: TopicPartition) -> tuple[str, str, int]:
        return self._connector, partition.topic, partition.partition
