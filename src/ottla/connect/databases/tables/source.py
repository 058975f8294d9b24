"""JdbcSource: rows of tables, or of a query, that are new since the last time.

It asks with SQL, so it sees what SELECT sees: no deletes, only the last of several changes, and not a row whose number
or time was given out earlier than that of a row that is already read, but committed later
(`timestamp.delay.interval.ms` waits for such). Change data capture has none of these limits.

A piece never ends between two rows of the same time, so that none of them is passed over after a restart.
"""

from __future__ import annotations

import datetime
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

from ottla.common.errors import OttlaError
from ottla.connect.api.config import ConfigDef, ConfigInvalid, ConfigValue
from ottla.connect.api.data import Column, Records
from ottla.connect.api.plugins import ConnectorFailure, Offset, Partition, Read, Source, check_numbers
from ottla.connect.databases.addresses import engine
from ottla.connect.databases.changes.envelope import no_records
from ottla.connect.databases.failures import JDBC, told
from ottla.connect.databases.schemas import arrow_type, struct
from ottla.connect.databases.tables.source_settings import SOURCE, validate
from ottla.connect.databases.tables.sql_columns import SqlColumn, column_of, guessed

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_OWN = {"ottla_connect_positions"}


@contextmanager
def _telling(doing: str) -> Iterator[None]:
    try:
        yield
    except OttlaError:
        raise
    except sa.exc.SQLAlchemyError as error:
        raise told(error, JDBC, doing) from error
    except (ValueError, OverflowError) as error:
        # Of the driver, or of an offset that is made of a row.
        raise ConnectorFailure(
            f"The connector cannot {doing}: a value does not fit into Python's types ({error}), as dates outside of "
            "the years 1 to 9999 do not. Leave it out, or make text of it, with a query."
        ) from error


class JdbcSource(Source):
    aliases: ClassVar[Sequence[str]] = (
        "io.confluent.connect.jdbc.JdbcSourceConnector",
        "io.aiven.connect.jdbc.JdbcSourceConnector",
    )
    config_def: ClassVar[ConfigDef] = SOURCE

    def __init__(self, config: Mapping[str, str]) -> None:
        errors = [error for value in validate(config) for error in value.errors]
        if errors:
            raise ConfigInvalid(" ".join(errors))
        super().__init__(config)
        self._engine = engine(self.settings, only_reads=True)
        self._asked_at: float | None = None
        self._has_moved = True

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> list[ConfigValue]:
        return validate(config)

    # --- on the driver

    def partitions(self, most: int) -> Sequence[Partition]:
        """Nothing until poll.interval.ms is over, unless the last round brought something."""
        now = time.monotonic()
        if (
            self._asked_at is not None
            and not self._has_moved
            and now - self._asked_at < self.settings["poll.interval.ms"] / 1000
        ):
            return []
        self._asked_at, self._has_moved = now, False
        if self.settings["query"]:
            return [{"query": "query"}]
        return [{"protocol": "1", "table": table} for table in self._tables()]

    def published(self, partition: Partition, offset: Offset) -> None:
        if self.settings["mode"] != "bulk" or "rows" in offset:
            self._has_moved = True

    def check_offset(self, partition: Partition, offset: Offset) -> str | None:
        if not isinstance(partition.get("table", partition.get("query")), str):
            return "the partition must have the key 'table' or 'query', as GET tells it"
        if not isinstance(number := offset.get("incrementing", 0), int):
            return f"'incrementing' must be a whole number, and is {json.dumps(number)}"
        return check_numbers(offset, "timestamp", "timestamp_nanos", "rows", "read_at_ms")

    def _tables(self) -> list[str]:
        schema = self.settings["schema.pattern"] or None
        white, black = self.settings["table.whitelist"], self.settings["table.blacklist"]
        with _telling("be looked at"), self._engine.connect() as connection:
            inspector = sa.inspect(connection)
            if white:
                for name in white:
                    if not inspector.has_table(*_parts(name, schema)):
                        raise ConnectorFailure(f"There is no table {name}: check table.whitelist and connection.url.")
                return list(white)
            names = inspector.get_table_names(schema)
        return [name for name in sorted(names) if name not in black and name not in _OWN]

    # --- in a task

    def read(self, partition: Partition, offset: Offset | None) -> Iterator[Read]:
        if self.settings["mode"] == "bulk":
            yield from self._bulk(partition, offset)
            return
        name = partition.get("table", "query")
        with _telling(f"read {name}"), self._engine.connect() as connection:
            asked = _Asked(self, connection, partition.get("table"))
            yield from asked.pieces(offset or {})

    def _bulk(self, partition: Partition, offset: Offset | None) -> Iterator[Read]:
        """A table may be larger than a round: the next one goes on behind the rows that are out, in the order of the
        key where there is one. Without a key, rows that change meanwhile may come twice or not at all this time."""
        now, before = int(time.time() * 1000), dict(offset or {})
        done = int(before.pop("rows", 0))
        if offset is not None and not done and now - before.get("read_at_ms", 0) < self.settings["poll.interval.ms"]:
            return
        with _telling(f"read {partition.get('table', 'query')}"), self._engine.connect() as connection:
            asked = _Asked(self, connection, partition.get("table"))
            statement = asked.select.order_by(*asked.primary_key)
            for rows in asked.rows(statement.offset(done) if done else statement, keep_groups=None):
                done += len(rows)
                yield Read(asked.records(rows), {**before, "rows": done})
        yield Read(no_records(), {"read_at_ms": now})


def _parts(name: str, schema: str | None) -> tuple[str, str | None]:
    first, _, last = name.rpartition(".")
    return last, first or schema


def _as_the_driver_has_it(column: sa.Column[Any]) -> Any:
    """Of a clock that shows more than a day SQLAlchemy tells what it shows beyond that."""
    if isinstance(column.type, mysql.TIME):
        return sa.type_coerce(column, sa.types.NullType()).label(column.name)
    return column


class _Asked:
    """One table or query on one connection."""

    def __init__(self, source: JdbcSource, connection: sa.Connection, table: str | None) -> None:
        self.settings = source.settings
        self.connection = connection
        self.columns: list[SqlColumn] | None = None
        self.key: list[str] = []
        self.primary_key: list[Any] = []
        self._timestamp = (
            next(iter(self.settings["timestamp.column.name"]), None) if "timestamp" in self.settings["mode"] else None
        )
        self._incrementing = (
            self.settings["incrementing.column.name"] if "incrementing" in self.settings["mode"] else None
        )
        if table is None:
            self.topic = self.settings["topic.prefix"]
            names = [name for name in (self._timestamp, self._incrementing) if name]
            self.select = sa.select(sa.text("*")).select_from(sa.text(f"({self.settings['query']}) ottla_query"))
            self._columns: dict[str, Any] = {name: sa.column(name) for name in names}
            self._is_zoned = True
        else:
            self._of_table(table)

    def _of_table(self, name: str) -> None:
        last, schema = _parts(name, self.settings["schema.pattern"] or None)
        self.topic = self.settings["topic.prefix"] + last
        made = sa.Table(last, sa.MetaData(), schema=schema, autoload_with=self.connection)
        self.select = sa.select(*map(_as_the_driver_has_it, made.columns))
        self.columns = [column_of(column, self.connection.dialect.name) for column in made.columns]
        self.primary_key = list(made.primary_key.columns)
        if self.settings["key.mode"] == "primary_key":
            self.key = [column.name for column in made.primary_key.columns]
        if self._incrementing == "":
            self._incrementing = self._only_key(made)
        self._columns = {}
        for setting, wanted in (
            ("timestamp.column.name", self._timestamp),
            ("incrementing.column.name", self._incrementing),
        ):
            if not wanted:
                continue
            if wanted not in made.columns:
                raise ConnectorFailure(f"The table {name} has no column {wanted}, which {setting} names.")
            column = made.columns[wanted]
            if column.nullable and not column.primary_key and self.settings["validate.non.null"]:
                raise ConnectorFailure(
                    f"The column {wanted} of {name} may be null, and rows without it would never be read: make it "
                    "NOT NULL, or set "
                    "validate.non.null=false."
                )
            self._columns[wanted] = column
        self._is_zoned = bool(self._timestamp) and bool(
            getattr(self._columns[self._timestamp or ""].type, "timezone", False)
        )

    def _only_key(self, table: sa.Table) -> str:
        names = [column.name for column in table.primary_key.columns]
        if len(names) != 1:
            raise ConnectorFailure(
                f"The table {table.name} has no primary key of one column: set incrementing.column.name."
            )
        return str(names[0])

    # --- rows

    def pieces(self, offset: Offset) -> Iterator[Read]:
        statement, order = self.select, []
        if self._timestamp:
            stamp = self._columns[self._timestamp]
            statement = statement.where(stamp < self._value(self._now()))
            order.append(stamp)
        if self._incrementing:
            order.append(self._columns[self._incrementing])
        after = self._after(offset)
        if after is not None:
            statement = statement.where(after)
        names = [column.name for column in order]
        group = self._timestamp if not self._incrementing else None
        for rows in self.rows(statement.order_by(*order), keep_groups=group):
            yield Read(self.records(rows), self._offset(dict(rows[-1]._mapping), names))

    def _after(self, offset: Offset) -> Any:
        stamp = self._columns.get(self._timestamp or "")
        number = self._columns.get(self._incrementing or "")
        since = self._value(_time_of(offset)) if "timestamp" in offset else None
        if stamp is not None and number is not None and since is not None:
            same = sa.and_(self._is(stamp, since), number > offset.get("incrementing", 0))
            return sa.or_(stamp > since, same)
        if stamp is not None:
            return None if since is None else stamp > since
        return number > offset["incrementing"] if number is not None and "incrementing" in offset else None

    def _is(self, stamp: Any, since: Any) -> Any:
        if self.connection.dialect.name != "sqlite":
            return stamp == since
        # Times are text there, with or without a fraction.
        spellings = {since.isoformat(" "), since.isoformat(" ", "microseconds"), since.isoformat(" ", "milliseconds")}
        return sa.type_coerce(stamp, sa.String).in_(sorted(spellings))

    def _value(self, moment: datetime.datetime) -> Any:
        return (
            moment if self._is_zoned and self.connection.dialect.name == "postgresql" else moment.replace(tzinfo=None)
        )

    def _now(self) -> datetime.datetime:
        now = self.connection.execute(sa.select(sa.func.current_timestamp())).scalar_one()
        made = now if isinstance(now, datetime.datetime) else datetime.datetime.fromisoformat(str(now))
        return _aware(made) - datetime.timedelta(milliseconds=self.settings["timestamp.delay.interval.ms"])

    def rows(self, statement: Any, keep_groups: str | None) -> Iterator[list[Any]]:
        most = self.settings["batch.max.rows"]
        result = self.connection.execution_options(stream_results=True, max_row_buffer=most).execute(statement)
        waiting: list[Any] = []
        while some := result.fetchmany(most):
            waiting += some
            if keep_groups is None:
                yield waiting
                waiting = []
                continue
            # What has the last time of these may go on in the next ones.
            last = waiting[-1]._mapping[keep_groups]
            end = len(waiting)
            while end and waiting[end - 1]._mapping[keep_groups] == last:
                end -= 1
            if end:
                yield waiting[:end]
                waiting = waiting[end:]
        if waiting:
            yield waiting

    def records(self, rows: list[Any]) -> Records:
        names = list(rows[0]._fields)
        values = list(zip(*rows, strict=True))
        columns = self.columns or [guessed(name, data) for name, data in zip(names, values, strict=True)]
        arrays = [column.to_arrow(data) for column, data in zip(columns, values, strict=True)]
        schema = struct(self.topic, [(column.name, column.schema) for column in columns])
        keys = Column(None, [None] * len(rows))
        if self.key:
            places = [names.index(name) for name in self.key]
            key_schema = struct(None, [(name, columns[i].schema) for name, i in zip(self.key, places, strict=True)])
            keys = Column(
                key_schema, pa.StructArray.from_arrays([arrays[i] for i in places], fields=list(arrow_type(key_schema)))
            )
        return Records(
            topics=pa.repeat(pa.scalar(self.topic), len(rows)),
            partitions=pa.nulls(len(rows), pa.int32()),
            timestamps=pa.nulls(len(rows), pa.int64()),
            keys=keys,
            values=Column(schema, pa.StructArray.from_arrays(arrays, fields=list(arrow_type(schema)))),
        )

    def _offset(self, row: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        for name in names:
            if name not in row:
                setting = "timestamp.column.name" if name == self._timestamp else "incrementing.column.name"
                raise ConnectorFailure(f"The query gives no column {name}, which {setting} names.")
        made: dict[str, Any] = {}
        if self._incrementing:
            made["incrementing"] = int(row[self._incrementing])
        if self._timestamp:
            value = row[self._timestamp]
            moment = _aware(
                value if isinstance(value, datetime.datetime) else datetime.datetime.fromisoformat(str(value))
            )
            micros = (moment - _EPOCH) // datetime.timedelta(microseconds=1)
            made["timestamp"] = micros // 1000
            made["timestamp_nanos"] = micros % 1_000_000 * 1000
        return made


def _aware(moment: datetime.datetime) -> datetime.datetime:
    return moment.replace(tzinfo=datetime.UTC) if moment.tzinfo is None else moment


def _time_of(offset: Offset) -> datetime.datetime:
    seconds = offset["timestamp"] // 1000
    nanos = offset.get("timestamp_nanos", offset["timestamp"] % 1000 * 1_000_000)
    return _EPOCH + datetime.timedelta(seconds=seconds, microseconds=nanos // 1000)
