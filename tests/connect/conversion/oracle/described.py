"""Schemas and values in the words that the Java program has for them."""

from __future__ import annotations

import base64
import datetime
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from ottla.connect.api.data import Header, Records, Schema, SchemaType
from ottla.connect.conversion.arrow import to_python
from ottla.connect.conversion.java_text import millis_of


def schema_told(schema: Schema | None) -> Any:
    if schema is None:
        return None
    found: dict[str, Any] = {
        "type": schema.type.name,
        "optional": schema.optional,
        "name": schema.name,
        "version": schema.version,
        "doc": schema.doc,
        "parameters": dict(schema.parameters),
        "default": value_told(schema, schema.default),
    }
    if schema.type is SchemaType.STRUCT:
        found["fields"] = [[each.name, schema_told(each.schema)] for each in schema.fields]
    if schema.type is SchemaType.MAP:
        found["keys"] = schema_told(schema.key_schema)
    if schema.type in (SchemaType.MAP, SchemaType.ARRAY):
        found["values"] = schema_told(schema.value_schema)
    return found


def value_told(schema: Schema | None, value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return {"n": str(value)}
    if isinstance(value, datetime.date | datetime.time):
        return {"n": str(millis_of(value))}
    if isinstance(value, float):
        return {"f": repr(value)}
    if isinstance(value, Decimal):
        return {"d": value}
    if isinstance(value, str):
        # How many of them stand for bytes that are no UTF-8 is not agreed on.
        return {"s": re.sub("\ufffd+", "\ufffd", value)}
    if isinstance(value, bytes):
        return {"b": base64.b64encode(value).decode()}
    if schema is not None and schema.type is SchemaType.STRUCT:
        return {"o": {each.name: value_told(each.schema, value.get(each.name)) for each in schema.fields}}
    if isinstance(value, dict) or (schema is not None and schema.type is SchemaType.MAP):
        keys, values = (None, None) if schema is None else (schema.key_schema, schema.value_schema)
        entries = value.items() if isinstance(value, dict) else value
        return {"m": by_text([[value_told(keys, key), value_told(values, item)] for key, item in entries])}
    return {"l": [value_told(None if schema is None else schema.value_schema, item) for item in value]}


def by_text(entries: list[Any]) -> list[Any]:
    return sorted(entries, key=repr)


def normal(tree: Any) -> Any:
    """What Java told: numbers as numbers, maps in our order."""
    if isinstance(tree, list):
        return [normal(each) for each in tree]
    if not isinstance(tree, dict):
        return tree
    if tree.keys() == {"f"} and isinstance(tree["f"], str):
        return {"f": repr(float(tree["f"].replace("Infinity", "inf")))}
    if tree.keys() == {"d"} and isinstance(tree["d"], str):
        return {"d": Decimal(tree["d"])}
    if tree.keys() == {"m"}:
        return {"m": by_text([normal(each) for each in tree["m"]])}
    if tree.keys() == {"s"} and isinstance(tree["s"], str):
        return {"s": re.sub("\ufffd+", "\ufffd", tree["s"])}
    return {name: normal(each) for name, each in tree.items()}


def is_beyond_python(tree: Any) -> bool:
    """A moment before the year 1 or after 9999 is somewhere in it: with us the record fails."""
    if isinstance(tree, list):
        return any(is_beyond_python(each) for each in tree)
    if not isinstance(tree, dict):
        return False
    if tree.keys() == {"n"} and isinstance(tree["n"], str):
        return not -62_135_596_800_000 <= int(tree["n"]) <= 253_402_300_799_999
    return any(is_beyond_python(each) for each in tree.values())


def records_told(found: Sequence[Records]) -> dict[int, Any]:
    """By their offsets."""
    told: dict[int, Any] = {}
    for records in found:
        assert records.offsets is not None
        headers = records.headers or [()] * len(records)
        for at, (offset, key, value) in enumerate(
            zip(records.offsets.to_pylist(), to_python(records.keys), to_python(records.values), strict=True)
        ):
            # A null without a schema has been given one, to be in a run with others.
            value_schema = records.values.schema
            told[offset] = {
                "topic": records.topics[at].as_py(),
                "partition": records.partitions[at].as_py(),
                "timestamp": records.timestamps[at].as_py(),
                "key_schema": schema_told(records.keys.schema),
                "key": value_told(records.keys.schema, key),
                "value_schema": schema_told(value_schema),
                "value": value_told(value_schema, value),
                "headers": [_header(each) for each in headers[at]],
            }
    return told


def _header(header: Header) -> list[Any]:
    return [header.key, schema_told(header.schema), value_told(header.schema, header.value)]
