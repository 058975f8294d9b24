"""The rows of a table in a store of the driver, where a batch looks up those that it is joined with.

What a change costs is one cell of the store, and what a join costs is one look for each row of the batch: neither
depends on how large the table is. The driver reads what is new itself, and asks Spark only about values of which it is
not plain that they fit.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ottla.client.fetching import OffsetRange, OnLoss
from ottla.client.lookup import ClusterReader
from ottla.spark.pipeline.decoding import REASON, RECORD, judged
from ottla.spark.pipeline.tables.joined_on import text_column
from ottla.spark.pipeline.tables.plain_json import Doubtful, PlainJson
from ottla.spark.pipeline.tables.store import Cell, Store
from ottla.spark.pipeline.tables.walked import BadRecords, Between, Positions
from ottla.spark.pipeline.tables.winners import reason_why_bad
from ottla.spark.source.reading import read_ranges
from ottla.spark.source.table import TableSource, plan_anew, table_part, write_ranges

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

# Of what is put into the store at once.
_ROWS_MAX = 50_000
_BYTES_MAX = 16 * 1024 * 1024


class LookedUpRows:
    def __init__(
        self,
        spark: SparkSession,
        schema: StructType,
        options: Mapping[str, str],
        folder: Path,
        by: Sequence[str],
        between: Between,
        on_loss: OnLoss,
    ) -> None:
        self._spark = spark
        self._schema = schema
        self._by = by
        self._between = between
        self._on_loss = on_loss
        self._plain = PlainJson(schema, by)
        self._store = Store(folder / "rows.sqlite")
        self._ends: Positions = {}
        # By partition, the offsets of bad records.
        self._bad: dict[int, array[int]] = {}
        self._bad_ranges = folder / "bad"
        self._raw_bad = table_part(spark, options, self._bad_ranges)

    @property
    def path(self) -> str:
        return str(self._store.path)

    def follow(self, reader: ClusterReader, until: Positions, *, is_anew: bool) -> None:
        """Raises OttlaError."""
        if is_anew:
            self._store.clear()
            self._ends, self._bad = {}, {}
        ranges = self._between(self._ends, until)
        for records in _together(read_ranges(reader, ranges, _arrow_schema(), self._on_loss, with_headers=True)):
            self._store.put(self._cells(records))
        self._ends = until

    def _cells(self, records: Any) -> Iterator[Cell]:
        names = ("key", "value", "partition", "offset")
        columns = [records.column(name).to_pylist() for name in names]
        times_us = records.column("timestamp").cast(pa.int64()).to_pylist()
        plain: dict[int, str | None] = {}
        doubtful: list[int] = []
        for row, value in enumerate(columns[1]):
            if value is not None and columns[0][row] is not None:
                try:
                    plain[row] = self._plain.joined_on(value)
                except Doubtful:
                    doubtful.append(row)
        judged_rows = self._judged_by_spark(records, doubtful)
        for row, (key, value, partition, offset) in enumerate(zip(*columns, strict=True)):
            is_bad, text = judged_rows.get(row, (key is None, plain.get(row)))
            if is_bad:
                self._bad.setdefault(partition, array("q")).append(offset)
            else:
                yield Cell(key, partition, times_us[row], text, value)

    def _judged_by_spark(self, records: Any, rows: list[int]) -> dict[int, tuple[bool, str | None]]:
        """Of these rows, whether they are bad, and what they are joined on."""
        if not rows:
            return {}
        some = pa.Table.from_batches([records.take(pa.array(rows, pa.int64()))])
        frame = judged(self._spark.createDataFrame(some, TableSource({}).schema()), self._schema, None)
        # The columns of the schema are quoted as elsewhere: a name may have a dot in it.
        text = text_column([frame[f"`{name}`"] for name in self._by])
        found = frame.select(f"{RECORD}.partition", f"{RECORD}.offset", reason_why_bad().isNotNull(), text).collect()
        by_place = {(partition, offset): (is_bad, text) for partition, offset, is_bad, text in found}
        places = zip(some["partition"].to_pylist(), some["offset"].to_pylist(), strict=True)
        return {row: by_place[place] for row, place in zip(rows, places, strict=True)}

    def bad_records(self, after: Positions) -> list[BadRecords]:
        """They are read once more: there are few, or none."""
        wanted: list[OffsetRange] = []
        count = 0
        for partition, offsets in self._bad.items():
            offsets = self._bad[partition] = offsets[bisect_left(offsets, after.get(partition, 0)) :]
            count += len(offsets)
            if offsets:
                wanted += self._between({partition: offsets[0]}, {partition: offsets[-1] + 1})
        if not wanted:
            return []
        plan_anew(self._raw_bad)
        write_ranges(self._bad_ranges, wanted)
        found = judged(self._raw_bad, self._schema, None).withColumn(REASON, reason_why_bad())
        return [BadRecords(found.where(f"{REASON} is not null"), count)]

    def close(self) -> None:
        self._store.close()


def _together(pieces: Iterator[Any]) -> Iterator[Any]:
    """Where Spark is asked about all of them, it is asked less often."""
    some: list[Any] = []
    for piece in pieces:
        some.append(piece)
        if sum(each.num_rows for each in some) >= _ROWS_MAX or sum(each.nbytes for each in some) >= _BYTES_MAX:
            yield pa.concat_batches(some)
            some = []
    if some:
        yield pa.concat_batches(some)


def _arrow_schema() -> Any:
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(TableSource({}).schema(), timezone="UTC")
