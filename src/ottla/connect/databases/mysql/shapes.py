"""Tables of MySQL as shapes of changes.

The binlog names columns, types and key of a table as they were (binlog_row_metadata=FULL). The catalogue knows them as
they are now, and what may be null. Where both agree on the names, the catalogue tells the types more exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pymysqlreplication.constants import FIELD_TYPE, NONE_SOURCE

from ottla.connect.api.data import Schema, SchemaType
from ottla.connect.databases.changes.envelope import INT64, OPTIONAL_INT64, OPTIONAL_STRING, STRING, Shape
from ottla.connect.databases.changes.settings import TableFilter
from ottla.connect.databases.mysql.as_selected import IN_BYTES, as_selected, as_text
from ottla.connect.databases.mysql.catalogue import Catalogue, quote
from ottla.connect.databases.mysql.types import BINARY, MysqlType, is_integer, table_column
from ottla.connect.databases.schemas import struct

SOURCE = struct(
    "io.debezium.connector.mysql.Source",
    [
        ("version", STRING),
        ("connector", STRING),
        ("name", STRING),
        ("ts_ms", INT64),
        ("snapshot", OPTIONAL_STRING),
        ("db", STRING),
        ("sequence", OPTIONAL_STRING),
        ("table", OPTIONAL_STRING),
        ("server_id", INT64),
        ("gtid", OPTIONAL_STRING),
        ("file", STRING),
        ("pos", INT64),
        ("row", Schema(SchemaType.INT32)),
        ("thread", OPTIONAL_INT64),
        ("query", OPTIONAL_STRING),
    ],
)
_CODES = {
    FIELD_TYPE.TINY: "tinyint",
    FIELD_TYPE.SHORT: "smallint",
    FIELD_TYPE.INT24: "mediumint",
    FIELD_TYPE.LONG: "int",
    FIELD_TYPE.LONGLONG: "bigint",
    FIELD_TYPE.FLOAT: "float",
    FIELD_TYPE.DOUBLE: "double",
    FIELD_TYPE.NEWDECIMAL: "decimal",
    FIELD_TYPE.DATE: "date",
    FIELD_TYPE.TIME: "time",
    FIELD_TYPE.TIME2: "time",
    FIELD_TYPE.DATETIME: "datetime",
    FIELD_TYPE.DATETIME2: "datetime",
    FIELD_TYPE.TIMESTAMP: "timestamp",
    FIELD_TYPE.TIMESTAMP2: "timestamp",
    FIELD_TYPE.YEAR: "year",
    FIELD_TYPE.ENUM: "enum",
    FIELD_TYPE.SET: "set",
    FIELD_TYPE.JSON: "json",
    FIELD_TYPE.BIT: "bit",
    FIELD_TYPE.GEOMETRY: "geometry",
}


def _of_binlog(column: Any) -> MysqlType:
    name = _CODES.get(column.type)
    if name is None:
        is_fixed = column.type == FIELD_TYPE.STRING
        name = ("binary" if is_fixed else "varbinary") if column.character_set_name == "binary" else "varchar"
    values = column.enum_values or column.set_values or ()
    return MysqlType(
        name,
        bool(column.unsigned),
        getattr(column, "precision", 0) or getattr(column, "bits", 0),
        getattr(column, "decimals", 0),
        getattr(column, "fsp", 0),
        tuple(each for each in values if each),
        getattr(column, "max_length", 0),
        column.character_set_name or "",
    )


class MysqlShape:
    def __init__(self, shape: Shape, kinds: Sequence[MysqlType]) -> None:
        self.shape = shape
        self.names = [column.name for column in shape.columns]
        self._kinds = [kinds[i] for i in shape.key]
        converts = ((i, as_selected(kind)) for i, kind in enumerate(kinds))
        self._converts = [(i, convert) for i, convert in converts if convert is not None]
        self._sets = [i for i, kind in enumerate(kinds) if kind.name == "set"]

    def row(self, values: Mapping[str, Any], why_none: Mapping[str, str]) -> list[Any]:
        """Of the binlog, as a SELECT would give it."""
        made = [values.get(name) for name in self.names]
        for i, convert in self._converts:
            if made[i] is not None:
                made[i] = convert(made[i])
        for i in self._sets:
            if made[i] is None and why_none.get(self.names[i]) == NONE_SOURCE.EMPTY_SET:
                made[i] = ""
        return made

    def key(self, row: Sequence[Any]) -> list[Any] | None:
        return [row[i] for i in self.shape.key] if self.shape.key else None

    def comparable(self, key: Sequence[Any] | None) -> tuple[Any, ...] | None:
        """As `order` sorts."""
        if key is None:
            return None
        return tuple(_comparable(kind, value) for value, kind in zip(key, self._kinds, strict=True))

    @property
    def order(self) -> list[str]:
        made = []
        for i, kind in zip(self.shape.key, self._kinds, strict=True):
            name = quote(self.names[i])
            if is_integer(kind):
                made.append(name)
            elif kind.name in BINARY:
                made.append(f"HEX({name})")
            else:
                made.append(f"CAST(CAST({name} AS CHAR CHARACTER SET utf8mb4) AS BINARY)")
        return made


def _comparable(kind: MysqlType, value: Any) -> Any:
    if is_integer(kind):
        return int(value)
    return bytes(value).hex().upper() if kind.name in BINARY else as_text(kind, value)


class MysqlShapes:
    def __init__(self, settings: Mapping[str, Any], catalogue: Catalogue, wanted: TableFilter) -> None:
        self._settings = settings
        self._catalogue = catalogue
        self._wanted = wanted

    def of_table(self, table: str) -> MysqlShape:
        return self._made(table, self._catalogue.columns(table), self._catalogue.key(table))

    def of_event(self, table: str, columns: Sequence[Any], key: Sequence[str]) -> MysqlShape:
        now = self._catalogue.columns(table)
        # The binlog names the columns of a key in the order of the table, the catalogue in that of the key.
        in_order = self._catalogue.key(table)
        key = in_order if set(in_order) == set(key) else key
        if [name for name, _, _ in now] == [column.name for column in columns]:
            return self._made(table, now, key)
        must = {name for name, _, required in now if required}
        # In the binlog these are columns of bytes.
        told = {name: kind for name, kind, _ in now if kind.name in IN_BYTES}
        kinds = ((column.name, _of_binlog(column)) for column in columns)
        seen = [(name, told.get(name, kind) if kind.name == "binary" else kind) for name, kind in kinds]
        return self._made(table, [(name, kind, name in must) for name, kind in seen], key)

    def _made(self, table: str, columns: Sequence[tuple[str, MysqlType, bool]], key: Sequence[str]) -> MysqlShape:
        taken = [each for each in columns if each[0] in key or self._wanted.has_column(table, each[0])]
        made = tuple(
            table_column(name, kind, not (required or name in key), self._settings) for name, kind, required in taken
        )
        names = [name for name, _, _ in taken]
        topic = f"{self._settings['topic.prefix']}.{table}"
        shape = Shape(table, topic, made, tuple(names.index(name) for name in key), SOURCE)
        return MysqlShape(shape, [kind for _, kind, _ in taken])
