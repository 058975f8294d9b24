"""Files of lines (CSV, JSON, text), block by block, whole rows only.

A last line without an end counts once nothing is added to the file any more, which nobody can know: as with every tool
that follows files, it is read when its end is written. A row that cannot be read is found by halving its block, so that
it can be told by its line, and passed over by itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import pyarrow as pa
from pyarrow import csv

from ottla.connect.api import Column, ConnectorFailure, Field, Schema, SchemaType
from ottla.connect.connectors.files import reading
from ottla.connect.connectors.files.csv_rows import Whole, row_ends, whole_rows
from ottla.connect.connectors.files.reading import TEXT, TYPES, IsSettled, Piece, Reading, nothing, one
from ottla.connect.connectors.lines import texts_of

_BOM = b"\xef\xbb\xbf"
_ARROW = {
    SchemaType.INT32: pa.int32(),
    SchemaType.INT64: pa.int64(),
    SchemaType.FLOAT32: pa.float32(),
    SchemaType.FLOAT64: pa.float64(),
    SchemaType.BOOLEAN: pa.bool_(),
    SchemaType.STRING: pa.string(),
}


class LineReading:
    """Of one file."""

    def __init__(self, how: Reading, file: Any, path: str, is_settled: IsSettled) -> None:
        self._how = how
        self._file = file
        self._path = path
        self._is_settled = is_settled
        self._delimiter = how.delimiter.encode()
        self._names: list[str] = []

    def pieces(self, position: int) -> Iterator[Piece]:
        """Raises ConnectorFailure."""
        if self._how.format == "csv":
            first = self._first_row()
            if first is None:
                return
            self._names = self._named(first)
            if self._how.has_header and position == 0:
                position = len(first)
        self._file.seek(position)
        rest, is_end = b"", False
        while not is_end:
            data = self._file.read(reading.BLOCK_BYTES)
            rest, is_end = rest + data, not data
            while True:
                whole = self._whole(rest)
                if whole.end:
                    block, rest = rest[: whole.end], rest[whole.end :]
                    column, failures = self._parsed(block, position)
                    position += whole.end
                    yield Piece(column, {"position": position}, failures)
                if not self._is_lost(whole, rest, is_end):
                    break
                sentence = self._lost(whole, position)
                # The line that the value begins in.
                skipped = rest.find(b"\n") + 1 or len(rest)
                rest, position = rest[skipped:], position + skipped
                yield Piece(nothing(), {"position": position}, (sentence,))

    # --- rows

    def _whole(self, data: bytes) -> Whole:
        if self._how.format == "csv":
            return whole_rows(data, self._delimiter)
        return Whole(data.rfind(b"\n") + 1, None)

    def _ends(self, data: bytes) -> list[int]:
        return list(row_ends(data, self._delimiter if self._how.format == "csv" else b"")) or [len(data)]

    def _is_lost(self, whole: Whole, rest: bytes, is_end: bool) -> bool:
        """Whether nobody will ever see the end of the row that `rest` begins with."""
        if len(rest) > reading.ROW_BYTES_MAX:
            return True
        return is_end and whole.open_at is not None and self._is_settled()

    def _lost(self, whole: Whole, position: int) -> str:
        where = f"{self._path}, line {self._line(position)}"
        if whole.open_at is None:
            raise ConnectorFailure(f"{where}: it is longer than {reading.ROW_BYTES_MAX} bytes, which no record can be.")
        sentence = f"{where}: a quoted value begins that does not end; close it, or double the quote."
        if not self._how.is_tolerant:
            raise ConnectorFailure(sentence)
        return sentence

    def _line(self, position: int) -> int:
        """The number of the line at a position; only where something is wrong, because it reads all before it."""
        here, count = self._file.tell(), 1
        self._file.seek(0)
        while position > 0 and (data := self._file.read(min(position, reading.BLOCK_BYTES))):
            count += data.count(b"\n")
            position -= len(data)
        self._file.seek(here)
        return count

    # --- what is in them

    def _parsed(self, block: bytes, at: int) -> tuple[Column, tuple[str, ...]]:
        columns, failures = self._parse(block, at)
        if len(columns) == 1:
            return columns[0], tuple(failures)
        if not columns:
            return nothing(), tuple(failures)
        if columns[0].schema is None:
            return Column(None, [value for column in columns for value in column.data]), tuple(failures)
        joined = pa.concat_arrays([column.data for column in columns])
        return Column(columns[0].schema, joined), tuple(failures)

    def _parse(self, block: bytes, at: int) -> tuple[list[Column], list[str]]:
        try:
            return [self._column(block)], []
        except (ValueError, RecursionError, pa.ArrowInvalid) as error:
            ends = self._ends(block)
            if len(ends) == 1:
                sentence = f"{self._path}, line {self._line(at)}: cannot be read as {self._how.format}: {error}."
                if not self._how.is_tolerant:
                    raise ConnectorFailure(sentence) from None
                return [], [sentence]
        middle = ends[len(ends) // 2 - 1]
        (columns, failures), (more, others) = self._parse(block[:middle], at), self._parse(block[middle:], at + middle)
        return columns + more, failures + others

    def _column(self, block: bytes) -> Column:
        if self._how.format == "text":
            return Column(TEXT, texts_of(block))
        if self._how.format == "json":
            return Column(None, [json.loads(line) for line in block.splitlines() if line.strip()])
        names = self._names
        kinds = {name: TYPES[kind] for name, kind in self._how.types.items()}
        types = {name: _ARROW[kinds.get(name, SchemaType.STRING)] for name in names}
        table = self._csv(block, csv.ReadOptions(column_names=names), types)
        fields = tuple(Field(name, Schema(kinds.get(name, SchemaType.STRING), optional=True)) for name in names)
        array = pa.StructArray.from_arrays([one(table.column(name)) for name in names], names)
        return Column(Schema(SchemaType.STRUCT, fields=fields), array)

    # --- CSV

    def _first_row(self) -> bytes | None:
        """With the mark of UTF-8 before it, if there is one. None: its end is not there yet."""
        self._file.seek(0)
        data: bytes = b""
        while more := self._file.read(64 * 1024):
            data += more
            mark = len(_BOM) if data.startswith(_BOM) else 0
            if (end := next(row_ends(data[mark:], self._delimiter), None)) is not None:
                return data[: mark + end]
            if len(data) > reading.ROW_BYTES_MAX:
                break
        whole = whole_rows(data.removeprefix(_BOM), self._delimiter)
        if self._is_lost(whole, data, is_end=True):
            raise ConnectorFailure(f"{self._path}, line 1: a quoted value begins that does not end; close it.")
        return None

    def _named(self, row: bytes) -> list[str]:
        table = self._csv(row.removeprefix(_BOM), csv.ReadOptions(autogenerate_column_names=True), {"f0": pa.string()})
        if not self._how.has_header:
            names = list(table.column_names)
        else:
            names = [str(column[0].as_py()) for column in table.columns]
        if unknown := set(self._how.types) - set(names):
            shown = ", ".join(names)
            raise ConnectorFailure(f"columns.types names '{min(unknown)}', but {self._path} has only: {shown}.")
        return names

    def _csv(self, block: bytes, options: Any, types: dict[str, Any]) -> Any:
        return csv.read_csv(
            BytesIO(block),
            read_options=options,
            parse_options=csv.ParseOptions(delimiter=self._how.delimiter, newlines_in_values=True),
            convert_options=csv.ConvertOptions(column_types=types, strings_can_be_null=False),
        )
