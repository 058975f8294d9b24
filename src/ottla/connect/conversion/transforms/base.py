"""What a transform is: one record to another, or to none; and, where it can be, the same for whole columns.

`row` is what a transform means, to the letter of Kafka Connect. `columns` is a shortcut for a run that it knows to go
well: it returns None for anything else, and the run is taken row by row, where each record succeeds or fails by itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from ottla.connect.api.config import ConfigDef, ConfigKey, ConfigType, Importance
from ottla.connect.api.data import Column, Field, Records, Schema, SchemaType
from ottla.connect.conversion.arrow import arrow_type, fits
from ottla.connect.conversion.errors import DataError
from ottla.connect.conversion.rows import Row

PACKAGE = "org.apache.kafka.connect.transforms"
REPLACE_NULLS = ConfigKey(
    "replace.null.with.default",
    ConfigType.BOOLEAN,
    "Whether a null in a field that has a default becomes the default.",
    True,
)


class Transform(ABC):
    # Without the package, and without `$Key` and `$Value`.
    name: ClassVar[str]
    config_def: ClassVar[ConfigDef] = ConfigDef()
    # There is one for keys and one for values.
    has_parts: ClassVar[bool] = True
    # A null is passed on as it is.
    passes_nulls: ClassVar[bool] = False

    def __init__(self, settings: Mapping[str, Any], part: str = "value") -> None:
        """`settings`: parsed by `config_def`; `part`: key or value. Raises ConfigInvalid for what does not go
        together."""
        self.is_key = part == "key"

    @property
    def class_name(self) -> str:
        suffix = ("$Key" if self.is_key else "$Value") if self.has_parts else ""
        return f"{PACKAGE}.{self.name}{suffix}"

    @abstractmethod
    def row(self, row: Row) -> Row | None:
        """May change the row that it is given. None: the record is dropped. Raises RecordError."""

    def columns(self, records: Records) -> Records | None:
        """Without records: all are dropped. Where nulls are passed on, there are none in the part."""
        return None

    # --- the part of a record that it is about

    def schema_of(self, row: Row) -> Schema | None:
        return row.key_schema if self.is_key else row.value_schema

    def value_of(self, row: Row) -> Any:
        return row.key if self.is_key else row.value

    def with_value(self, row: Row, schema: Schema | None, value: Any) -> Row:
        if self.is_key:
            row.key_schema, row.key = schema, value
        else:
            row.value_schema, row.value = schema, value
        return row

    def column_of(self, records: Records) -> Column:
        return records.keys if self.is_key else records.values

    def with_column(self, records: Records, schema: Schema, array: Any) -> Records:
        column = Column(schema, array)
        return replace(records, keys=column) if self.is_key else replace(records, values=column)

    def struct_of(self, records: Records) -> tuple[Schema, Any] | None:
        """Schema and array, if the part is a struct without nulls."""
        column = self.column_of(records)
        if column.schema is None or column.schema.type is not SchemaType.STRUCT or isinstance(column.data, list):
            return None
        return None if column.data.null_count else (column.schema, column.data)


Made = TypeVar("Made", bound=Transform)


def remembered(make: Callable[[Made, Schema], Schema]) -> Callable[[Made, Schema], Schema]:
    """The schema that a transform makes of another: one that is given again at once is not made again."""
    name = f"_{make.__name__}_made"

    def remembering(self: Made, schema: Schema) -> Schema:
        last: tuple[Schema, Schema] | None = self.__dict__.get(name)
        if last is None or last[0] is not schema:
            last = self.__dict__[name] = schema, make(self, schema)
        return last[1]

    return remembering


def require_map(value: Any, purpose: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DataError(f"{purpose} needs a map where there is no schema, and the record has {_kind(value)}.")
    return value


def require_struct(schema: Schema | None, value: Any, purpose: str) -> dict[str, Any]:
    if value is None or schema is None or schema.type is not SchemaType.STRUCT:
        raise DataError(f"{purpose} needs a struct, and the record has {_kind(value)}.")
    assert isinstance(value, dict)
    return value


def _kind(value: Any) -> str:
    return "null" if value is None else f"a value of type {type(value).__name__}"


# --- parts of a struct, as columns


def parts_of(schema: Schema, array: Any, use_defaults: bool) -> list[Any] | None:
    """Of a struct without nulls: its fields, with defaults in the place of nulls; None where one must not be null."""
    found = []
    for each, part in zip(schema.fields, array.flatten(), strict=True):
        filled = filled_part(each, part, use_defaults)
        if filled is None:
            return None
        found.append(filled)
    return found


def filled_part(each: Field, part: Any, use_defaults: bool) -> Any | None:
    if part.null_count and use_defaults and each.schema.default is not None:
        if pa.types.is_nested(part.type):
            return None
        part = pc.fill_null(part, pa.scalar(each.schema.default, part.type))
    if part.null_count and not each.schema.optional:
        return None
    return part if fits(each.schema, part) else None


def struct_array(schema: Schema, parts: list[Any], length: int) -> Any:
    if not parts:
        return pa.array([{}] * length, pa.struct([]))
    return pa.StructArray.from_arrays(parts, names=[each.name for each in schema.fields])


def constant(schema: Schema, value: Any, length: int) -> Any:
    kind = arrow_type(schema)
    return pa.repeat(pa.scalar(value, kind), length)


def key(
    name: str,
    kind: ConfigType,
    doc: str,
    default: Any,
    importance: Importance = Importance.MEDIUM,
    check: Any = None,
    recommended: tuple[str, ...] = (),
) -> ConfigKey:
    return ConfigKey(name, kind, doc, default, importance, check, recommended)


def distinct(values: list[str]) -> str | None:
    """The check of a list that must have something in it, and nothing twice."""
    if not values or any(not value for value in values):
        return "the list must not be empty."
    return "a name stands in the list twice." if len(set(values)) < len(values) else None


def distinct_if_any(values: list[str]) -> str | None:
    return distinct(values) if values else None


def not_empty(value: Any) -> str | None:
    return None if value else "it must not be empty."
