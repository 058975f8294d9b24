"""JSON to columns and columns to JSON at once, where schema and data are plain enough; None sends them one by one.

Payloads are given to Arrow's reader as lines. Each line is wrapped into an object with a number and a name that nobody
can foresee: if all numbers come back in their order, every line was exactly one value, and none has run into another.
Whatever Arrow refuses, or Kafka Connect would read in its own lenient way, is not decided here.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from ottla.connect.api.data import DATE, DECIMAL, TIME, TIMESTAMP, Schema, SchemaType
from ottla.connect.conversion.arrow import arrow_type
from ottla.connect.conversion.errors import RecordError
from ottla.connect.conversion.java_text import MILLIS_PER_DAY, are_moments
from ottla.connect.conversion.json_text import encoder_of, quoted
from ottla.connect.conversion.json_values import decoder_of
from ottla.connect.conversion.schemas import INTEGERS, logical

# Below that a reader costs more than it saves.
_LEAST = 8
_MARK = f"n{os.urandom(8).hex()}"
_HEAD = f'{{"{_MARK}":'.encode()
# Days of the years 1 and 9999.
_DAYS = (-719_162, 2_932_896)
_TO_ESCAPE = r'["\\\x00-\x1f]'


class _NotPlain(Exception):
    pass


# --- from JSON


def json_to_columns(schema: Schema, payloads: list[bytes], replaces_nulls: bool) -> Any | None:
    if len(payloads) < _LEAST or (options := _options(schema)) is None:
        return None
    lines = b"\n".join([b'%b%d,"p":%b}' % (_HEAD, at, payload) for at, payload in enumerate(payloads)])
    if lines.count(b"\n") != len(payloads) - 1:
        return None
    try:
        lines.decode()
        # One block: a line may be longer than a block otherwise.
        reading = pj.ReadOptions(use_threads=False, block_size=len(lines) + 1)
        table = pj.read_json(pa.BufferReader(lines), read_options=reading, parse_options=options)
        if table.num_rows != len(payloads) or table.column(_MARK).to_pylist() != list(range(len(payloads))):
            return None
        column = table.column("p").combine_chunks()
        array = column if isinstance(column, pa.Array) else column.chunk(0)
        return _typed(schema, array, replaces_nulls, 0)
    except (pa.ArrowException, UnicodeDecodeError, RecordError, _NotPlain, NotImplementedError):
        return None


@lru_cache(maxsize=256)
def _options(schema: Schema) -> Any | None:
    if schema.type is not SchemaType.STRUCT:
        return None
    try:
        explicit = pa.schema([pa.field(_MARK, pa.int64()), pa.field("p", _read_as(schema))])
    except _NotPlain:
        return None
    return pj.ParseOptions(explicit_schema=explicit, unexpected_field_behavior="ignore")


def _read_as(schema: Schema) -> Any:
    name = logical(schema)
    if name is not None:
        return {DECIMAL: pa.string(), TIMESTAMP: pa.int64()}.get(name, pa.int32())
    if schema.type is SchemaType.STRUCT:
        if not schema.fields:
            raise _NotPlain
        return pa.struct([pa.field(each.name, _read_as(each.schema)) for each in schema.fields])
    if schema.type is SchemaType.ARRAY and schema.value_schema is not None:
        return pa.list_(_read_as(schema.value_schema))
    if schema.type is SchemaType.MAP:
        raise _NotPlain
    return pa.string() if schema.type is SchemaType.BYTES else arrow_type(schema)


def _typed(schema: Schema, array: Any, replaces_nulls: bool, nulls_above: int) -> Any:
    """`nulls_above`: how many are null because the struct is that they are in."""
    made = _converted(schema, array, replaces_nulls)
    if made.null_count > nulls_above:
        if schema.default is not None and replaces_nulls:
            if nulls_above or pa.types.is_nested(made.type):
                raise _NotPlain
            return pc.fill_null(made, pa.scalar(schema.default, made.type))
        if not schema.optional:
            raise _NotPlain
    return made


def _converted(schema: Schema, array: Any, replaces_nulls: bool) -> Any:
    name = logical(schema)
    if name == TIMESTAMP:
        if not are_moments(array):
            raise _NotPlain
        return array.cast(pa.timestamp("ms")).cast(pa.timestamp("ms", tz="UTC"))
    if name in (DATE, TIME):
        least, most = _DAYS if name == DATE else (0, MILLIS_PER_DAY - 1)
        found = pc.min_max(array).as_py()
        if found["min"] is not None and not (least <= found["min"] and found["max"] <= most):
            raise _NotPlain
        return array.cast(arrow_type(schema))
    if name == DECIMAL or schema.type is SchemaType.BYTES:
        # Arrow has no base64.
        decode = decoder_of(_optional(schema), False)
        return pa.array([decode(each) for each in array.to_pylist()], arrow_type(schema))
    if schema.type is SchemaType.STRUCT:
        parts = [
            _typed(each.schema, part, replaces_nulls, array.null_count)
            for each, part in zip(schema.fields, array.flatten(), strict=True)
        ]
        names = [each.name for each in schema.fields]
        return pa.StructArray.from_arrays(parts, names=names, mask=array.is_null() if array.null_count else None)
    if schema.type is SchemaType.ARRAY:
        assert schema.value_schema is not None
        if array.null_count or array.offset:
            raise _NotPlain
        return pa.ListArray.from_arrays(array.offsets, _typed(schema.value_schema, array.values, replaces_nulls, 0))
    return array


@lru_cache(maxsize=1024)
def _optional(schema: Schema) -> Schema:
    return Schema(schema.type, True, schema.name, schema.version, parameters=schema.parameters)


# --- to JSON


def columns_to_json(
    schema: Schema, array: Any, replaces_nulls: bool, decimals_as_numbers: bool, begin: str, end: str
) -> Any | None:
    if len(array) < _LEAST or schema.type is not SchemaType.STRUCT:
        return None
    try:
        text = _text(schema, array, replaces_nulls, decimals_as_numbers)
        whole = pc.binary_join_element_wise(begin, text, end, "") if begin or end else text
        return whole.cast(pa.binary())
    except (pa.ArrowException, RecordError, _NotPlain, ValueError, OverflowError):
        return None


def _text(schema: Schema, array: Any, replaces_nulls: bool, decimals_as_numbers: bool) -> Any:
    if array.null_count and not schema.optional and (schema.default is None or not replaces_nulls):
        raise _NotPlain
    made = _written(schema, array, replaces_nulls, decimals_as_numbers)
    if not array.null_count:
        return made
    null = encoder_of(schema, replaces_nulls, decimals_as_numbers)(None)
    return pc.if_else(array.is_valid(), made, pa.scalar(null, pa.string()))


def _written(schema: Schema, array: Any, replaces_nulls: bool, decimals_as_numbers: bool) -> Any:
    kind, name = schema.type, logical(schema)
    if name == TIMESTAMP:
        return array.cast(pa.int64()).cast(pa.string())
    if name in (DATE, TIME):
        return array.cast(pa.int32()).cast(pa.string())
    if name is None and kind in INTEGERS:
        return array.cast(pa.string())
    if kind is SchemaType.BOOLEAN:
        return pc.if_else(array, "true", "false")
    if kind is SchemaType.STRING:
        if pc.any(pc.match_substring_regex(array, _TO_ESCAPE)).as_py():
            return pa.array([None if each is None else quoted(each) for each in array.to_pylist()], pa.string())
        return pc.binary_join_element_wise('"', array, '"', "")
    if kind is SchemaType.STRUCT:
        pieces: list[Any] = []
        begin = "{"
        for each, part in zip(schema.fields, array.flatten(), strict=True):
            its = each.schema
            if array.null_count and part.null_count and not its.optional:
                # Null because the struct is: nothing of it is written.
                its = Schema(its.type, True, its.name, its.version, None, None, its.parameters, its.fields,
                             its.key_schema, its.value_schema)  # fmt: skip
                if part.null_count > array.null_count:
                    raise _NotPlain
            pieces += [f"{begin}{quoted(each.name)}:", _text(its, part, replaces_nulls, decimals_as_numbers)]
            begin = ","
        if not pieces:
            raise _NotPlain
        return pc.binary_join_element_wise(*pieces, "}", "")
    encode = encoder_of(schema, replaces_nulls, decimals_as_numbers)
    return pa.array([None if each is None else encode(each) for each in array.to_pylist()], pa.string())
