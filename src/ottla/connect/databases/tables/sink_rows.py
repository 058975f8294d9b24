"""Records as rows of a table: which columns they have, what identifies them, which of them delete.

A Debezium envelope counts as the row that it has after the change. Of several records of one key only the last counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ottla.connect.api.data import Column, Records, Schema, SchemaType
from ottla.connect.api.plugins import BadRecords, ConnectorFailure

_KAFKA_FIELDS = ("__connect_topic", "__connect_partition", "__connect_offset")


@dataclass(frozen=True)
class RowColumn:
    name: str
    schema: Schema
    data: Any  # an Arrow array
    is_key: bool


@dataclass(frozen=True)
class Rows:
    columns: tuple[RowColumn, ...]
    # For each row: whether its key is deleted.
    deletes: Any

    def __len__(self) -> int:
        return len(self.deletes)

    @property
    def key(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns if column.is_key)

    def taken(self, indexes: Any) -> Rows:
        columns = [RowColumn(c.name, c.schema, c.data.take(indexes), c.is_key) for c in self.columns]
        return Rows(tuple(columns), self.deletes.take(indexes))

    def only_keys(self) -> Rows:
        return Rows(tuple(column for column in self.columns if column.is_key), self.deletes)

    def where(self, mask: Any) -> Rows:
        return self.taken(pc.indices_nonzero(mask))

    def last_of_each_key(self) -> Rows:
        """In the order of these last ones."""
        keys = [column for column in self.columns if column.is_key]
        names = [str(n) for n in range(len(keys))]
        table = pa.table(
            {**{n: c.data for n, c in zip(names, keys, strict=True)}, "row": pa.array(range(len(self)), pa.int64())}
        )
        last = table.group_by(names, use_threads=False).aggregate([("row", "max")])["row_max"].combine_chunks()
        if len(last) == len(self):
            return self
        return self.taken(last.take(pc.array_sort_indices(last)))


def by_topic(records: Records) -> Iterator[tuple[str, Records]]:
    """Neighbours of one topic together, in their order."""
    runs = pc.run_end_encode(records.topics)
    begin = 0
    for topic, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        yield topic, records.slice(begin, end - begin) if end - begin < len(records) else records
        begin = end


def rows_of(records: Records, settings: Mapping[str, Any]) -> Rows:
    values = _unwrapped(records.values)
    mode, fields = settings["pk.mode"], settings["pk.fields"]
    columns: dict[str, RowColumn] = {}
    count = len(records)
    if values.schema is None:
        if any(value is not None for value in values.data):
            raise ConnectorFailure(
                "Records without a schema cannot become rows: choose a value.converter that brings schemas (Avro, "
                "Protobuf, or JSON with "
                "value.converter.schemas.enable=true)."
            )
        deletes = pa.repeat(pa.scalar(True), count)
    else:
        if values.schema.type is not SchemaType.STRUCT:
            raise ConnectorFailure(
                f"A value must be a struct to become a row, and these are of type {values.schema.type}."
            )
        data: Any = values.data
        deletes = data.is_null()
        wanted = settings["fields.whitelist"]
        for each, part in zip(values.schema.fields, data.flatten(), strict=True):
            if not wanted or each.name in wanted or (mode == "record_value" and each.name in fields):
                columns[each.name] = RowColumn(each.name, each.schema, part, False)
    for column in _key_columns(records, values, mode, fields):
        columns[column.name] = column
    has_deletes = pc.any(deletes).as_py()
    if has_deletes and not settings["delete.enabled"]:
        raise BadRecords(
            f"A record of {records.topics[0]} has no value: delete.enabled=true makes it a delete (with "
            "pk.mode=record_key)."
        )
    keys = [column for column in columns.values() if column.is_key]
    for column in keys:
        if column.data.null_count:
            raise BadRecords(f"A record has no value for {column.name}, which identifies its row (pk.mode={mode}).")
    ordered = (*keys, *(column for column in columns.values() if not column.is_key))
    return Rows(ordered, deletes)


def _unwrapped(values: Column) -> Column:
    schema = values.schema
    if schema is None or not (schema.name or "").endswith(".Envelope"):
        return values
    after, op = schema.field_named("after"), schema.field_named("op")
    if after is None or op is None:
        return values
    data: Any = values.data
    ops = data.field(schema.fields.index(next(f for f in schema.fields if f.name == "op")))
    if pc.any(pc.equal(ops, "t")).as_py():
        raise BadRecords(
            "A table was truncated, and a sink cannot follow: leave it out with skipped.operations=t at the source."
        )
    place = [each.name for each in schema.fields].index("after")
    return Column(after, data.flatten()[place])


def _key_columns(records: Records, values: Column, mode: str, fields: Sequence[str]) -> list[RowColumn]:
    if mode == "kafka":
        names = tuple(fields) or _KAFKA_FIELDS
        assert records.offsets is not None
        kinds = (SchemaType.STRING, SchemaType.INT32, SchemaType.INT64)
        data = (records.topics, records.partitions, records.offsets)
        return [
            RowColumn(name, Schema(kind), array, True) for name, kind, array in zip(names, kinds, data, strict=True)
        ]
    if mode == "record_value":
        if values.schema is None:
            return []
        found = dict(zip((each.name for each in values.schema.fields), values.data.flatten(), strict=True))  # type: ignore[union-attr]
        return [RowColumn(name, _part(values.schema, name, "value"), found[name], True) for name in fields]
    if mode == "record_key":
        return _of_key(records.keys, fields)
    return []


def _of_key(keys: Column, fields: Sequence[str]) -> list[RowColumn]:
    schema = keys.schema
    if schema is None:
        raise ConnectorFailure(
            "pk.mode=record_key needs keys with a schema, and these have none: choose a key.converter that brings one."
        )
    if schema.type is not SchemaType.STRUCT:
        if len(fields) != 1:
            raise ConnectorFailure(
                f"The key is one value ({schema.type}), so pk.fields must name the one column that it goes to."
            )
        return [RowColumn(fields[0], schema, keys.data, True)]
    found = dict(zip((each.name for each in schema.fields), keys.data.flatten(), strict=True))  # type: ignore[union-attr]
    return [RowColumn(name, _part(schema, name, "key"), found[name], True) for name in (fields or found)]


def _part(schema: Schema, name: str, of: str) -> Schema:
    found = schema.field_named(name)
    if found is None:
        raise ConnectorFailure(f"The records' {of} has no field {name}, which pk.fields names.")
    return found
