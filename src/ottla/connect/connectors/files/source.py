"""Files of a folder to a topic.

Each file is a partition, and how far it was read is its offset: so a file is read once, goes on where it was when more
is added to it, and several are read side by side.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import pyarrow as pa

from ottla.connect.api import (
    Column,
    ConfigDef,
    ConfigKey,
    ConfigType,
    ConnectorFailure,
    Importance,
    Offset,
    Outage,
    Partition,
    Read,
    Records,
    Schema,
    SchemaType,
    Source,
    check_numbers,
)
from ottla.connect.connectors.files.line_reading import LineReading
from ottla.connect.connectors.files.places import Place
from ottla.connect.connectors.files.reading import Piece, Reading, parse_types
from ottla.connect.definitions import at_least, one_of

FORMATS = ("csv", "json", "orc", "parquet", "text")
_NO_KEY = Schema(SchemaType.STRING, optional=True)


def _types(text: str) -> str | None:
    try:
        parse_types(text)
    except ValueError as error:
        return str(error)
    return None


class FilesSource(Source):
    config_def: ClassVar[ConfigDef] = ConfigDef(
        (
            ConfigKey(
                "path",
                ConfigType.STRING,
                "The folder: a path that Spark's tasks see, or the URI of a store, such as s3://bucket/in.",
                importance=Importance.HIGH,
            ),
            ConfigKey("topic", ConfigType.STRING, "Where records go.", importance=Importance.HIGH),
            ConfigKey(
                "format",
                ConfigType.STRING,
                f"Of the files: {', '.join(FORMATS)}. JSON has one value on each line.",
                importance=Importance.HIGH,
                check=one_of(*FORMATS),
                recommended=FORMATS,
            ),
            ConfigKey("files", ConfigType.STRING, "Which files, such as *.csv.", default="*"),
            ConfigKey(
                "key.column", ConfigType.STRING, "The column that is the record's key; none: no key.", default=None
            ),
            ConfigKey("csv.header", ConfigType.BOOLEAN, "Whether the first line names the columns.", default=True),
            ConfigKey(
                "csv.delimiter",
                ConfigType.STRING,
                "Between two values.",
                default=",",
                check=lambda text: None if len(text) == 1 else "one character, such as ;",
            ),
            ConfigKey(
                "columns.types",
                ConfigType.STRING,
                "Columns of CSV that are no texts: id:int64, amount:double.",
                default="",
                check=_types,
            ),
            ConfigKey(
                "incomplete.timeout.ms",
                ConfigType.LONG,
                "What has no end yet (a Parquet file that is being copied, a quoted value) counts as damaged when "
                "nobody has written to the file for so long.",
                default=60_000,
                importance=Importance.LOW,
                check=at_least(0),
            ),
        )
    )

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self._place = Place(self.settings["path"])
        self._sizes: dict[str, int] = {}
        self._is_tolerant = config.get("errors.tolerance", "none") == "all"

    def partitions(self, most: int) -> Sequence[Partition]:
        found = self._place.listed()
        self._sizes = {one.path: one.size for one in found if self._is_wanted(one.path)}
        return [{"file": path} for path in self._sizes]

    def _is_wanted(self, path: str) -> bool:
        return fnmatch.fnmatch(path.rpartition("/")[2], self.settings["files"])

    def has_more(self, partition: Partition, offset: Offset | None) -> bool:
        known = offset or {}
        return not known.get("done") and self._sizes[partition["file"]] > int(known.get("position", 0))

    def read(self, partition: Partition, offset: Offset | None) -> Iterator[Read]:
        path, kind = partition["file"], self.settings["format"]
        try:
            with self._place.system.open_input_file(path) as file:
                for column, behind, failures in self._pieces(file, path, offset or {}):
                    yield Read(self._records(column, path), behind, failures)
        except pa.ArrowInvalid as error:
            raise ConnectorFailure(f"{path} cannot be read as {kind}: {error}.") from None
        except FileNotFoundError:
            return
        except OSError as error:
            raise Outage(f"{path} cannot be read: {error}.") from None

    def check_offset(self, partition: Partition, offset: Offset) -> str | None:
        if not isinstance(partition.get("file"), str):
            return "the partition must have the key 'file', with a path as GET tells it"
        return check_numbers(offset, "position", "row_group", "stripe")

    def _pieces(self, file: Any, path: str, offset: Offset) -> Iterator[Piece]:
        settings = self.settings
        reading = Reading(
            settings["format"],
            settings["csv.delimiter"],
            settings["csv.header"],
            parse_types(settings["columns.types"]),
            self._is_tolerant,
        )

        def is_settled() -> bool:
            return bool(self._place.age_s(path) * 1000 >= settings["incomplete.timeout.ms"])

        if reading.has_lines:
            return LineReading(reading, file, path, is_settled).pieces(int(offset.get("position", 0)))
        return reading.pieces(file, path, offset, is_settled)

    def _records(self, column: Column, path: str) -> Records:
        count = len(column)
        return Records(
            topics=pa.repeat(self.settings["topic"], count),
            partitions=pa.nulls(count, pa.int32()),
            timestamps=pa.nulls(count, pa.int64()),
            keys=self._keys(column, count, path),
            values=column,
        )

    def _keys(self, column: Column, count: int, path: str) -> Column:
        name = self.settings["key.column"]
        if name is None or not count:
            return Column(_NO_KEY, pa.nulls(count, pa.string()))
        if column.schema is None:
            return Column(None, [value.get(name) if isinstance(value, dict) else None for value in column.data])
        schema = column.schema.field_named(name) if column.schema.fields else None
        if schema is None:
            raise ConnectorFailure(f"key.column is '{name}', but {path} has no such column.")
        return Column(schema, pa.compute.struct_field(column.data, name))
