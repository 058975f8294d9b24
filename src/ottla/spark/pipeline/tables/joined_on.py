"""What a row is joined on, as one text: rows of a table are found by it. Python and Spark make the same text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType


def can_be_text(schema: StructType, by: Sequence[str]) -> bool:
    """Whether two values of these columns are equal exactly if their texts are."""
    return bool(by) and all(_is_plain(schema[name].dataType) for name in by)


def _is_plain(kind: DataType) -> bool:
    from pyspark.sql import types

    # Not one of its subclasses: a text with a collation is equal to others.
    if type(kind) is types.StringType:
        return kind == types.StringType()
    return type(kind) in (types.ByteType, types.ShortType, types.IntegerType, types.LongType, types.BooleanType)


def text_column(columns: Sequence[Column]) -> Column:
    """Null if one of them is."""
    from pyspark.sql import functions as F

    texts = [column.cast("string") for column in columns]
    if len(texts) == 1:
        return texts[0]
    return F.concat(*(part for text in texts for part in (F.octet_length(text).cast("string"), F.lit(":"), text)))


def text_of(values: Sequence[object]) -> str | None:
    """The same, of values as Python has them."""
    if None in values:
        return None
    texts = [str(value).lower() if isinstance(value, bool) else str(value) for value in values]
    if len(texts) == 1:
        return texts[0]
    return "".join(f"{len(text.encode())}:{text}" for text in texts)
