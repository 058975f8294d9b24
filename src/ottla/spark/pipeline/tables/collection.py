"""All tables of a query: up to date before a batch begins, and up to where they are is in its manifest."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.common.errors import OttlaError
from ottla.spark.driver_folder import DriverFolder
from ottla.spark.pipeline.decoding import dead_letters
from ottla.spark.pipeline.tables.table import Table
from ottla.spark.sink.checkpoint import Checkpoint
from ottla.spark.sink.driver_spool import folder_for_files
from ottla.spark.sink.manifest import Manifests, TableEnd
from ottla.spark.source.gate import Gate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from ottla.spark.registered import RegisteredColumns


class Tables:
    def __init__(self, spark: SparkSession, pipeline: str, dead_letter_topic: str) -> None:
        self._spark = spark
        self._pipeline = pipeline
        self._dead_letter_topic = dead_letter_topic
        self._tables: list[Table] = []
        self._frames: dict[tuple[object, ...], DataFrame] = {}
        self._gate: Gate | None = None
        self._folder: DriverFolder | None = None
        self._checkpoint: Checkpoint | None = None
        self._manifests: Manifests | None = None
        self._on_failure: Callable[[Exception], None] = lambda error: None
        self._guard = threading.Lock()
        self._was_knocked = False
        # By batch, of those that nobody has asked for yet.
        self._letter_counts: dict[int, int] = {}

    @property
    def names(self) -> list[str]:
        return [table.topic for table in self._tables]

    @property
    def token(self) -> str:
        """For the streams of the same query, which come here before each batch."""
        if self._gate is None:
            self._gate = Gate(self._before_batch)
        return self._gate.token

    def add(
        self,
        topic: str,
        schema: StructType,
        options: Mapping[str, str],
        by: Sequence[str],
        key: RegisteredColumns | None = None,
    ) -> DataFrame:
        """Two that are asked for alike are one."""
        # What a registry says of the columns is no part of their names and types.
        of_key = None if key is None else key.reader
        asked = (
            topic, schema.json(), getattr(schema, "reader", None), of_key, tuple(sorted(options.items())), tuple(by)
        )  # fmt: skip
        if asked not in self._frames:
            folder = self._folder_of_all() / str(len(self._tables))
            folder.mkdir()
            table = Table(self._spark, topic, schema, options, folder, by, key)
            self._tables.append(table)
            self._frames[asked] = table.frame
        return self._frames[asked]

    def _folder_of_all(self) -> Path:
        if self._folder is None:
            parent = folder_for_files(self._spark.sparkContext.getConf())
            try:
                self._folder = DriverFolder(parent, "ottla-tables-")
            except OSError as error:
                raise OttlaError(
                    f"the driver cannot keep tables in {parent}: {error.strerror}; set spark.ottla.spool.dir to a "
                    "folder on a disk with room for them."
                ) from None
        return self._folder.path

    # --- what the sink calls

    def with_lookups(self, frame: DataFrame) -> DataFrame:
        for table in self._tables:
            frame = table.with_lookups(frame)
        return frame

    def open(self, checkpoint: Checkpoint, manifests: Manifests, on_failure: Callable[[Exception], None]) -> None:
        """Before the query starts. The batch that Spark runs again, if there is one, sees what it saw before."""
        self._checkpoint, self._manifests, self._on_failure = checkpoint, manifests, on_failure
        if not self._tables:
            return
        again = checkpoint.unfinished_batch()
        if again is None:
            self._move_on()
            return
        manifest = manifests.holding(again)
        ends: dict[str, TableEnd] = {}
        for table in self._tables:
            if table.topic not in ends:
                noted = manifest.tables.get(table.topic)
                ends[table.topic] = table.end_now() if noted is None else table.end_again(noted)
            table.follow(ends[table.topic])
        # Tables that the pipeline did not have when the batch ran first.
        late = sorted({*(ends.keys() - manifest.tables.keys()), *(ends.keys() & set(manifest.late))})
        manifests.write(again, replace(manifest, tables=ends, late=late))

    def dead_letters(self, batch: int) -> list[DataFrame]:
        """Of the records that this batch is the first to have in its tables."""
        assert self._manifests is not None
        before = self._manifests.holding(batch - 1).covered
        now = self._manifests.holding(batch).covered
        found = [
            bad
            for table in self._tables
            if before.get(table.topic) != now.get(table.topic)
            for bad in table.bad_records(before.get(table.topic))
        ]
        if found:
            self._letter_counts[batch] = sum(bad.count for bad in found)
        return [dead_letters(bad.frame, self._dead_letter_topic, self._pipeline) for bad in found]

    def count_letters(self, batch: int) -> int:
        """How many dead letters of tables a batch had that is done. Once: they are forgotten then."""
        count = self._letter_counts.get(batch, 0)
        for known in [known for known in list(self._letter_counts) if known <= batch]:
            del self._letter_counts[known]
        return count

    def batch_done(self) -> None:
        """A batch that began without a knock is of streams that do not know of the gate, or of a clock: the next one
        has the tables as they are now."""
        if self._tables and not self._was_knocked:
            self._move_on()
        self._was_knocked = False

    def close(self) -> None:
        """As often as you like."""
        if self._gate is not None:
            self._gate.close()
        with self._guard:
            for table in self._tables:
                with suppress(Exception):  # Spark may be gone
                    table.close()
            self._tables = []
        if self._folder is not None:
            self._folder.close()

    # --- before a batch

    def _before_batch(self) -> bool:
        if not self._tables:
            return False
        self._was_knocked = True
        try:
            self._move_on()
        except Exception as error:
            self._on_failure(error)
            raise
        return True

    def _move_on(self) -> None:
        """To where the topics are now, and write down that the next batch sees that."""
        assert self._checkpoint is not None and self._manifests is not None
        with self._guard:
            ends: dict[str, TableEnd] = {}
            for table in self._tables:
                if table.topic not in ends:
                    ends[table.topic] = table.end_now()
                table.follow(ends[table.topic])
            newest = self._checkpoint.newest_batch()
            batch = 0 if newest is None else newest + 1
            self._manifests.write(batch, replace(self._manifests.holding(batch), tables=ends, late=[]))
