"""Pieces of a file, each with where to go on after it: a position in bytes, or the number of a row group or stripe.

A file may be read while somebody still writes it. What is not whole yet is waited for, until nobody has written to the
file for a while: then it counts as damaged, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import orc, parquet

from ottla.connect.api import Column, ConnectorFailure, Schema, SchemaType
from ottla.connect.connectors.files.arrow_schemas import schema_of

BLOCK_BYTES = 1024 * 1024
# A row that is longer is none: somebody has forgotten a quote, or the end of a line.
ROW_BYTES_MAX = 16 * 1024 * 1024
TEXT = Schema(SchemaType.STRING, optional=True)
TYPES = {
    "int32": SchemaType.INT32,
    "int64": SchemaType.INT64,
    "float": SchemaType.FLOAT32,
    "double": SchemaType.FLOAT64,
    "boolean": SchemaType.BOOLEAN,
    "string": SchemaType.STRING,
}
# What a file of these begins with; what it ends with says where everything is.
_MAGIC = {"parquet": b"PAR1", "orc": b"ORC"}

# Whether nobody has written to the file for a while.
IsSettled = Callable[[], bool]


class Piece(NamedTuple):
    column: Column
    offset: dict[str, Any]
    # What is passed over, a sentence for each.
    failures: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reading:
    """How files are read."""

    format: str
    delimiter: str
    has_header: bool
    # Of columns of CSV whose values are no texts.
    types: Mapping[str, str]
    # errors.tolerance=all: what cannot be read is passed over.
    is_tolerant: bool = False

    @property
    def has_lines(self) -> bool:
        """Else it has columns, and `pieces` reads it."""
        return self.format not in _MAGIC

    def pieces(self, file: Any, path: str, offset: Mapping[str, Any], is_settled: IsSettled) -> Iterator[Piece]:
        """`file`: one of PyArrow's, that can be read from any position. Raises ConnectorFailure."""
        if self.format == "parquet":
            return self._groups(file, path, int(offset.get("row_group", 0)), is_settled)
        return self._stripes(file, path, int(offset.get("stripe", 0)), is_settled)

    def _groups(self, file: Any, path: str, first: int, is_settled: IsSettled) -> Iterator[Piece]:
        try:
            opened = parquet.ParquetFile(file)
        except (pa.ArrowInvalid, OSError) as error:
            yield from self._unfinished(file, path, is_settled, error)
            return
        count = opened.num_row_groups
        for number in range(first, count):
            yield Piece(_structs(opened.read_row_group(number)), {"row_group": number + 1, "done": number + 1 == count})

    def _stripes(self, file: Any, path: str, first: int, is_settled: IsSettled) -> Iterator[Piece]:
        try:
            opened = orc.ORCFile(file)
        except (pa.ArrowInvalid, OSError) as error:
            yield from self._unfinished(file, path, is_settled, error)
            return
        for number in range(first, opened.nstripes):
            table = pa.Table.from_batches([opened.read_stripe(number)])
            yield Piece(_structs(table), {"stripe": number + 1, "done": number + 1 == opened.nstripes})

    def _unfinished(self, file: Any, path: str, is_settled: IsSettled, error: Exception) -> Iterator[Piece]:
        """A file that begins as it should and cannot be opened: its end is not there yet, or never will be."""
        magic = _MAGIC[self.format]
        file.seek(0)
        if not magic.startswith(file.read(len(magic))):
            raise ConnectorFailure(f"{path} cannot be read as {self.format}: {error}.") from None
        if not is_settled():
            return
        sentence = (
            f"{path} is damaged: it begins as {self.format} and has no end, and nobody writes to it any more; bring it "
            f"again as a whole, or remove it ({error})."
        )
        if not self.is_tolerant:
            raise ConnectorFailure(sentence) from None
        yield Piece(nothing(), {"done": True}, (sentence,))


def nothing() -> Column:
    return Column(TEXT, pa.array([], pa.string()))


def one(column: Any) -> Any:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _structs(table: Any) -> Column:
    schema, kind = schema_of(pa.struct(list(table.schema)))
    arrays = [one(column.cast(part.type, safe=False)) for column, part in zip(table.columns, kind, strict=True)]
    array = pa.StructArray.from_arrays(arrays, [part.name for part in kind])
    return Column(Schema(SchemaType.STRUCT, fields=schema.fields), array)


def parse_types(text: str) -> dict[str, str]:
    """`id:int64, amount:double`. Raises ValueError."""
    found: dict[str, str] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, colon, kind = part.rpartition(":")
        if not colon or kind.strip() not in TYPES:
            raise ValueError(f"'{part}' is not NAME:TYPE with one of {', '.join(TYPES)}")
        found[name.strip()] = kind.strip()
    return found
