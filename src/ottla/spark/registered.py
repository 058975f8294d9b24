"""Columns of Spark's from values that were written with a schema registry, and such values from columns.

    orders = raw.select(from_registry("value", registry.of("orders-value")).alias("order")).select("order.*")
    values = frame.select(to_registry(frame, registry, topic="orders-clean").alias("value"))

The driver asks which schema is meant; executors get it with the query, decode whole Arrow arrays with it
(`ottla.schemas`), and ask the registry only for schemas of writers that they meet for the first time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.types import StringType, StructType

from ottla.common.errors import OttlaError
from ottla.schemas.avro.columns import VALUE
from ottla.schemas.columns import decoder_for
from ottla.schemas.encoding import encoder_for, is_plain, registered_for
from ottla.schemas.framing import HEAD
from ottla.schemas.registered import JSON, Registered
from ottla.schemas.registry import SchemaRegistry

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

DECODED, REASON = "decoded", "reason"


class RegisteredColumns(StructType):
    """The columns of a registered schema, and how a value becomes them."""

    def __init__(self, registry: SchemaRegistry, reader: Registered) -> None:
        from pyspark.sql.pandas.types import from_arrow_type

        kind = from_arrow_type(decoder_for(registry, reader).type, prefer_timestamp_ntz=True)
        assert isinstance(kind, StructType)
        if not kind.fields:
            raise OttlaError(f"the schema '{reader.subject}' has no fields: there is nothing to read.")
        super().__init__(kind.fields)
        self.registry = registry
        self.reader = reader
        # One value that has no fields, in a column called `value`.
        self.is_plain = is_plain(reader)

    @classmethod
    def typeName(cls) -> str:
        """To Spark it is a struct like any other; PySpark would take the name of the class."""
        return "struct"

    @classmethod
    def of(cls, registry: SchemaRegistry) -> RegisteredColumns:
        return cls(registry, registry.schema())

    def parsed(self, value: Column) -> Column:
        """A struct of the decoded columns and of the reason why there are none."""
        from pyspark.sql.pandas.functions import ArrowUDFType, arrow_udf

        returns = StructType().add(DECODED, StructType(self.fields)).add(REASON, StringType())
        decode = arrow_udf(_decoding(self.registry, self.reader), returns, ArrowUDFType.SCALAR)
        # Otherwise Spark would decode once more in every place that asks for a part of it.
        return decode.asNondeterministic()(value)


def _decoding(registry: SchemaRegistry, reader: Registered) -> Any:
    """Spark asks a function for the types that it is declared with."""

    def decode(values: pa.Array) -> pa.Array:
        rows, reasons = decoder_for(registry, reader).decode(values)
        return pa.StructArray.from_arrays([rows, reasons], [DECODED, REASON])

    return decode


def from_registry(value: Column | str, registry: SchemaRegistry, *, mode: str = "FAILFAST") -> Column:
    """A struct of the columns of the schema that `registry.of(SUBJECT)` names. A value that does not fit ends the
    query, or is null with the mode PERMISSIVE, as in Spark's `from_avro`."""
    from pyspark.sql import functions as F

    if mode.upper() not in ("FAILFAST", "PERMISSIVE"):
        raise OttlaError(f"the mode is FAILFAST or PERMISSIVE, not '{mode}'.")
    if registry.subject is None:
        raise OttlaError('say which schema is meant: from_registry("value", registry.of("orders-value")).')
    parsed = RegisteredColumns.of(registry).parsed(F.col(value) if isinstance(value, str) else value)
    if mode.upper() == "PERMISSIVE":
        return parsed[DECODED]
    return F.when(parsed[REASON].isNull(), parsed[DECODED]).otherwise(F.raise_error(parsed[REASON]))


def to_registry(
    frame: DataFrame,
    registry: SchemaRegistry,
    *,
    topic: str,
    columns: Sequence[str] | None = None,
    registers: bool = True,
) -> Column:
    """The columns of a frame (all, if they are not named) as values for a topic. The schema that follows from them is
    registered now; with `SchemaRegistry(..., auto_register=False)` the latest of the subject is written instead."""
    from pyspark.sql import functions as F

    names = list(frame.columns if columns is None else columns)
    chosen = StructType([frame.schema[name] for name in names])
    schema = registered_for(registry, _arrow(chosen), topic, registers=registers)
    return _encoded(F.struct(*(F.col(f"`{name}`") for name in names)), names, registry, schema)


def key_to_registry(
    frame: DataFrame, registry: SchemaRegistry, *, topic: str, columns: Sequence[str], registers: bool = True
) -> Column:
    """Columns as keys for a topic. One column is the key itself, and a record without it has no key; several are the
    fields of a record, and so are the parts of a struct."""
    from pyspark.sql import functions as F

    if len(columns) > 1:
        chosen: Any = StructType([frame.schema[name] for name in columns])
        schema = registered_for(registry, _arrow(chosen), topic, part="key", registers=registers)
        return _encoded(F.struct(*(F.col(f"`{name}`") for name in columns)), columns, registry, schema)
    (name,) = columns
    column, kind = F.col(f"`{name}`"), frame.schema[name].dataType
    schema = registered_for(registry, _arrow(kind), topic, part="key", registers=registers)
    if isinstance(kind, StructType):
        return _encoded(column, kind.names, registry, schema)
    named = VALUE if is_plain(schema) else name
    return _encoded(F.when(column.isNotNull(), F.struct(column.alias(named))), [named], registry, schema)


def _arrow(kind: Any) -> Any:
    from pyspark.sql.pandas.types import to_arrow_type

    return to_arrow_type(kind, timezone="UTC")


def _encoded(rows: Column, names: Sequence[str], registry: SchemaRegistry, schema: Registered) -> Column:
    """`rows`: structs of columns with these names."""
    from pyspark.sql.pandas.functions import ArrowUDFType, arrow_udf
    from pyspark.sql.pandas.types import from_arrow_type

    if schema.type == JSON and registry.auto_register and not is_plain(schema):
        return _json(rows, schema)
    encoder = encoder_for(registry, schema, tuple(names))
    if encoder.type is not None:
        rows = rows.cast(from_arrow_type(encoder.type, prefer_timestamp_ntz=True))
    encode = arrow_udf(_encoding(registry, schema, tuple(names)), "binary", ArrowUDFType.SCALAR)
    return encode(rows)


def _json(rows: Column, schema: Registered) -> Column:
    """By Spark's own writer: what follows from the columns needs no look at each row to see that it fits."""
    from pyspark.sql import functions as F

    form = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
    options = {"timeZone": "UTC", "timestampFormat": f"{form}XXX", "timestampNTZFormat": form}
    text = F.to_json(rows, options).cast("binary")
    return F.when(rows.isNotNull(), F.concat(F.lit(HEAD.pack(0, schema.id)), text))


def _encoding(registry: SchemaRegistry, schema: Registered, names: tuple[str, ...]) -> Any:
    def encode(rows: pa.Array) -> pa.Array:
        return encoder_for(registry, schema, names).encode(rows)

    return encode
