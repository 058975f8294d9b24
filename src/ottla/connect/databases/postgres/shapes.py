"""Tables of PostgreSQL as shapes of changes: from a Relation message of the stream, or from the catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ottla.connect.api.data import Schema, SchemaType
from ottla.connect.databases.changes.envelope import INT64, OPTIONAL_INT64, OPTIONAL_STRING, STRING, Shape, TableColumn
from ottla.connect.databases.changes.settings import TableFilter
from ottla.connect.databases.postgres.catalogue import Catalogue
from ottla.connect.databases.postgres.pgoutput import Relation, RelationColumn
from ottla.connect.databases.postgres.types import table_column
from ottla.connect.databases.schemas import struct

SOURCE = struct(
    "io.debezium.connector.postgresql.Source",
    [
        ("version", STRING),
        ("connector", STRING),
        ("name", STRING),
        ("ts_ms", INT64),
        ("snapshot", OPTIONAL_STRING),
        ("db", STRING),
        ("sequence", OPTIONAL_STRING),
        ("schema", STRING),
        ("table", STRING),
        ("txId", OPTIONAL_INT64),
        ("lsn", OPTIONAL_INT64),
        ("xmin", OPTIONAL_INT64),
    ],
)
VERSION = "ottla"


class PostgresShapes:
    def __init__(self, settings: Mapping[str, Any], catalogue: Catalogue, wanted: TableFilter) -> None:
        self._settings = settings
        self._catalogue = catalogue
        self._wanted = wanted

    def of_relation(self, relation: Relation) -> PostgresShape:
        """The stream tells columns, types and what identifies a row as they were; the catalogue tells the rest (what
        must not be null, the primary key) as it is now."""
        table = relation.table
        now = {row[0]: row for row in self._catalogue.columns(table)} if self._catalogue.exists(table) else {}
        key_places = {name: row[4] for name, row in now.items() if row[4] is not None}
        known = {column.name for column in relation.columns}
        if key_places and key_places.keys() <= known:
            key = sorted(key_places, key=lambda name: key_places[name])
        else:
            key = [column.name for column in relation.columns if column.is_key] if relation.identity != "f" else []
        must = {name for name, row in now.items() if row[3]}
        return self._made(table, relation.columns, key, must, is_whole=relation.identity == "f")

    def of_table(self, table: str) -> PostgresShape:
        rows = self._catalogue.columns(table)
        columns = tuple(
            RelationColumn(name, place is not None, oid, modifier) for name, oid, modifier, _, place in rows
        )
        key = [row[0] for row in sorted((row for row in rows if row[4] is not None), key=lambda row: row[4] or 0)]
        return self._made(table, columns, key, {row[0] for row in rows if row[3]}, is_whole=False)

    def _made(
        self, table: str, columns: tuple[RelationColumn, ...], key: list[str], must: set[str], is_whole: bool
    ) -> PostgresShape:
        taken = [i for i, each in enumerate(columns) if each.name in key or self._wanted.has_column(table, each.name)]
        made = tuple(self._column(columns[i], columns[i].name in must or columns[i].name in key) for i in taken)
        names = [column.name for column in made]
        shape = Shape(
            table, f"{self._settings['topic.prefix']}.{table}", made, tuple(names.index(name) for name in key), SOURCE
        )
        return PostgresShape(shape, tuple(taken), len(columns), is_whole)

    def _column(self, column: RelationColumn, required: bool) -> TableColumn:
        kind = self._catalogue.type(column.type_oid)
        return table_column(column.name, kind, column.modifier, not required, self._settings)


class PostgresShape:
    """A shape, and how its rows and keys are taken from tuples of the stream."""

    def __init__(self, shape: Shape, taken: tuple[int, ...], count: int, is_whole: bool) -> None:
        self.shape = shape
        self.is_whole = is_whole
        self._taken = None if taken == tuple(range(count)) else taken
        self._integers = tuple(_is_integer(shape.columns[i].schema) for i in shape.key)

    def row(self, values: list[Any]) -> list[Any]:
        return values if self._taken is None else [values[i] for i in self._taken]

    def key(self, row: list[Any]) -> list[Any] | None:
        return [row[i] for i in self.shape.key] if self.shape.key else None

    def comparable(self, key: list[Any] | None) -> tuple[Any, ...] | None:
        """As `order_by` of the snapshot sorts: integers by value, all else by the bytes of its text."""
        if key is None:
            return None
        return tuple(
            int(value) if integer else _decoded(value) for value, integer in zip(key, self._integers, strict=True)
        )

    @property
    def integer_keys(self) -> tuple[bool, ...]:
        return self._integers


def _decoded(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _is_integer(schema: Schema) -> bool:
    return schema.type in (SchemaType.INT16, SchemaType.INT32, SchemaType.INT64) and schema.name is None
