"""Streams that give no more columns than their query has a use for.

Spark asks a source that is written in Python for all of its columns, and each of them costs every row some work on its
way through the JVM. So before a query starts, its streams are replaced in the plan by ones that give less, under
Spark's own ids of the columns: what is built on them stays as it is.

Which columns are used is decided by the operators that are known here to hand on nothing else than what they say. Below
any other operator all columns are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ottla.spark.source.datasource import FORMAT, being_active
from ottla.spark.source.options import USED_COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Of these all that a query can see is what their own expressions make.
_MAKERS = ("Project", "Aggregate")
# These hand on what they get, and look at what their expressions name.
_KEEPERS = ("CollectMetrics", "EventTimeWatermark", "Filter", "Join", "Repartition", "RepartitionByExpression",
            "SubqueryAlias", "View")  # fmt: skip
_STREAM = "StreamingRelationV2"
# Rows without any column have no number.
_LEAST = "partition"

# Ids of columns.
Ids = set[int]


def with_used_columns(frame: DataFrame) -> DataFrame:
    plan = frame._jdf.queryExecution().analyzed()
    uses = _Uses()
    uses.add(plan, _ids(plan.output()))
    streams = [one for one in uses.streams if one.can_be_less]
    if not streams or uses.has_subqueries:
        return frame
    return _Replacing(frame.sparkSession, streams).in_frame(plan)


class _Stream:
    """One stream, wherever it stands in the plan, and what is used of it."""

    def __init__(self, leaf: Any) -> None:
        self.leaf = leaf
        self.columns = list(_items(leaf.output()))
        self.used: Ids = set()

    @property
    def used_columns(self) -> list[Any]:
        least = [] if self.used else [column for column in self.columns if column.name() == _LEAST]
        return least or [column for column in self.columns if column.exprId().id() in self.used]

    @property
    def can_be_less(self) -> bool:
        return self.leaf.sourceName() == FORMAT and 0 < len(self.used_columns) < len(self.columns)


class _Uses:
    def __init__(self) -> None:
        self.streams: list[_Stream] = []
        self.has_subqueries = False

    def add(self, node: Any, used: Ids) -> None:
        """`used`: columns of the node's output that those above it look at."""
        kind = node.getClass().getSimpleName()
        self.has_subqueries = self.has_subqueries or node.subqueries().nonEmpty()
        if kind == _STREAM:
            self._stream(node).used.update(used & _ids(node.output()))
        for child in _items(node.children()):
            if kind in _MAKERS:
                below = _ids_of_set(node.references())
            elif kind in _KEEPERS:
                below = used | _ids_of_set(node.references())
            else:
                below = _ids(child.output())
            self.add(child, below)

    def _stream(self, leaf: Any) -> _Stream:
        """Spark takes equal ones for one source."""
        for known in self.streams:
            if known.leaf.equals(leaf):
                return known
        self.streams.append(_Stream(leaf))
        return self.streams[-1]


class _Replacing:
    def __init__(self, spark: SparkSession, streams: list[_Stream]) -> None:
        self._spark = spark
        self._jvm: Any = spark._jvm
        with being_active(spark):
            self._new = [(stream.leaf, self._less(stream)) for stream in streams]

    def in_frame(self, plan: Any) -> DataFrame:
        from pyspark.sql import DataFrame

        made = self._jvm.org.apache.spark.sql.classic.Dataset.ofRows(self._spark._jsparkSession, self._replaced(plan))
        return DataFrame(made, self._spark)

    def _replaced(self, node: Any) -> Any:
        for leaf, new in self._new:
            if leaf.equals(node):
                return new
        children = list(_items(node.children()))
        replaced = [self._replaced(child) for child in children]
        if all(now is before for now, before in zip(replaced, children, strict=True)):
            return node
        return node.withNewChildren(self._jvm.PythonUtils.toSeq(replaced))

    def _less(self, stream: _Stream) -> Any:
        used = stream.used_columns
        options = dict(stream.leaf.extraOptions().asCaseSensitiveMap())
        names = ",".join(column.name() for column in used)
        loaded = self._spark.readStream.format(FORMAT).options(**options, **{USED_COLUMNS: names}).load()
        plan = loaded._jdf.queryExecution().analyzed()
        by_name = {column.name(): column for column in _items(plan.output())}
        expressions = self._jvm.org.apache.spark.sql.catalyst.expressions
        seq, none = self._jvm.PythonUtils.toSeq, self._jvm.scala.Option.empty()
        aliases = [
            expressions.Alias(by_name[column.name()], column.name(), column.exprId(), seq([]), none, seq([]))
            for column in used
        ]
        return self._jvm.org.apache.spark.sql.catalyst.plans.logical.Project(seq(aliases), plan)


def _items(sequence: Any) -> Iterator[Any]:
    """Of a collection of Scala's."""
    return (sequence.apply(index) for index in range(sequence.size()))


def _ids(columns: Any) -> Ids:
    return {int(column.exprId().id()) for column in _items(columns)}


def _ids_of_set(columns: Any) -> Ids:
    return _ids(columns.toSeq())
