"""One table: what Spark keeps of it in memory, and how it follows its topic.

    base      the candidates of all records up to some offsets, decoded
    news      the candidates of the records since then
    changed   all candidates of the keys that are in the news

The frame that pipelines join with is made of base and changed, and never of the topic: while nothing is new in it,
nothing is read. The frames stay the same for as long as the query runs, because its plan has them; what changes is what
Spark keeps for them. News are read anew when there are more of them, and the base when they have become many: what a
change costs is bounded by the number of changes, not by the size of the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.client.fetching import OffsetRange
from ottla.client.lookup import EARLIEST, LATEST, ClusterReader
from ottla.client.settings import parse_settings
from ottla.common.errors import OttlaError
from ottla.common.ids import ZERO_TOPIC_ID, TopicPartition, topic_id_text
from ottla.spark.pipeline.tables.winners import (
    IS_BAD,
    OFFSET,
    PARTITION,
    bad_rows,
    candidates,
    changed_keys,
    live_rows,
    with_winners,
)
from ottla.spark.sink.manifest import TableEnd
from ottla.spark.source.loss import loss_handler
from ottla.spark.source.table import RANGES, TABLE_FORMAT, plan_anew, were_planned, write_ranges

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

# News are read again with every change: beyond so many, or this share of the base, they become part of it.
NEWS_RECORDS_MAX = 10_000
NEWS_SHARE_MAX = 0.02

# By partition.
Positions = dict[int, int]


class Table:
    def __init__(
        self,
        spark: SparkSession,
        topic: str,
        schema: StructType,
        options: Mapping[str, str],
        folder: Path,
        by: Sequence[str] = (),
    ) -> None:
        """`options` are those of a batch source, `folder` is for files of our own. `by`: the columns that rows are
        divided by, so that a join on them finds them where they are."""
        self.topic = topic
        self._settings = parse_settings(options)
        self._cluster: ClusterReader | None = None
        self._on_loss = loss_handler(options.get("failOnDataLoss", "true").lower() == "true")
        self._base_ranges, self._news_ranges = folder / "base", folder / "news"
        write_ranges(self._news_ranges, [])

        def part(ranges: Path) -> DataFrame:
            return spark.read.format(TABLE_FORMAT).options(**options).option(RANGES, str(ranges)).load()

        self._raw_base, self._raw_news = part(self._base_ranges), part(self._news_ranges)

        def divided(frame: DataFrame) -> DataFrame:
            count = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
            return frame.repartition(count, *(f"`{name}`" for name in by)) if by else frame

        self._base = divided(with_winners(candidates(self._raw_base, schema)))
        self._news = candidates(self._raw_news, schema)
        self._changed = divided(changed_keys(self._base, self._news))
        self.frame = live_rows(self._base, self._changed)
        self._at: TableEnd | None = None
        self._base_ends: Positions = {}
        self._base_rows = 0
        # Of base and changed: the last bad record in each partition.
        self._bad: list[Positions] = [{}, {}]

    @property
    def _reader(self) -> ClusterReader:
        if self._cluster is None:
            self._cluster = ClusterReader(self._settings)
        return self._cluster

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
        if self._at is not None and self._at.topic_id != end.topic_id:
            self._on_loss(f"topic '{self.topic}', read as a table, was deleted and made anew.")
            self._at = None
        wanted = positions(end)
        behind = sum(offset - self._base_ends.get(partition, 0) for partition, offset in wanted.items())
        self._forget_news()
        if self._at is None or behind > max(NEWS_RECORDS_MAX, NEWS_SHARE_MAX * self._base_rows):
            self._read_base(wanted)
        self._read_news(wanted)
        self._at = end

    def _read_base(self, until: Positions) -> None:
        self._base.unpersist()
        plan_anew(self._raw_base)
        write_ranges(self._base_ranges, self._ranges({}, until))
        self._base_rows, self._bad[0] = _kept(self._base, self._base_ranges)
        self._base_ends = until

    def _read_news(self, until: Positions) -> None:
        plan_anew(self._raw_news)
        write_ranges(self._news_ranges, self._ranges(self._base_ends, until))
        self._news.persist()
        _, self._bad[1] = _kept(self._changed, self._news_ranges)

    def end_again(self, end: TableEnd) -> TableEnd:
        """Where a batch has read it to before, if the topic is still the same. Raises OttlaError if not."""
        if self._described()[0] == end.topic_id:
            return end
        self._on_loss(f"topic '{self.topic}', read as a table, was deleted and made anew.")
        return self.end_now()

    def _ranges(self, since: Positions, until: Positions) -> list[OffsetRange]:
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

    def bad_records(self, before: TableEnd | None) -> list[DataFrame]:
        """Those that are new since then, if there are any."""
        after = {} if before is None or self._at is None or before.topic_id != self._at.topic_id else positions(before)
        return [
            bad_rows(found, after)
            for found, last in zip((self._base, self._changed), self._bad, strict=True)
            if any(offset >= after.get(partition, 0) for partition, offset in last.items())
        ]

    def _forget_news(self) -> None:
        self._changed.unpersist()
        self._news.unpersist()

    def close(self) -> None:
        self._forget_news()
        self._base.unpersist()
        if self._cluster is not None:
            self._cluster.close()


def positions(end: TableEnd) -> Positions:
    return {int(partition): offset for partition, offset in end.ends.items()}


def _kept(frame: DataFrame, ranges: Path) -> tuple[int, Positions]:
    """Computes a frame and keeps it: how many rows it has, and the last bad one in each partition."""
    from pyspark.sql import functions as F

    frame.persist()
    bad = F.max(F.when(F.col(IS_BAD), F.col(OFFSET)))
    found = frame.groupBy(PARTITION).agg(F.count(F.lit(1)), bad).collect()
    if not were_planned(ranges):
        raise OttlaError("this version of Spark does not read a table again: pipelines with tables cannot run on it.")
    return sum(row[1] for row in found), {row[0]: row[2] for row in found if row[2] is not None}


def refuse_options(options: Mapping[str, object]) -> None:
    """A table is all of its topic, up to where the manifest says."""
    for name in options:
        if name.lower().startswith(("starting", "ending", "subscribe", "assign", "maxoffsets", "minoffsets")):
            raise OttlaError(f"a table has no option {name}: it is the last value of each key of its topic.")
