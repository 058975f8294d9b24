"""`format("ottla-table")`: a part of a topic whose offsets stand in a file, not in the query.

The query that a table belongs to stays the same while it runs, and the offsets move on. The file is on the driver's
machine, where sources are planned; it is read whenever Spark plans to read the part anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from ottla.client.fetching import OffsetRange
from ottla.common.ids import topic_id_from_text, topic_id_text
from ottla.spark.source.batch import BatchReader, SplitPartition
from ottla.spark.source.datasource import OttlaDataSource
from ottla.spark.source.options import SourceOptions, parse_options
from ottla.spark.source.splits import make_splits

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLE_FORMAT = "ottla-table"
RANGES = "ranges"
_PLANNED = ".planned"


class TableSource(OttlaDataSource):
    @classmethod
    def name(cls) -> str:
        return TABLE_FORMAT

    def schema(self) -> StructType:
        return OttlaDataSource({"includeHeaders": "true"}).schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        given = {name: text for name, text in self.options.items() if name.lower() != RANGES}
        options = parse_options({**given, "includeHeaders": "true"}, is_streaming=False)
        return TableReader(options, schema, self.cores, self.options[RANGES])


class TableReader(BatchReader):
    def __init__(self, options: SourceOptions, schema: StructType, cores: int, ranges: str) -> None:
        super().__init__(options, schema, cores)
        self._path = Path(ranges)

    def partitions(self) -> list[InputPartition]:
        """Before a query runs there is no file: whoever looks at the table then sees what the topic has."""
        if not self._path.exists():
            return super().partitions()
        splits = make_splits(read_ranges(self._path), self._cores)
        self._path.with_suffix(_PLANNED).touch()
        return [SplitPartition(split) for split in splits] or [SplitPartition([])]


def table_part(spark: SparkSession, options: Mapping[str, str], ranges: Path) -> DataFrame:
    """What the file `ranges` says, whenever it is read."""
    return spark.read.format(TABLE_FORMAT).options(**options).option(RANGES, str(ranges)).load()


def write_ranges(path: Path, ranges: Sequence[OffsetRange]) -> None:
    path.with_suffix(_PLANNED).unlink(missing_ok=True)
    rows = [
        [*offset_range[:4], None if offset_range.topic_id is None else topic_id_text(offset_range.topic_id)]
        for offset_range in ranges
    ]
    path.write_text(json.dumps(rows))


def read_ranges(path: Path) -> list[OffsetRange]:
    return [
        OffsetRange(topic, partition, start, end, None if name is None else topic_id_from_text(name))
        for topic, partition, start, end, name in json.loads(path.read_text())
    ]


def were_planned(path: Path) -> bool:
    """Whether Spark has taken the ranges that were written last."""
    return path.with_suffix(_PLANNED).exists()


def plan_anew(frame: DataFrame) -> None:
    """Spark asks a source which partitions it has once for each frame that was loaded, and not for each query with it
    (since 4.2). This lets it ask again."""
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
    for index in range(leaves.size()):
        table = leaves.apply(index).table()
        field = table.getClass().getDeclaredField("ds")
        field.setAccessible(True)
        field.get(table).setReadInfo(None)
