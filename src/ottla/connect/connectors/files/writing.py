"""Records as a file of one of the formats."""

from __future__ import annotations

import base64
import datetime
import decimal
import json
from typing import Any

import pyarrow as pa
from pyarrow import csv, orc, parquet

from ottla.connect.api import BadRecords, Column, Records, SchemaType

EXTENSIONS = {"csv": "csv", "json": "json", "orc": "orc", "parquet": "parquet", "text": "txt"}


def write_file(file: Any, kind: str, records: Records, *, has_metadata: bool) -> None:
    """Raises BadRecords for what the format cannot hold."""
    try:
        if kind in ("json", "text"):
            file.write(_lines(kind, records, has_metadata).encode())
            return
        table = _table(records, has_metadata)
        if kind == "parquet":
            parquet.write_table(table, file)
        elif kind == "orc":
            orc.write_table(table, file)
        else:
            csv.write_csv(table, file)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, ValueError, TypeError) as error:
        raise BadRecords(f"records do not fit into a file of {kind}: {error}") from None


def _lines(kind: str, records: Records, has_metadata: bool) -> str:
    values = _python(records.values)
    if kind == "text":
        return "".join(f"{_text(value)}\n" for value in values)
    if has_metadata:
        extra = zip(*(column.to_pylist() for column in _metadata(records).values()), strict=True)
        names = list(_metadata(records))
        values = [
            {**(value if isinstance(value, dict) else {"value": value}), **dict(zip(names, more, strict=True))}
            for value, more in zip(values, extra, strict=True)
        ]
    return "".join(f"{json.dumps(value, default=plain_json, ensure_ascii=False)}\n" for value in values)


def _table(records: Records, has_metadata: bool) -> Any:
    column = records.values
    if column.schema is not None:
        if column.schema.type is SchemaType.STRUCT:
            names = [field.name for field in column.schema.fields]
            arrays = [pa.compute.struct_field(column.data, name) for name in names]
            table = pa.Table.from_arrays(arrays, names)
        else:
            table = pa.Table.from_arrays([column.data], ["value"])
    else:
        values = list(column.data)
        if not all(isinstance(value, dict) for value in values):
            table = pa.Table.from_arrays([pa.array(values)], ["value"])
        else:
            names = list(dict.fromkeys(name for value in values for name in value))
            table = pa.Table.from_arrays([pa.array([value.get(name) for value in values]) for name in names], names)
    for name, array in _metadata(records).items() if has_metadata else ():
        table = table.append_column(name, array)
    return table


def _metadata(records: Records) -> dict[str, Any]:
    return {
        "_topic": records.topics,
        "_partition": records.partitions,
        "_offset": records.offsets,
        "_timestamp": records.timestamps,
    }


def _python(column: Column) -> list[Any]:
    return list(column.data) if isinstance(column.data, list) else list(column.data.to_pylist())


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, dict | list):
        return json.dumps(value, default=plain_json, ensure_ascii=False)
    return "" if value is None else str(value)


def plain_json(value: Any) -> Any:
    """Of values that JSON does not have."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")
