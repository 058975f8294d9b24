"""What is counted while a batch is written, without a second look at it: rows, dead letters, and what the tasks note of
themselves (records that came too late or were dropped for another reason, entries of their stores)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.spark.pipeline.progress import ROWS_OUT
from ottla.streams.engine.identity import task_topic
from ottla.streams.errors import ErrorHandling

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def observed(frame: DataFrame, application_id: str, own: list[str], handling: ErrorHandling) -> DataFrame:
    from pyspark.sql import functions as F

    topic = F.col("topic")
    is_note = topic == task_topic(application_id)

    def noted(name: str) -> Column:
        text = F.get_json_object(F.col("value").cast("string"), f"$.{name}")
        return F.sum(F.when(is_note, text.cast("long"))).alias(name)

    dead: Any = F.lit(False) if handling.dead_letter_topic is None else topic == handling.dead_letter_topic
    return frame.observe(
        ROWS_OUT,
        F.count(F.when(~topic.isin(own), True)).alias("rows"),
        F.count(F.when(dead, True)).alias("dead_letters"),
        noted("late"),
        noted("dropped"),
        noted("entries"),
    )
