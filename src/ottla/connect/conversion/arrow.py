"""Values of Kafka Connect's schemas as Arrow columns, and back: the table of `ottla.connect.api.data`, carried out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import pyarrow as pa

from ottla.connect.api.data import DATE, DECIMAL, TIME, TIMESTAMP, Column, Schema, SchemaType
from ottla.connect.conversion.errors import DataError
from ottla.connect.conversion.schemas import logical, scale_of

PRECISION = "connect.decimal.precision"
_PLAIN = {
    SchemaType.INT8: pa.int8(),
    SchemaType.INT16: pa.int16(),
    SchemaType.INT32: pa.int32(),
    SchemaType.INT64: pa.int64(),
    SchemaType.FLOAT32: pa.float32(),
    SchemaType.FLOAT64: pa.float64(),
    SchemaType.BOOLEAN: pa.bool_(),
    SchemaType.STRING: pa.string(),
    SchemaType.BYTES: pa.binary(),
}
_LOGICAL = {DATE: pa.date32(), TIME: pa.time32("ms"), TIMESTAMP: pa.timestamp("ms", tz="UTC")}
_DIGITS_NARROW, _DIGITS_WIDE = 38, 76


@lru_cache(maxsize=1024)
def arrow_type(schema: Schema, *, wide: bool = False) -> Any:
    """`wide`: decimals of up to 76 digits, for values that need more than 38."""
    if (name := logical(schema)) is not None:
        return _decimal(schema, wide) if name == DECIMAL else _LOGICAL[name]
    if schema.type is SchemaType.STRUCT:
        return pa.struct([pa.field(each.name, arrow_type(each.schema, wide=wide)) for each in schema.fields])
    if schema.type is SchemaType.ARRAY:
        return pa.list_(_part(schema.value_schema, wide))
    if schema.type is SchemaType.MAP:
        return pa.map_(_part(schema.key_schema, wide), _part(schema.value_schema, wide))
    return _PLAIN[schema.type]


def _part(schema: Schema | None, wide: bool) -> Any:
    # What was parsed from text may have nothing in it to tell its type by.
    return pa.null() if schema is None else arrow_type(schema, wide=wide)


def _decimal(schema: Schema, wide: bool) -> Any:
    scale = scale_of(schema)
    told = schema.parameters.get(PRECISION, "")
    digits = int(told) if told.isdecimal() and 1 <= int(told) <= _DIGITS_WIDE else _DIGITS_NARROW
    if wide or digits > _DIGITS_NARROW:
        return pa.decimal256(_DIGITS_WIDE, scale)
    return pa.decimal128(digits, scale)


def has_decimals(schema: Schema | None) -> bool:
    if schema is None:
        return False
    if logical(schema) == DECIMAL:
        return True
    return any(has_decimals(each.schema) for each in schema.fields) or any(
        has_decimals(part) for part in (schema.key_schema, schema.value_schema)
    )


def to_python(column: Column) -> list[Any]:
    """Raises OverflowError or ValueError for times that Python does not have: those after the year 9999."""
    return column.data if isinstance(column.data, list) else column.data.to_pylist()


def readable(column: Column, on_failure: Callable[[int, Exception], None]) -> Iterator[tuple[int, Any]]:
    """Each value and where it is. One that Python does not have, as a time after the year 9999, fails alone."""
    try:
        values = to_python(column)
    except (ValueError, OverflowError):
        for at, scalar in enumerate(column.data):
            try:
                value = scalar.as_py()
            except (ValueError, OverflowError) as error:
                on_failure(at, DataError(f"a value cannot be taken out of its column: {error}."))
                continue
            yield at, value
    else:
        yield from enumerate(values)


def from_python(schema: Schema | None, values: list[Any]) -> Column:
    """Raises DataError for a value that does not fit."""
    if schema is None:
        return Column(None, values)
    try:
        return Column(schema, pa.array(values, arrow_type(schema)))
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        if has_decimals(schema):
            try:
                return Column(schema, pa.array(values, arrow_type(schema, wide=True)))
            except (pa.ArrowException, ValueError, TypeError, OverflowError):
                pass  # the first error says what is wrong
        raise DataError(f"a value does not fit its schema: {error}.") from None


def nulls(schema: Schema | None, count: int) -> Column:
    return Column(None, [None] * count) if schema is None else Column(schema, pa.nulls(count, arrow_type(schema)))


def take(column: Column, indexes: Any) -> Column:
    if isinstance(column.data, list):
        return Column(column.schema, [column.data[index] for index in indexes.to_pylist()])
    return Column(column.schema, column.data.take(indexes))


def null_count(column: Column) -> int:
    if isinstance(column.data, list):
        return sum(value is None for value in column.data)
    return int(column.data.null_count)


def is_null(column: Column) -> Any:
    if isinstance(column.data, list):
        return pa.array([value is None for value in column.data], pa.bool_())
    return column.data.is_null()


def joined(columns: list[Column]) -> Column:
    """Of one schema. Decimals may have come with different precisions."""
    schema = columns[0].schema
    if schema is None:
        return Column(None, [value for column in columns for value in column.data])
    arrays: list[Any] = [column.data for column in columns]
    if len({array.type for array in arrays}) > 1:
        kind = arrow_type(schema, wide=True)
        arrays = [array.cast(kind) for array in arrays]
    return Column(schema, pa.concat_arrays(arrays) if len(arrays) > 1 else arrays[0])


def fits(schema: Schema, array: Any) -> bool:
    """Whether nothing is null that must not be: what `validate` looks for, in columns. Nulls at the top are not
    looked at."""
    if schema.type is SchemaType.STRUCT:
        # `flatten` makes parts of a null struct null.
        return all(
            (each.schema.optional or each.schema.default is not None or part.null_count <= array.null_count)
            and fits(each.schema, part)
            for each, part in zip(schema.fields, array.flatten(), strict=True)
        )
    if schema.type is SchemaType.ARRAY:
        return schema.value_schema is None or _all_fit(schema.value_schema, array.flatten())
    if schema.type is SchemaType.MAP:
        return _all_fit(schema.value_schema, array.items) if schema.value_schema is not None else True
    return True


def _all_fit(schema: Schema, array: Any) -> bool:
    return (schema.optional or array.null_count == 0) and fits(schema, array)
