"""The rows of a table as frames that Spark keeps in memory: for any query, which walks over all of them.

    base      the candidates of all records up to some offsets, decoded
    news      the candidates of the records since then
    changed   all candidates of the keys that are in the news

The frame that pipelines join with is made of base and changed, and never of the topic: while nothing is new in it,
nothing is read. The frames stay the same for as long as the query runs, because its plan has them; what changes is what
Spark keeps for them. News are read anew when there are more of them, and the base when they have become many: what is
read and decoded is bounded by the number of changes. What a query walks over is all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.client.fetching import OffsetRange
from ottla.common.errors import OttlaError
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
from ottla.spark.source.table import plan_anew, table_part, were_planned, write_ranges

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from ottla.spark.registered import RegisteredColumns

# News are read again with every change: beyond so many, or this share of the base, they become part of it.
NEWS_RECORDS_MAX = 10_000
NEWS_SHARE_MAX = 0.02

# By partition.
Positions = dict[int, int]
# The records between two positions.
Between = Callable[[Positions, Positions], list[OffsetRange]]


@dataclass(frozen=True)
class BadRecords:
    """In the form that dead letters are made of."""

    frame: DataFrame
    count: int


class WalkedRows:
    def __init__(
        self,
        spark: SparkSession,
        schema: StructType,
        options: Mapping[str, str],
        folder: Path,
        by: Sequence[str],
        between: Between,
        key: RegisteredColumns | None = None,
    ) -> None:
        """`options` are those of a batch source, `folder` is for files of our own. `by`: the columns that rows are
        divided by, so that a join on them finds them where they are. `key`: how keys are decoded, if they are."""
        self._between = between
        self._base_ranges, self._news_ranges = folder / "base", folder / "news"
        write_ranges(self._news_ranges, [])
        self._raw_base = table_part(spark, options, self._base_ranges)
        self._raw_news = table_part(spark, options, self._news_ranges)

        def divided(frame: DataFrame) -> DataFrame:
            count = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
            return frame.repartition(count, *(f"`{name}`" for name in by)) if by else frame

        self._base = divided(with_winners(candidates(self._raw_base, schema, key)))
        self._news = candidates(self._raw_news, schema, key)
        self._changed = divided(changed_keys(self._base, self._news))
        self.frame = live_rows(self._base, self._changed)
        self._base_ends: Positions | None = None
        self._base_rows = 0
        # Of base and changed: the last bad record in each partition.
        self._bad: list[Positions] = [{}, {}]

    def follow(self, until: Positions, *, is_anew: bool) -> None:
        """Raises OttlaError."""
        if is_anew:
            self._base_ends = None
        behind = sum(offset - (self._base_ends or {}).get(partition, 0) for partition, offset in until.items())
        self._forget_news()
        if self._base_ends is None or behind > max(NEWS_RECORDS_MAX, NEWS_SHARE_MAX * self._base_rows):
            self._base_ends = self._read_base(until)
        self._read_news(self._base_ends, until)

    def _read_base(self, until: Positions) -> Positions:
        self._base.unpersist()
        plan_anew(self._raw_base)
        write_ranges(self._base_ranges, self._between({}, until))
        self._base_rows, self._bad[0] = _kept(self._base, self._base_ranges)
        return until

    def _read_news(self, since: Positions, until: Positions) -> None:
        plan_anew(self._raw_news)
        write_ranges(self._news_ranges, self._between(since, until))
        self._news.persist()
        _, self._bad[1] = _kept(self._changed, self._news_ranges)

    def bad_records(self, after: Positions) -> list[BadRecords]:
        frames = [
            bad_rows(found, after)
            for found, last in zip((self._base, self._changed), self._bad, strict=True)
            if any(offset >= after.get(partition, 0) for partition, offset in last.items())
        ]
        return [BadRecords(frame, frame.count()) for frame in frames]

    def _forget_news(self) -> None:
        self._changed.unpersist()
        self._news.unpersist()

    def close(self) -> None:
        self._forget_news()
        self._base.unpersist()


def _kept(frame: DataFrame, ranges: Path) -> tuple[int, Positions]:
    """Computes a frame and keeps it: how many rows it has, and the last bad one in each partition."""
    from pyspark.sql import functions as F

    frame.persist()
    bad = F.max(F.when(F.col(IS_BAD), F.col(OFFSET)))
    found = frame.groupBy(PARTITION).agg(F.count(F.lit(1)), bad).collect()
    if not were_planned(ranges):
        raise OttlaError("this version of Spark does not read a table again: pipelines with tables cannot run on it.")
    return sum(row[1] for row in found), {row[0]: row[2] for row in found if row[2] is not None}
