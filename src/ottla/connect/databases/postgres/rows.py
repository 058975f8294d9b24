"""Rows of a snapshot as records of Debezium's envelope with op r: whole columns at once."""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa

from ottla.connect.api.data import Records
from ottla.connect.databases.changes.envelope import key_column, records, required
from ottla.connect.databases.postgres.shapes import SOURCE, PostgresShape
from ottla.connect.databases.schemas import arrow_type


def rows_as_records(shape: PostgresShape, columns: list[Any], source: tuple[Any, ...]) -> Records:
    """`columns`: of text, as the server has it. `source`: the same for all of them."""
    made = shape.shape
    count = len(columns[0])
    arrays = [required(each.to_arrow(text), each.schema) for each, text in zip(made.columns, columns, strict=True)]
    after = pa.StructArray.from_arrays(arrays, fields=list(made.row_type))
    sources = pa.StructArray.from_arrays(
        [
            pa.repeat(pa.scalar(value, arrow_type(each.schema)), count)
            for value, each in zip(source, SOURCE.fields, strict=True)
        ],
        names=[each.name for each in SOURCE.fields],
    )
    now = pa.repeat(pa.scalar(int(time.time() * 1000), pa.int64()), count)
    values = pa.StructArray.from_arrays(
        [pa.nulls(count, made.row_type), after, sources, pa.repeat(pa.scalar("r"), count), now],
        fields=list(arrow_type(made.envelope)),
    )
    keys = key_column(made, [None] * count)
    if made.key_schema is not None:
        key = pa.StructArray.from_arrays([arrays[i] for i in made.key], fields=list(arrow_type(made.key_schema)))
        keys = type(keys)(made.key_schema, key)
    return records(made, count, keys, values)
