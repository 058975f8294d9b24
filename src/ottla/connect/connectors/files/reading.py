"""Pieces of a file, each with where to go on after it: a position in bytes, or the number of a row group or stripe."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import pyarrow as pa
from pyarrow import csv, orc, parquet

from ottla.connect.api import Column, ConnectorFailure, Field, Schema, SchemaType
from ottla.connect.connectors.files.arrow_schemas import schema_of
from ottla.connect.connectors.lines import texts_of

BLOCK_BYTES = 1024 * 1024
_TEXT = Schema(SchemaType.STRING, optional=True)
_NUMBERS = {"int32": SchemaType.INT32, "int64": SchemaType.INT64, "float": SchemaType.FLOAT32}
_TYPES = {
    **_NUMBERS,
    "double": SchemaType.FLOAT64,
    "boolean": SchemaType.BOOLEAN,
    "string": SchemaType.STRING,
}
_ARROW = {
    SchemaType.INT32: pa.int32(),
    SchemaType.INT64: pa.int64(),
    SchemaType.FLOAT32: pa.float32(),
    SchemaType.FLOAT64: pa.float64(),
    SchemaType.BOOLEAN: pa.bool_(),
    SchemaType.STRING: pa.string(),
}

Piece = tuple[Column, dict[str, Any]]


@dataclass(frozen=True)
class Reading:
    """How files are read."""

    format: str
    delimiter: str
    has_header: bool
    # Of columns of CSV whose values are no texts.
    types: Mapping[str, str]

    def pieces(self, file: Any, path: str, offset: Mapping[str, Any]) -> Iterator[Piece]:
        """`file`: one of PyArrow's, that can be read from any position. Raises ConnectorFailure."""
        if self.format == "parquet":
            return self._groups(parquet.ParquetFile(file), int(offset.get("row_group", 0)))
        if self.format == "orc":
            return self._stripes(orc.ORCFile(file), int(offset.get("stripe", 0)))
        return self._blocks(file, path, int(offset.get("position", 0)))

    # --- formats with columns

    def _groups(self, file: Any, first: int) -> Iterator[Piece]:
        for number in range(first, file.num_row_groups):
            yield (
                _structs(file.read_row_group(number)),
                {"row_group": number + 1, "done": number + 1 == file.num_row_groups},
            )

    def _stripes(self, file: Any, first: int) -> Iterator[Piece]:
        for number in range(first, file.nstripes):
            table = pa.Table.from_batches([file.read_stripe(number)])
            yield _structs(table), {"stripe": number + 1, "done": number + 1 == file.nstripes}

    # --- formats with lines

    def _blocks(self, file: Any, path: str, position: int) -> Iterator[Piece]:
        names = self._names(file, path) if self.format == "csv" else []
        if self.format == "csv" and self.has_header and position == 0:
            position = self._header_bytes(file)
        file.seek(position)
        rest = b""
        while data := file.read(BLOCK_BYTES):
            rest += data
            end = self._end(rest)
            if end == 0:
                continue
            block, rest = rest[:end], rest[end:]
            position += end
            yield self._parsed(block, names, path, position - end), {"position": position}
        # A last line without an end counts once nothing is added to the file any more, which nobody can know: as with
        # every tool that follows files, it is read when its end is written.

    def _end(self, data: bytes) -> int:
        """Behind the last line that is whole. In CSV the end of a line may stand within quotes."""
        end: int = data.rfind(b"\n") + 1
        while self.format == "csv" and end and data.count(b'"', 0, end) % 2:
            end = data.rfind(b"\n", 0, end - 1) + 1
        return end

    def _header_bytes(self, file: Any) -> int:
        file.seek(0)
        data: bytes = b""
        while more := file.read(64 * 1024):
            data += more
            end = 0
            while (end := data.find(b"\n", end) + 1) > 0:
                if data.count(b'"', 0, end) % 2 == 0:
                    return int(end)
        return 0

    def _names(self, file: Any, path: str) -> list[str]:
        if not self.has_header:
            return []
        file.seek(0)
        end = self._header_bytes(file)
        file.seek(0)
        line = file.read(end)
        if not line:
            return []
        table = csv.read_csv(
            BytesIO(line.removeprefix(b"\xef\xbb\xbf")),
            read_options=csv.ReadOptions(autogenerate_column_names=True),
            parse_options=csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            convert_options=csv.ConvertOptions(column_types={"f0": pa.string()}),
        )
        names = [str(column[0].as_py()) for column in table.columns]
        if unknown := set(self.types) - set(names):
            raise ConnectorFailure(f"columns.types names '{min(unknown)}', but {path} has only: {', '.join(names)}.")
        return names

    def _parsed(self, block: bytes, names: list[str], path: str, at: int) -> Column:
        if self.format == "text":
            return Column(_TEXT, texts_of(block))
        try:
            if self.format == "json":
                return Column(None, [json.loads(line) for line in block.splitlines() if line.strip()])
            return self._rows(block, names)
        except (ValueError, pa.ArrowInvalid) as error:
            raise ConnectorFailure(f"{path} cannot be read as {self.format} after byte {at}: {error}.") from None

    def _rows(self, block: bytes, names: list[str]) -> Column:
        kinds = {name: _TYPES[kind] for name, kind in self.types.items()}
        if not names:
            table = self._csv(block, csv.ReadOptions(autogenerate_column_names=True), {})
            names = table.column_names
        types = {name: _ARROW[kinds.get(name, SchemaType.STRING)] for name in names}
        table = self._csv(block, csv.ReadOptions(column_names=names), types)
        fields = tuple(Field(name, Schema(kinds.get(name, SchemaType.STRING), optional=True)) for name in names)
        array = pa.StructArray.from_arrays([_one(table.column(name)) for name in names], names)
        return Column(Schema(SchemaType.STRUCT, fields=fields), array)

    def _csv(self, block: bytes, options: Any, types: dict[str, Any]) -> Any:
        return csv.read_csv(
            BytesIO(block),
            read_options=options,
            parse_options=csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            convert_options=csv.ConvertOptions(column_types=types, strings_can_be_null=False),
        )


def _one(column: Any) -> Any:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _structs(table: Any) -> Column:
    schema, kind = schema_of(pa.struct(list(table.schema)))
    arrays = [_one(column.cast(part.type, safe=False)) for column, part in zip(table.columns, kind, strict=True)]
    array = pa.StructArray.from_arrays(arrays, [part.name for part in kind])
    return Column(Schema(SchemaType.STRUCT, fields=schema.fields), array)


def parse_types(text: str) -> dict[str, str]:
    """`id:int64, amount:double`. Raises ValueError."""
    found: dict[str, str] = {}
    for part in filter(None, (one.strip() for one in text.split(","))):
        name, colon, kind = part.rpartition(":")
        if not colon or kind.strip() not in _TYPES:
            raise ValueError(f"'{part}' is not NAME:TYPE with one of {', '.join(_TYPES)}")
        found[name.strip()] = kind.strip()
    return found
