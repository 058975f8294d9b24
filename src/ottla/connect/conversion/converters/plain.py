"""Bytes as they are, strings, and numbers as Kafka's own serialisers write them."""

from __future__ import annotations

import codecs
import struct
from collections.abc import Mapping
from typing import Any, ClassVar

import pyarrow as pa

from ottla.connect.api.config import ConfigDef, ConfigKey, ConfigType, Importance
from ottla.connect.api.data import Column, Schema, SchemaType
from ottla.connect.conversion.arrow import readable
from ottla.connect.conversion.converters.base import Converter, OnFailure, Piece, pieces_of
from ottla.connect.conversion.errors import DataError
from ottla.connect.conversion.java_text import text_of
from ottla.connect.conversion.schemas import OPTIONAL_BYTES, OPTIONAL_STRING, TYPE_NAMES, logical

_CONVERTERS = "org.apache.kafka.connect.converters"


class ByteArrayConverter(Converter):
    class_name = f"{_CONVERTERS}.ByteArrayConverter"

    def decode(self, topics: Any, data: Any, on_failure: OnFailure) -> list[Piece]:
        return [Piece(Column(OPTIONAL_BYTES, data))]

    def encode(self, topics: Any, column: Column, on_failure: OnFailure) -> Any:
        schema = column.schema
        if schema is not None and schema.type is SchemaType.BYTES and logical(schema) is None:
            return column.data
        fine: list[bytes | None] = [None] * len(column)
        for at, value in readable(column, on_failure):
            if schema is not None and schema.type is not SchemaType.BYTES:
                on_failure(at, DataError(f"ByteArrayConverter writes bytes, and the schema is {schema.type.name}."))
            elif value is not None and not isinstance(value, bytes | bytearray | memoryview):
                on_failure(at, DataError(f"ByteArrayConverter writes bytes, and a value is {type(value).__name__}."))
            elif value is not None:
                fine[at] = bytes(value)
        return pa.array(fine, pa.binary())


def _codec(name: str) -> str | None:
    try:
        codecs.lookup(name)
    except LookupError:
        return f"'{name}' is no encoding that is known here."
    return None


class StringConverter(Converter):
    class_name = "org.apache.kafka.connect.storage.StringConverter"
    config_def = ConfigDef(
        (
            ConfigKey(
                "converter.encoding",
                ConfigType.STRING,
                "How text is written as bytes: the name of a character set.",
                "UTF-8",
                Importance.HIGH,
                _codec,
            ),
        )
    )

    def __init__(self, settings: Mapping[str, Any], *, is_key: bool) -> None:
        super().__init__(settings, is_key=is_key)
        self._encoding: str = settings["converter.encoding"]
        self._is_utf8 = codecs.lookup(self._encoding).name == "utf-8"

    def decode(self, topics: Any, data: Any, on_failure: OnFailure) -> list[Piece]:
        if self._is_utf8:
            try:
                return [Piece(Column(OPTIONAL_STRING, data.cast(pa.string())))]
            except pa.ArrowInvalid:
                pass  # some of it is no UTF-8: Java puts a replacement character in its place
        texts = [None if each is None else each.decode(self._encoding, "replace") for each in data.to_pylist()]
        return [Piece(Column(OPTIONAL_STRING, pa.array(texts, pa.string())))]

    def encode(self, topics: Any, column: Column, on_failure: OnFailure) -> Any:
        schema = column.schema
        if self._is_utf8 and schema is not None and schema.type is SchemaType.STRING:
            return column.data.cast(pa.binary())  # type: ignore[union-attr]
        found: list[bytes | None] = [None] * len(column)
        for at, value in readable(column, on_failure):
            encoded = None
            if value is not None:
                try:
                    encoded = text_of(schema, value).encode(self._encoding, "replace")
                except DataError as error:
                    on_failure(at, error)
            found[at] = encoded
        return pa.array(found, pa.binary())


class _NumberConverter(Converter):
    kind: ClassVar[SchemaType]
    format: ClassVar[struct.Struct]

    @property
    def _schema(self) -> Schema:
        return Schema(self.kind, optional=True)

    def decode(self, topics: Any, data: Any, on_failure: OnFailure) -> list[Piece]:
        size = self.format.size
        at: list[int] = []
        values: list[Any] = []
        for place, each in enumerate(data.to_pylist()):
            if each is not None and len(each) != size:
                on_failure(place, DataError(f"a number of {size} bytes is expected, and there are {len(each)}."))
                continue
            at.append(place)
            values.append(None if each is None else self._read(each))
        return pieces_of({self._schema: (at, values)}, len(data), on_failure)

    def _read(self, data: bytes) -> Any:
        return self.format.unpack(data)[0]

    def encode(self, topics: Any, column: Column, on_failure: OnFailure) -> Any:
        schema = column.schema
        found: list[bytes | None] = [None] * len(column)
        for at, value in readable(column, on_failure):
            encoded = None
            if value is not None or self._minds_null(schema):
                try:
                    encoded = self._write(schema, value)
                except (DataError, struct.error, OverflowError) as error:
                    on_failure(
                        at, error if isinstance(error, DataError) else DataError(f"a number does not fit: {error}.")
                    )
            found[at] = encoded
        return pa.array(found, pa.binary())

    def _minds_null(self, schema: Schema | None) -> bool:
        return False

    def _write(self, schema: Schema | None, value: Any) -> bytes | None:
        # Without a schema an integer is a long and a number with a point a double, as JSON without schemas has them.
        kind = schema.type if schema is not None else _kind_of(value)
        is_logical = schema is not None and logical(schema) is not None
        if kind is not self.kind or is_logical:
            name = type(self).__name__
            raise DataError(f"{name} writes {TYPE_NAMES[self.kind]}, and a value is {kind and TYPE_NAMES[kind]}.")
        return self.format.pack(value)


def _kind_of(value: Any) -> SchemaType | None:
    if isinstance(value, bool):
        return SchemaType.BOOLEAN
    return {int: SchemaType.INT64, float: SchemaType.FLOAT64, str: SchemaType.STRING}.get(type(value))


class ShortConverter(_NumberConverter):
    class_name = f"{_CONVERTERS}.ShortConverter"
    kind, format = SchemaType.INT16, struct.Struct(">h")


class IntegerConverter(_NumberConverter):
    class_name = f"{_CONVERTERS}.IntegerConverter"
    kind, format = SchemaType.INT32, struct.Struct(">i")


class LongConverter(_NumberConverter):
    class_name = f"{_CONVERTERS}.LongConverter"
    kind, format = SchemaType.INT64, struct.Struct(">q")


class FloatConverter(_NumberConverter):
    class_name = f"{_CONVERTERS}.FloatConverter"
    kind, format = SchemaType.FLOAT32, struct.Struct(">f")


class DoubleConverter(_NumberConverter):
    class_name = f"{_CONVERTERS}.DoubleConverter"
    kind, format = SchemaType.FLOAT64, struct.Struct(">d")


class BooleanConverter(_NumberConverter):
    class_name = f"{_CONVERTERS}.BooleanConverter"
    kind, format = SchemaType.BOOLEAN, struct.Struct(">B")

    def _read(self, data: bytes) -> Any:
        if data[0] > 1:
            raise DataError("a boolean is the byte 0 or 1.")
        return data[0] == 1

    def decode(self, topics: Any, data: Any, on_failure: OnFailure) -> list[Piece]:
        fine = [each is None or len(each) != 1 or each[0] <= 1 for each in data.to_pylist()]
        if all(fine):
            return super().decode(topics, data, on_failure)
        for place, is_fine in enumerate(fine):
            if not is_fine:
                on_failure(place, DataError("a boolean is the byte 0 or 1."))
        kept = pa.array([place for place, is_fine in enumerate(fine) if is_fine], pa.int64())
        pieces = super().decode(topics, data.take(kept), lambda place, error: on_failure(kept[place].as_py(), error))
        return [Piece(piece.column, kept if piece.at is None else kept.take(piece.at)) for piece in pieces]

    def _minds_null(self, schema: Schema | None) -> bool:
        return schema is not None and schema.type is not SchemaType.BOOLEAN

    def _write(self, schema: Schema | None, value: Any) -> bytes | None:
        if schema is not None and schema.type is not SchemaType.BOOLEAN:
            raise DataError(f"BooleanConverter writes BOOLEAN, and the schema is {TYPE_NAMES[schema.type]}.")
        if not isinstance(value, bool):
            raise DataError(f"BooleanConverter writes booleans, and a value is {type(value).__name__}.")
        return b"\x01" if value else b"\x00"


PLAIN: tuple[type[Converter], ...] = (
    ByteArrayConverter,
    StringConverter,
    ShortConverter,
    IntegerConverter,
    LongConverter,
    FloatConverter,
    DoubleConverter,
    BooleanConverter,
)
