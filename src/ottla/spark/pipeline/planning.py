"""What a pipeline is going to do, known before any of it is done: its result as the one frame that is written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ottla.client.settings import parse_settings
from ottla.common.errors import OttlaError
from ottla.spark.pipeline.cluster_checks import matching_topics
from ottla.spark.pipeline.definition import Pipeline
from ottla.spark.pipeline.feedback import TopicsRead, refuse_dead_letter_feedback, refuse_feedback, topics_read
from ottla.spark.pipeline.loading import line_of, named_error
from ottla.spark.pipeline.outputs import named_frames, written_frame
from ottla.spark.pipeline.tables.collection import Tables
from ottla.spark.pipeline.topics import Topics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Plan:
    frame: DataFrame
    # Those that are known before any row is.
    writes: list[str]
    streams: TopicsRead
    tables: Tables
    has_dead_letters: bool


def make_plan(spark: SparkSession, pipeline: Pipeline, client: dict[str, str], *, registers: bool = True) -> Plan:
    """Runs the pipeline's function. Raises OttlaError for what cannot work, and what Spark raises for a wrong query.
    `registers`: schemas of what is written, where the pipeline asks for that; if not, it is seen whether that could be.

    Whoever does not start the query closes its tables."""
    topics = Topics(spark, client, pipeline.name, pipeline.dead_letter_topic)
    try:
        return _make_plan(topics, pipeline, client, registers)
    except BaseException:
        topics.tables.close()
        raise


def _make_plan(topics: Topics, pipeline: Pipeline, client: dict[str, str], registers: bool) -> Plan:
    named = named_frames(pipeline, _built(pipeline, topics))
    frames = [frame for _, frame in named]
    read = topics_read([*frames, *topics.rejected], client["kafka.bootstrap.servers"])
    for target, frame in named:
        refuse_feedback(pipeline, read, target, frame)
    has_dead_letters = bool(topics.rejected or topics.tables.names)
    if has_dead_letters:
        refuse_dead_letter_feedback(pipeline, read, topics.tables.names)
    if read.patterns:
        read.names |= matching_topics(parse_settings(client).address, read.has)
    return Plan(
        frame=written_frame(pipeline, named, topics.rejected, read, registers),
        writes=[target for target, _ in named if target is not None],
        streams=read,
        tables=topics.tables,
        has_dead_letters=has_dead_letters,
    )


def _built(pipeline: Pipeline, topics: Topics) -> Any:
    """A mistake in the pipeline's own function does not pass; what Spark, the cluster or a file says of it may."""
    try:
        return pipeline.build(topics)
    except (OttlaError, OSError):
        raise
    except Exception as error:
        if type(error).__module__.partition(".")[0] in ("pyspark", "py4j"):
            raise
        code = getattr(pipeline.build, "__code__", None)
        where = "its function" if code is None else f"{code.co_filename}{line_of(error, Path(code.co_filename))}"
        raise OttlaError(f"{where}: {named_error(error)}.") from None
