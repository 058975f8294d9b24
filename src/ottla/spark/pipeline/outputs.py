"""What a pipeline returns, as the one frame that is written: all topics of a micro-batch are one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ottla.common.errors import OttlaError
from ottla.spark.observed import ROWS_OUT
from ottla.spark.pipeline.decoding import HEADERS, RECORD
from ottla.spark.pipeline.definition import Pipeline
from ottla.spark.pipeline.feedback import TopicsRead, guarded_topic
from ottla.spark.sink.shape import LINEAGE, described

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from ottla.schemas.registry import SchemaRegistry


# Where a source says that a record is.
_PLACE = {"topic": "string", "partition": "int", "offset": "bigint"}
# The topic for all rows of a frame, or None where each row says its own.
Named = tuple[str | None, "DataFrame"]


def written_frame(
    pipeline: Pipeline, named: Sequence[Named], rejected: Sequence[DataFrame], read: TopicsRead, registers: bool
) -> DataFrame:
    from pyspark.sql import functions as F

    frames = [*(_records(pipeline, topic, frame, read, registers) for topic, frame in named), *rejected]
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.unionByName(frame, allowMissingColumns=True)
    is_dead = F.col("topic") == pipeline.dead_letter_topic
    return whole.observe(
        ROWS_OUT, F.count(F.lit(1)).alias("rows"), F.count(F.when(is_dead, True)).alias("dead_letters")
    )


def named_frames(pipeline: Pipeline, result: Any) -> list[Named]:
    """Raises OttlaError when the pipeline returned something else than streams."""
    from pyspark.sql import DataFrame

    named = list(result.items()) if isinstance(result, Mapping) else [(pipeline.to, result)]
    if not named or not all(isinstance(frame, DataFrame) for _, frame in named):
        raise OttlaError(
            f"pipeline '{pipeline.name}' must return a DataFrame, or several as {{topic: DataFrame}}, "
            f"but returned {described(result)}."
        )
    if isinstance(result, Mapping) and (odd := [topic for topic in result if not isinstance(topic, str)]):
        raise OttlaError(f"pipeline '{pipeline.name}' returned {odd[0]!r} in the place of a topic's name.")
    for topic, frame in named:
        if not frame.isStreaming:
            raise OttlaError(
                f"pipeline '{pipeline.name}' returned a DataFrame that is not a stream: begin with topics.stream(...)."
            )
        if topic is None and "topic" not in frame.columns:
            raise OttlaError(
                f"pipeline '{pipeline.name}' does not say where its rows go: add to='TOPIC' to @pipeline, "
                "or a column 'topic'."
            )
    return named


def _records(pipeline: Pipeline, topic: str | None, frame: DataFrame, read: TopicsRead, registers: bool) -> DataFrame:
    """A frame with text or bytes in a column `value` is written as it is, any other as JSON, or by the schema of a
    registry if the pipeline names one.

    In both the key is made of the columns that the pipeline names, or is the column `key` if there is one.
    """
    from pyspark.sql import functions as F

    made_of = _made_of(pipeline, topic, frame)
    if made_of is not None:
        frame = frame.withColumn(LINEAGE, made_of)
    if RECORD in frame.columns:
        frame = frame.drop(RECORD)
    place = [] if made_of is None else [F.col(LINEAGE)]
    target = guarded_topic(pipeline, read) if topic is None else F.lit(topic).alias("topic")
    if dict(frame.dtypes).get("value") in ("string", "binary"):
        return frame.select(target, *_as_given(pipeline, topic, frame, registers), *place)
    apart = {LINEAGE} if place else set()
    if topic is None:
        apart.add("topic")
    key = []
    if pipeline.key:
        key = [_key(pipeline, topic, frame, pipeline.key, registers)]
    elif "key" in frame.columns:
        key = [_key(pipeline, topic, frame, ("key",), registers)]
        apart.add("key")
    if pipeline.schema is not None:
        value = _registered_value(
            pipeline, topic, frame, [name for name in frame.columns if name not in apart], registers
        )
        return frame.select(target, *key, value.alias("value"), *place)
    content = [f"`{name}`" for name in frame.columns if name not in apart]
    return frame.select(target, *key, F.to_json(F.struct(*content)).cast("binary").alias("value"), *place)


def _made_of(pipeline: Pipeline, topic: str | None, frame: DataFrame) -> Column | None:
    """Which record a row was made of, if it still says so. In a frame that names its topics itself `topic` is another,
    and after a join there may be two."""
    from pyspark.sql import functions as F

    if not pipeline.lineage:
        return None
    kinds = dict(frame.dtypes)
    if frame.columns.count(RECORD) == 1 and set(_PLACE) <= _fields(frame, RECORD):
        return F.concat(*_between_slashes([F.col(f"{RECORD}.{name}") for name in _PLACE]))
    if topic is not None and all(frame.columns.count(name) == 1 and kinds[name] == _PLACE[name] for name in _PLACE):
        return F.concat(*_between_slashes([F.col(name) for name in _PLACE]))
    return None


def _between_slashes(place: list[Column]) -> list[Column]:
    """To be concatenated: null if one of them is, as where an outer join has found no record."""
    from pyspark.sql import functions as F

    topic, partition, offset = (part.cast("string") for part in place)
    return [topic, F.lit("/"), partition, F.lit("/"), offset]


def _fields(frame: DataFrame, name: str) -> set[str]:
    from pyspark.sql.types import StructType

    kind = frame.schema[name].dataType
    return set(kind.names) if isinstance(kind, StructType) else set()


def _registered_value(
    pipeline: Pipeline, topic: str | None, frame: DataFrame, columns: list[str], registers: bool
) -> Column:
    from ottla.spark.registered import to_registry

    registry = pipeline.schema
    assert registry is not None
    _require_subject(pipeline, topic, registry, "schema", "orders-value")
    return to_registry(frame, registry, topic=topic or pipeline.name, columns=columns, registers=registers)


def _require_subject(pipeline: Pipeline, topic: str | None, registry: SchemaRegistry, word: str, example: str) -> None:
    if topic is None and registry.subject is None:
        raise OttlaError(
            f"the rows of pipeline '{pipeline.name}' say themselves where they go: name the subject of their schema, "
            f'as in {word}=registry.of("{example}").'
        )


def _as_given(pipeline: Pipeline, topic: str | None, frame: DataFrame, registers: bool) -> list[Column]:
    """Not `partition`: in a frame that comes straight from a source it is the partition that was read."""
    from pyspark.sql import functions as F

    kinds = {"key": "binary", "value": "binary", "headers": HEADERS, "timestamp": "timestamp"}
    given = {name: F.col(name).cast(kind).alias(name) for name, kind in kinds.items() if name in frame.columns}
    if pipeline.key:
        given["key"] = _key(pipeline, topic, frame, pipeline.key, registers)
    elif pipeline.key_schema is not None and "key" in frame.columns:
        given["key"] = _key(pipeline, topic, frame, ("key",), registers)
    return list(given.values())


def _key(pipeline: Pipeline, topic: str | None, frame: DataFrame, columns: tuple[str, ...], registers: bool) -> Column:
    """By a schema if the pipeline names one; if not one column is text, several, or a struct, are JSON."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    for name in columns:
        if name not in frame.columns:
            raise OttlaError(
                f"pipeline '{pipeline.name}' takes its key from the column '{name}', but its result has "
                f"{', '.join(frame.columns)}."
            )
    if (registry := pipeline.key_schema) is not None:
        from ottla.spark.registered import key_to_registry

        _require_subject(pipeline, topic, registry, "key_schema", "orders-key")
        where = topic or pipeline.name
        return key_to_registry(frame, registry, topic=where, columns=columns, registers=registers).alias("key")
    if len(columns) > 1:
        return F.to_json(F.struct(*(f"`{name}`" for name in columns))).cast("binary").alias("key")
    only = F.col(f"`{columns[0]}`")
    if isinstance(frame.schema[columns[0]].dataType, StructType):
        only = F.to_json(only)
    return only.cast("string").cast("binary").alias("key")
