"""What is wrong with a pipeline, found without running it: its function, the query, its topics, its settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ottla.client.settings import parse_settings
from ottla.common.errors import OttlaError
from ottla.spark.pipeline.cluster_checks import require_topics
from ottla.spark.pipeline.definition import Pipeline
from ottla.spark.pipeline.planning import make_plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Checked:
    """What a pipeline that is right is going to do."""

    streams: list[str]
    tables: list[str]
    writes: list[str]
    dead_letters: str | None


def check(spark: SparkSession, pipeline: Pipeline, client: dict[str, str]) -> Checked:
    """Raises OttlaError, and what Spark raises for a wrong query."""
    from ottla.kernel.compressing import NUMBERS

    if pipeline.compression not in NUMBERS:
        raise OttlaError(f"there is no compression '{pipeline.compression}': choose one of {', '.join(NUMBERS)}.")
    plan = make_plan(spark, pipeline, client, registers=False)
    tables = plan.tables.names
    plan.tables.close()
    require_topics(parse_settings(client).address, [*plan.streams.names, *tables, *plan.writes])
    _check_as_spark_does_at_the_start(spark, plan.frame, pipeline)
    return Checked(
        streams=sorted(plan.streams.names | plan.streams.patterns),
        tables=sorted(set(tables)),
        writes=plan.writes,
        dead_letters=pipeline.dead_letter_topic if plan.has_dead_letters else None,
    )


def _check_as_spark_does_at_the_start(spark: SparkSession, frame: DataFrame, pipeline: Pipeline) -> None:
    """Of the mode and of the time between batches Spark says nothing before a query starts."""
    sql: Any = spark.sparkContext._jvm.org.apache.spark.sql  # type: ignore[union-attr]
    modes = sql.streaming.OutputMode
    mode = {"append": modes.Append, "update": modes.Update, "complete": modes.Complete}[pipeline.mode]()
    analyzed = frame._jdf.queryExecution().analyzed()
    sql.catalyst.analysis.UnsupportedOperationChecker.checkForStreaming(analyzed, mode)
    if pipeline.every is not None:
        sql.streaming.Trigger.ProcessingTime(pipeline.every)
