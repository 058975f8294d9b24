"""AvroConverter: Avro with a registry, in columns: the compiled reader and writer of `ottla.schemas` do the work."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ottla.avro import schema as avro
from ottla.common.errors import OttlaError
from ottla.common.schemas import InvalidSchema
from ottla.connect.api.data import DECIMAL, TIME, TIMESTAMP, Column, Schema, SchemaType
from ottla.connect.conversion.arrow import arrow_type
from ottla.connect.conversion.converters.avro_schema import to_avro, to_connect
from ottla.connect.conversion.converters.base import OnFailure, Piece
from ottla.connect.conversion.converters.registered import RegisteredConverter
from ottla.connect.conversion.errors import DataError
from ottla.connect.conversion.json_values import decimal_of
from ottla.connect.conversion.schemas import logical, scale_of
from ottla.schemas.avro.columns import UNITS, VALUE, members
from ottla.schemas.avro.columns import moment_of as avro_moment_of
from ottla.schemas.columns import decoder_for
from ottla.schemas.encoding import encoder_for
from ottla.schemas.registered import AVRO, Registered, parse_avro
from ottla.schemas.registry import SchemaRegistry


@lru_cache(maxsize=256)
def _parsed(schema: Registered) -> tuple[avro.Schema, Schema]:
    try:
        found = parse_avro(schema)
    except InvalidSchema as error:
        raise DataError(f"the schema {schema.id} of the registry cannot be read: {error}.") from None
    return found, to_connect(found)


class AvroConverter(RegisteredConverter):
    class_name = "io.confluent.connect.avro.AvroConverter"
    kind = AVRO

    def _registry(self) -> SchemaRegistry:
        return SchemaRegistry(self.url, self.ca, bearer=self.bearer)

    # --- bytes to columns

    def read(self, schema: Registered, data: Any, on_failure: OnFailure) -> Piece:
        written, made = _parsed(schema)
        rows, reasons = decoder_for(self._registry(), schema).decode(data)
        good = []
        for place, reason in enumerate(reasons.to_pylist()):
            if reason is None:
                good.append(place)
            else:
                on_failure(place, DataError(f"{reason}."))
        at = None if len(good) == len(data) else pa.array(good, pa.int64())
        rows = rows if at is None else rows.take(at)
        array = rows if written.is_record else rows.field(VALUE)
        return Piece(Column(made, _read(written, made, array)), at)

    # --- columns to bytes

    def text_of(self, schema: Schema) -> str:
        return to_avro(schema)

    def record_name(self, schema: Schema) -> str:
        return schema.name or "io.confluent.connect.avro.ConnectDefault"

    def write(self, schema: Registered, column: Column, on_failure: OnFailure) -> Any:
        written, _ = _parsed(schema)
        assert column.schema is not None
        names = tuple(each.name for each in column.schema.fields) if written.is_record else (VALUE,)
        encoder = encoder_for(self._registry(), schema, names)

        def encode(array: Any) -> Any:
            part = encoder.type if written.is_record else encoder.type.field(VALUE).type
            made = _written(column.schema, array, part)
            return encoder.encode(made if written.is_record else pa.StructArray.from_arrays([made], names=[VALUE]))

        try:
            return encode(_compact(column.data))
        except (OttlaError, pa.ArrowException):
            return _one_by_one(encode, column.data, on_failure)


def _one_by_one(encode: Any, array: Any, on_failure: OnFailure) -> Any:
    found = []
    for at in range(len(array)):
        try:
            found.append(encode(array.take(pa.array([at], pa.int64())))[0].as_py())
        except (OttlaError, pa.ArrowException) as error:
            on_failure(at, DataError(str(error)))
            found.append(None)
    return pa.array(found, pa.binary())


def _compact(array: Any) -> Any:
    """Parts of a slice are longer than the slice."""
    whole = array.offset == 0 and not pa.types.is_nested(array.type)
    return array if whole else array.take(pa.array(range(len(array)), pa.int64()))


def _mask(array: Any) -> Any:
    return array.is_null() if array.null_count else None


def _read(written: avro.Schema, schema: Schema, array: Any) -> Any:
    """Columns of Avro's as columns of Kafka Connect's."""
    if written.type == "union":
        others = members(written)
        if len(others) == 1:
            return _read(others[0], schema, array)
        parts = [
            _read(branch, each.schema, part)
            for branch, each, part in zip(others, schema.fields, array.flatten(), strict=True)
        ]
        return pa.StructArray.from_arrays(parts, names=[each.name for each in schema.fields], mask=_mask(array))
    if written.is_record:
        parts = [
            _read(its.schema, each.schema, part)
            for its, each, part in zip(written.fields, schema.fields, array.flatten(), strict=True)
        ]
        if not parts:
            return array
        return pa.StructArray.from_arrays(parts, names=[each.name for each in schema.fields], mask=_mask(array))
    if schema.type is SchemaType.MAP:
        return _read_map(written, schema, array)
    if schema.type is SchemaType.ARRAY:
        assert schema.value_schema is not None
        return pa.ListArray.from_arrays(
            array.offsets, _read(written.element(), schema.value_schema, array.values), mask=_mask(array)
        )
    target = arrow_type(schema)
    if logical(schema) == DECIMAL and pa.types.is_binary(array.type):
        scale = scale_of(schema)
        found = [None if each is None else _decimal(each, scale) for each in array.to_pylist()]
        try:
            return pa.array(found, target)
        except pa.ArrowInvalid:
            return pa.array(found, arrow_type(schema, wide=True))
    if pa.types.is_timestamp(array.type) and logical(schema) != TIMESTAMP:
        moment = avro_moment_of(written)
        times, over = UNITS[moment[1]] if moment is not None else (1, 1)
        numbers = array.cast(pa.int64())
        return pa.array([None if each is None else each // times * over for each in numbers.to_pylist()], pa.int64())
    return array.cast(target, safe=False)


def _decimal(data: bytes, scale: int) -> Any:
    return decimal_of(int.from_bytes(data, "big", signed=True), scale)


def _read_map(written: avro.Schema, schema: Schema, array: Any) -> Any:
    assert schema.key_schema is not None and schema.value_schema is not None
    if written.type == "map":
        items = _read(written.element(), schema.value_schema, array.items)
        keys = array.keys
    else:
        entry = written.element()
        keys, items = (
            _read(its.schema, part, values)
            for its, part, values in zip(
                entry.fields, (schema.key_schema, schema.value_schema), array.values.flatten(), strict=True
            )
        )
    return pa.MapArray.from_arrays(array.offsets, keys, items, mask=_mask(array))


def _written(schema: Schema | None, array: Any, target: Any) -> Any:
    """Columns of Kafka Connect's as those that Avro's writer takes. A null becomes the default, where there is one."""
    assert schema is not None
    if schema.default is not None and array.null_count and not pa.types.is_nested(array.type):
        array = pc.fill_null(array, pa.scalar(schema.default, array.type))
    if schema.type is SchemaType.STRUCT:
        fields = [target.field(at) for at in range(target.num_fields)]
        if not fields:
            return array
        parts = [
            _written(each.schema, part, field.type)
            for each, part, field in zip(schema.fields, array.flatten(), fields, strict=True)
        ]
        return pa.StructArray.from_arrays(parts, fields=fields, mask=_mask(array))
    if schema.type is SchemaType.ARRAY:
        items = _written(schema.value_schema, array.values, target.value_type)
        return pa.ListArray.from_arrays(array.offsets, items, mask=_mask(array)).cast(target)
    if schema.type is SchemaType.MAP:
        if pa.types.is_map(target):
            items = _written(schema.value_schema, array.items, target.item_type)
            return pa.MapArray.from_arrays(array.offsets, array.keys, items, mask=_mask(array))
        entry = target.value_type
        parts = [
            _written(schema.key_schema, array.keys, entry.field(0).type),
            _written(schema.value_schema, array.items, entry.field(1).type),
        ]
        entries = pa.StructArray.from_arrays(parts, fields=[entry.field(0), entry.field(1)])
        return pa.ListArray.from_arrays(array.offsets, entries, mask=_mask(array)).cast(target)
    name = logical(schema)
    if name == DECIMAL and pa.types.is_binary(target):
        return pa.array([None if each is None else _bytes(each) for each in array.to_pylist()], pa.binary())
    if name == TIME:
        return array.cast(pa.int32()).cast(target)
    return array.cast(target)


def _bytes(value: Any) -> bytes:
    sign, digits, _ = value.as_tuple()
    unscaled = int("".join(map(str, digits)) or "0") * (-1 if sign else 1)
    size = (unscaled if unscaled >= 0 else -unscaled - 1).bit_length() // 8 + 1
    return unscaled.to_bytes(size, "big", signed=True)
