"""Which record of a key counts.

Within a partition the last one: offsets say which that is. A key that stands in several partitions, as it may after
partitions were added, has the last record of each as its **candidates**, and the one with the latest time wins; of two
with the same time, that in the higher partition. Whose clock that time is, the topic says: `message.timestamp.type`.

A record without a value deletes its key, and competes like any other. A bad record (no key, or a value that does not
fit) is no candidate: it is set aside, and the key keeps the value that it had.

What counts depends on the records alone, not on how they were read: a table that was read at once and one that was
followed for a year are the same if they have come to the same offsets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.spark.pipeline.decoding import KEY as DECODED_KEY
from ottla.spark.pipeline.decoding import REASON, RECORD, judged

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

    from ottla.spark.registered import RegisteredColumns

# What is bad about a bad record is apart from that it is: Spark unpacks only the columns that are asked for.
KEY, PARTITION, OFFSET, TIME, DELETED, IS_BAD, BAD, LIVE = (
    f"_ottla_{name}" for name in ("key", "partition", "offset", "time", "deleted", "is_bad", "bad", "live")
)
_EACH, _NEWEST = "_ottla_each", "_ottla_newest"


def candidates(raw: DataFrame, schema: StructType, key: RegisteredColumns | None = None) -> DataFrame:
    """The last good record of each key in each partition, and every bad one. `key`: how keys are decoded, if they are:
    what is the same key is said by its bytes all the same."""
    from pyspark.sql import functions as F

    record, reason = F.col(RECORD), reason_why_bad()
    flat = judged(raw, schema, None, key).select(
        record["key"].alias(KEY),
        record["partition"].alias(PARTITION),
        record["offset"].alias(OFFSET),
        record["timestamp"].alias(TIME),
        record["value"].isNull().alias(DELETED),
        reason.isNotNull().alias(IS_BAD),
        F.when(reason.isNotNull(), F.struct(record.alias(RECORD), reason.alias(REASON))).alias(BAD),
        *(F.col(f"`{name}`") for name in schema.names),
        *([] if key is None else [F.col(DECODED_KEY)]),
    )
    # Each bad record is a group of its own.
    each = F.when(F.col(IS_BAD), F.col(OFFSET)).alias(_EACH)
    newest = F.max_by(F.struct(*(F.col(f"`{name}`") for name in flat.columns)), OFFSET).alias(_NEWEST)
    return flat.repartition(KEY).groupBy(KEY, PARTITION, each).agg(newest).select(f"{_NEWEST}.*")


def reason_why_bad() -> Column:
    """Of a record of a table that was judged; null for a good one. A record without a value is good: it deletes."""
    from pyspark.sql import functions as F

    record = F.col(RECORD)
    unfit = F.when(record["value"].isNotNull(), F.col(REASON))
    return F.when(record["key"].isNull(), "a record of a table needs a key").otherwise(unfit)


def with_winners(found: DataFrame) -> DataFrame:
    """With a column that says of each candidate whether it is what the table has for its key."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    rank = F.when(~F.col(IS_BAD), F.struct(TIME, PARTITION))
    wins = rank == F.max(rank).over(Window.partitionBy(KEY))
    return found.withColumn(LIVE, F.coalesce(wins & ~F.col(DELETED), F.lit(False)))


def changed_keys(base: DataFrame, news: DataFrame) -> DataFrame:
    """All candidates of the keys that are in `news`, which is later than `base`; and the bad records of `news`."""
    from pyspark.sql import functions as F

    keys = F.broadcast(news.where(~F.col(IS_BAD)).select(KEY, PARTITION))
    good = base.where(~F.col(IS_BAD))
    # Keys are seldom in two partitions: then there are none, and nothing but their names is looked at.
    elsewhere = good.select(KEY, PARTITION).join(keys, KEY, "left_semi").join(keys, [KEY, PARTITION], "left_anti")
    kept = good.drop(LIVE).join(F.broadcast(elsewhere), [KEY, PARTITION], "left_semi")
    return with_winners(kept.unionByName(news).repartition(1))


def live_rows(base: DataFrame, changed: DataFrame) -> DataFrame:
    """The table: what is in `base`, but for the keys of `changed` what is there."""
    from pyspark.sql import functions as F

    names = [f"`{name}`" for name in base.columns if not name.startswith("_ottla_")]
    keys = changed.where(~F.col(IS_BAD)).select(KEY)
    same = base.where(LIVE).join(F.broadcast(keys), KEY, "left_anti")
    return same.select(*names).unionByName(changed.where(LIVE).select(*names))


def bad_rows(found: DataFrame, after: dict[int, int]) -> DataFrame:
    """Records that were set aside, from these offsets on, in the form that dead letters are made of."""
    from pyspark.sql import functions as F

    is_new = F.lit(False)
    for partition, offset in after.items():
        is_new = is_new | ((F.col(PARTITION) == partition) & (F.col(OFFSET) >= offset))
    is_new = is_new | ~F.col(PARTITION).isin(sorted(after)) if after else F.lit(True)
    return found.where(F.col(IS_BAD) & is_new).select(f"{BAD}.{RECORD}", f"{BAD}.{REASON}")
