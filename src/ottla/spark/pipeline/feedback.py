"""Refuses a pipeline that would read what it writes: every batch of it would make the next one, for ever.

What is read is taken from the query's plan, so that a source counts whoever made it. Only streams do: a topic that is
read as a table does not make a batch when it changes. Nor does a topic of another cluster that has the same name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ottla.common.errors import OttlaError
from ottla.spark.pipeline.definition import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_STREAM = "StreamingRelationV2"


@dataclass
class TopicsRead:
    """The topics of one cluster that streams read."""

    names: set[str] = field(default_factory=set)
    patterns: set[str] = field(default_factory=set)
    # Spark's ids of the columns `topic` that these streams have.
    columns: set[int] = field(default_factory=set)

    def has(self, topic: str) -> bool:
        return topic in self.names or any(re.fullmatch(pattern, topic) for pattern in self.patterns)


def topics_read(frames: Iterable[DataFrame], bootstrap: str) -> TopicsRead:
    found = TopicsRead()
    servers = _servers(bootstrap)
    for frame in frames:
        for leaf in _items(frame._jdf.queryExecution().analyzed().collectLeaves()):
            if leaf.getClass().getSimpleName() != _STREAM:
                continue
            options = {name.lower(): text for name, text in dict(leaf.extraOptions().asCaseSensitiveMap()).items()}
            if servers & _servers(options.get("kafka.bootstrap.servers", "")):
                _add(found, options)
                found.columns |= _topic_columns(leaf)
    return found


def _add(found: TopicsRead, options: Mapping[str, str]) -> None:
    found.names |= {name.strip() for name in options.get("subscribe", "").split(",") if name.strip()}
    if "assign" in options:
        found.names |= set(json.loads(options["assign"]))
    if "subscribepattern" in options:
        found.patterns.add(options["subscribepattern"])


def _servers(text: str) -> set[str]:
    return {server.strip() for server in text.split(",") if server.strip()}


def _topic_columns(plan: Any) -> set[int]:
    return {int(attribute.exprId().id()) for attribute in _items(plan.output()) if attribute.name() == "topic"}


def _items(sequence: Any) -> Iterator[Any]:
    """Of a collection of Scala's."""
    return (sequence.apply(index) for index in range(sequence.size()))


def refuse_feedback(pipeline: Pipeline, read: TopicsRead, target: str | None, frame: DataFrame) -> None:
    """`target`: the topic for all rows of `frame`; without one each row says its own."""
    if target is not None and read.has(target):
        raise OttlaError(
            f"pipeline '{pipeline.name}' would write to '{target}', which it reads, and never come to an end: "
            "write to another topic."
        )
    if target is None and _topic_columns(frame._jdf.queryExecution().analyzed()) & read.columns:
        raise OttlaError(
            f"pipeline '{pipeline.name}' does not say where its rows go, and their column 'topic' is the topic that "
            "they were read from: say `to`, or make a column 'topic' of your own."
        )


def refuse_dead_letter_feedback(pipeline: Pipeline, read: TopicsRead, tables: Sequence[str]) -> None:
    if read.has(pipeline.dead_letter_topic) or pipeline.dead_letter_topic in tables:
        raise OttlaError(
            f"pipeline '{pipeline.name}' would write its dead letters to '{pipeline.dead_letter_topic}', which it "
            "reads, and never come to an end: name another topic with dead_letters."
        )


def guarded_topic(pipeline: Pipeline, read: TopicsRead) -> Column:
    """The column `topic`, of which nobody knows before the rows are there whether it names a topic that is read."""
    from pyspark.sql import functions as F

    topic = F.col("topic")
    sentence = f"pipeline '{pipeline.name}' would write to a topic which it reads, and never come to an end: "
    is_read = topic.isin(sorted(read.names)) if read.names else F.lit(False)
    refused = F.raise_error(F.concat(F.lit(sentence), F.lit("a row has the topic '"), topic, F.lit("'.")))
    return F.when(is_read, refused).otherwise(topic).alias("topic")
