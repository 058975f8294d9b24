"""Whether a query only copies: what it writes are columns of one of our streams as they are, or literals.

Such a query needs nothing of Spark but its planning, so its records do not become rows of Spark's (`copying.py`). That
is decided by Spark's analysed plan, whoever made it: a frame, SQL, a pipeline. Whatever is not known here, be it a
node, an expression or a type, makes it no copy, and it goes the way of all queries.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from ottla.common.errors import OttlaError
from ottla.spark.observed import ROWS_IN, ROWS_OUT
from ottla.spark.sink.copying import NULL, Column, Copy, Counted
from ottla.spark.sink.shape import LINEAGE
from ottla.spark.source.datasource import FORMAT, OttlaDataSource, being_active
from ottla.spark.source.options import gives_ranges
from ottla.spark.source.ranges import RangeReading

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NODES = ("Project", "CollectMetrics", "SubqueryAlias", "View")
_OWN_LISTENERS = "org.apache.spark.sql.streaming.ui."
# For each column that is written: which of the source it can be, and which literals.
_NOTHING = type(None)
_SOURCES: dict[str, tuple[tuple[str, ...], tuple[type, ...]]] = {
    "key": (("key", "value", "topic"), (bytes, str, _NOTHING)),
    "value": (("key", "value", "topic"), (bytes, str, _NOTHING)),
    "headers": (("headers",), (_NOTHING,)),
    "topic": (("topic",), (str, _NOTHING)),
    "partition": (("partition",), (int, _NOTHING)),
    "timestamp": (("timestamp",), (_NOTHING,)),
}
# A cast from one to the other leaves the bytes as they are.
_SAME_BYTES = {"binary", "string"}


class _NoCopy(Exception):
    """There is something in the plan that is not known here."""


class _Found:
    """On the way from the source up."""

    def __init__(self, options: dict[str, str], columns: dict[int, Column]) -> None:
        self.options = options
        # By Spark's ids, those of which it is known what they are.
        self.columns = columns
        self.counted: list[Counted] = []


def copy_of(frame: DataFrame, *, lineage: bool) -> tuple[DataFrame, Copy] | None:
    """Ranges of offsets in the place of the records of `frame`, and what makes of them the rows that `frame` has. None
    if it is no copy. `lineage`: rows may say themselves what they were made of."""
    try:
        plan = frame._jdf.queryExecution().analyzed()
        found = _followed(plan)
        columns = _written(plan, found, lineage=lineage)
        reading = RangeReading.of(found.options)
    except (_NoCopy, OttlaError, Py4JError):
        return None  # what is wrong with options is told by the source, and another Spark may have other plans
    spark = frame.sparkSession
    if _is_listened_to(spark):
        return None
    if "headers" not in columns:
        reading = replace(reading, with_headers=False)
    with being_active(spark):
        ranges = spark.readStream.format(FORMAT).options(**found.options).option("rangesOnly", "true").load()
    return ranges, Copy(reading, columns, tuple(found.counted))


def _is_listened_to(spark: SparkSession) -> bool:
    """By somebody to whom Spark itself tells how many rows it has seen. They would be ranges."""
    listeners: Any = spark._jsparkSession.streams().listListeners()
    return any(not listener.getClass().getName().startswith(_OWN_LISTENERS) for listener in listeners)


def _followed(plan: Any) -> _Found:
    kind = plan.getClass().getSimpleName()
    if kind == "StreamingRelationV2":
        return _source(plan)
    if kind not in _NODES:
        raise _NoCopy
    found = _followed(plan.child())
    if kind == "Project":
        for named in _items(plan.projectList()):
            if (column := _known(named, found)) is not None:
                found.columns[_id(named)] = column
    elif kind == "CollectMetrics":
        found.counted.append(_counted(plan, found))
    return found


def _source(plan: Any) -> _Found:
    if plan.sourceName() != FORMAT or plan.table().getClass().getSimpleName() != "PythonTable" or _has_name(plan):
        raise _NoCopy
    options = dict(plan.extraOptions().asCaseSensitiveMap())
    output = list(_items(plan.output()))
    wanted = [(field.name, field.dataType.simpleString()) for field in OttlaDataSource(options).schema().fields]
    # They are others where the source gives ranges already, or where somebody has said himself what it gives.
    if gives_ranges(options) or [(each.name(), _type(each)) for each in output] != wanted:
        raise _NoCopy
    return _Found(options, {_id(each): Column(each.name()) for each in output})


def _has_name(plan: Any) -> bool:
    """Its own, under which a checkpoint knows it. Before Spark 4.3 there is no such thing."""
    try:
        return not str(plan.sourceIdentifyingName().toString()).endswith("<Unassigned>")
    except Py4JError:
        return False


def _known(expression: Any, found: _Found) -> Column | None:
    """What it is, if it is a column of the source as it is, or a literal."""
    kind = expression.getClass().getSimpleName()
    if kind == "AttributeReference":
        return found.columns.get(_id(expression))
    if kind == "Literal":
        return _literal(expression)
    if kind not in ("Alias", "Cast"):
        return None
    column = _known(expression.child(), found)
    if column is None or kind == "Alias" or column == NULL:
        return column
    before, after = _type(expression.child()), _type(expression)
    return column if before == after or {before, after} <= _SAME_BYTES else None


def _literal(expression: Any) -> Column | None:
    value = expression.value()
    if value is None:
        return NULL
    return Column(None, str(value.toString()) if _type(expression) == "string" else value)


def _counted(plan: Any, found: _Found) -> Counted:
    """Of a frame that is observed as pipelines do it."""
    name, metrics = str(plan.name()), list(_items(plan.metrics()))
    fields = [str(each.name()) for each in metrics]
    if name.startswith(ROWS_IN) and fields == ["rows", "bytes"]:
        return Counted(name)
    if name == ROWS_OUT and fields == ["rows", "dead_letters"]:
        leaves = list(_items(metrics[1].collectLeaves()))  # when (topic = dead_letters) then true
        if len(leaves) == 3 and (topic := _known(leaves[0], found)) is not None:
            return Counted(name, topic, str(leaves[1].value().toString()))
    raise _NoCopy


def _written(plan: Any, found: _Found, *, lineage: bool) -> dict[str, Column]:
    output = list(_items(plan.output()))
    names = [str(each.name()) for each in output]
    if len({name.lower() for name in names}) < len(names):
        raise _NoCopy
    columns: dict[str, Column] = {}
    for name, each in zip(names, output, strict=True):
        if lineage and name == LINEAGE:
            raise _NoCopy
        if name in _SOURCES and (name == "value" or _type(each) != "void"):
            columns[name] = _checked(name, found.columns.get(_id(each)))
    # What is null in every row is as if it were not there; but a topic that is null can be wrong.
    return {name: column for name, column in columns.items() if column != NULL or name in ("value", "topic")}


def _checked(name: str, column: Column | None) -> Column:
    sources, literals = _SOURCES[name]
    if column is None or (column.source not in sources if column.source else not isinstance(column.literal, literals)):
        raise _NoCopy
    return column


def _type(expression: Any) -> str:
    return str(expression.dataType().simpleString())


def _id(named: Any) -> int:
    return int(named.exprId().id())


def _items(sequence: Any) -> Iterator[Any]:
    """Of a collection of Scala's."""
    return (sequence.apply(index) for index in range(sequence.size()))
