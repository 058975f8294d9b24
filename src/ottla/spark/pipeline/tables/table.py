"""One table: up to where its topic is read, and what keeps its rows.

Queries walk over all rows (`walked.py`), or look up those that they are joined with (`looked_up.py`); which of the two
a table needs is known when the query is (`lookup_join.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.client.fetching import OffsetRange
from ottla.client.lookup import EARLIEST, LATEST, ClusterReader
from ottla.client.settings import parse_settings
from ottla.common.errors import OttlaError
from ottla.common.ids import ZERO_TOPIC_ID, TopicPartition, topic_id_text
from ottla.spark.pipeline.tables.joined_on import can_be_text
from ottla.spark.pipeline.tables.looked_up import LookedUpRows
from ottla.spark.pipeline.tables.lookup_join import Lookup
from ottla.spark.pipeline.tables.walked import BadRecords, Positions, WalkedRows
from ottla.spark.sink.manifest import TableEnd
from ottla.spark.source.loss import loss_handler

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from ottla.spark.registered import RegisteredColumns


class Table:
    def __init__(
        self,
        spark: SparkSession,
        topic: str,
        schema: StructType,
        options: Mapping[str, str],
        folder: Path,
        by: Sequence[str] = (),
        key: RegisteredColumns | None = None,
    ) -> None:
        """`options` are those of a batch source, `folder` is for files of our own. `by`: the columns that it is joined
        on. `key`: how keys are decoded into a column, if they are."""
        self.topic = topic
        self._spark, self._schema, self._by, self._key = spark, schema, by, key
        self._options, self._folder = options, folder
        self._settings = parse_settings(options)
        self._cluster: ClusterReader | None = None
        self._on_loss = loss_handler(options.get("failOnDataLoss", "true").lower() == "true")
        self._walked = WalkedRows(spark, schema, options, folder, by, self._between, key)
        self._looked_up: LookedUpRows | None = None
        self._is_walked = True
        self._at: TableEnd | None = None
        # By this name it is found in the plan of a query.
        self._name = f"_{folder.parent.name}_{folder.name}_".replace("-", "_")

    @cached_property
    def frame(self) -> DataFrame:
        return self._walked.frame.alias(self._name)

    @property
    def _reader(self) -> ClusterReader:
        if self._cluster is None:
            self._cluster = ClusterReader(self._settings)
        return self._cluster

    # --- how it is used

    def with_lookups(self, frame: DataFrame) -> DataFrame:
        """The query `frame`, before it starts: what is joined on `by` is looked up. The store is a file, so that can be
        done where all of Spark runs on the driver's machine."""
        master = str(self._spark.sparkContext.master)
        # The store has values: what the key says beside them is in the frames alone.
        if self._key is not None or not master.startswith("local") or not can_be_text(self._schema, self._by):
            return frame
        rows = LookedUpRows(
            self._spark, self._schema, self._options, self._folder, self._by, self._between, self._on_loss
        )
        lookup = Lookup(self._spark, self._name, self._schema, self._by, rows.path)
        joined = lookup.in_place_of_joins(frame)
        if not lookup.joins:
            rows.close()
            return frame
        self._looked_up = rows
        self._is_walked = lookup.is_left_in(joined)
        return joined

    # --- where it is

    def end_now(self) -> TableEnd:
        """Raises OttlaError when the topic is not there."""
        topic_id, partitions = self._described()
        ends = self._reader.offsets({TopicPartition(self.topic, partition): LATEST for partition in partitions})
        before = positions(self._at) if self._at is not None and self._at.topic_id == topic_id else {}
        # After a restart a leader may state an end that lies before what it served already, for a moment.
        now = {
            partition.partition: max(end, before.get(partition.partition, 0)) for partition, end in sorted(ends.items())
        }
        return TableEnd(topic_id, {str(partition): end for partition, end in now.items()})

    def _described(self) -> tuple[str, list[int]]:
        found = self._reader.partitions([self.topic]).get(self.topic)
        if found is None:
            raise OttlaError(f"there is no topic '{self.topic}', which is read as a table.")
        return topic_id_text(self._reader.topic_ids.get(self.topic, ZERO_TOPIC_ID)), found

    def follow(self, end: TableEnd) -> None:
        """Be what the topic says up to there. Raises OttlaError."""
        if end == self._at:
            return
        before, self._at = self._at, None
        if before is not None and before.topic_id != end.topic_id:
            self._on_loss(f"topic '{self.topic}', read as a table, was deleted and made anew.")
            before = None
        until = positions(end)
        if self._is_walked:
            self._walked.follow(until, is_anew=before is None)
        if self._looked_up is not None:
            self._looked_up.follow(self._reader, until, is_anew=before is None)
        self._at = end

    def end_again(self, end: TableEnd) -> TableEnd:
        """Where a batch has read it to before, if the topic is still the same. Raises OttlaError if not."""
        if self._described()[0] == end.topic_id:
            return end
        self._on_loss(f"topic '{self.topic}', read as a table, was deleted and made anew.")
        return self.end_now()

    def _between(self, since: Positions, until: Positions) -> list[OffsetRange]:
        new = [TopicPartition(self.topic, partition) for partition in until if partition not in since]
        starts = {
            partition.partition: start
            for partition, start in self._reader.offsets(dict.fromkeys(new, EARLIEST)).items()
        }
        starts |= since
        topic_id = self._reader.topic_ids.get(self.topic)
        return [
            OffsetRange(self.topic, partition, starts[partition], end, topic_id) for partition, end in until.items()
        ]

    # --- what was set aside

    def bad_records(self, before: TableEnd | None) -> list[BadRecords]:
        """Those that are new since then, if there are any."""
        after = {} if before is None or self._at is None or before.topic_id != self._at.topic_id else positions(before)
        return (self._looked_up or self._walked).bad_records(after)

    def close(self) -> None:
        self._walked.close()
        if self._looked_up is not None:
            self._looked_up.close()
        if self._cluster is not None:
            self._cluster.close()


def positions(end: TableEnd) -> Positions:
    return {int(partition): offset for partition, offset in end.ends.items()}


def refuse_options(options: Mapping[str, object]) -> None:
    """A table is all of its topic, up to where the manifest says."""
    for name in options:
        if name.lower().startswith(("starting", "ending", "subscribe", "assign", "maxoffsets", "minoffsets")):
            raise OttlaError(f"a table has no option {name}: it is the last value of each key of its topic.")
