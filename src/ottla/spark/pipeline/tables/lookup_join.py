"""A join of a stream with a table, as looks into the table's store.

Spark joins by walking over both sides. So in the plan of a query each join that finds its rows by the columns that the
table is kept by is replaced:

    Join(left, table, customer = customer)     for each row of left: look_up(customer), decode what was found

The columns of the result are those of the join, under Spark's own ids of them: what is built on the join stays as it
is. Joins of other kinds (outer on the table's side, by other columns, of a part of the table) are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from ottla.spark.pipeline.decoding import decoded
from ottla.spark.pipeline.tables.joined_on import text_column
from ottla.spark.pipeline.tables.store import look_up

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_FOUND, _VALUE, _ROW = "_ottla_found", "_ottla_value", "_ottla_row"
_KINDS = ("Inner", "LeftOuter", "LeftSemi", "LeftAnti")


class _Equality(NamedTuple):
    """What a row of the left side must be equal to, by the name of the table's column, and all other conditions."""

    of_left: dict[str, Any]
    others: list[Any]


class Lookup:
    def __init__(self, spark: SparkSession, name: str, schema: StructType, by: Sequence[str], store: str) -> None:
        """`name`: the alias of the table's frame, by which it is known in a plan."""
        self._spark = spark
        self._name = name
        self._schema = schema
        self._by = by
        self._store = store
        self._jvm: Any = spark._jvm
        # How many were replaced.
        self.joins = 0

    def in_place_of_joins(self, frame: DataFrame) -> DataFrame:
        plan = self._replaced(frame._jdf.queryExecution().analyzed())
        return frame if plan is None else self._frame(plan)

    def is_left_in(self, frame: DataFrame) -> bool:
        """Whether there is still a use of the table that walks over it."""
        return self._name in frame._jdf.queryExecution().analyzed().treeString()

    # --- the plan

    def _replaced(self, node: Any) -> Any | None:
        """The plan with looks in it; None if nothing changed."""
        children = list(_items(node.children()))
        new = [self._replaced(child) for child in children]
        is_changed = any(child is not None for child in new)
        if is_changed:
            both = zip(new, children, strict=True)
            node = node.withNewChildren(self._seq([now if now is not None else before for now, before in both]))
        if node.getClass().getSimpleName() == "Join" and (looked_up := self._looked_up(node)) is not None:
            self.joins += 1
            return looked_up
        return node if is_changed else None

    def _looked_up(self, join: Any) -> Any | None:
        kind = str(join.joinType().toString())
        table = self._table_in(join.right())
        if table is None or kind not in _KINDS or join.condition().isEmpty():
            return None
        of_table = {attribute.exprId().toString(): attribute.name() for attribute in _items(table.output())}
        found = self._equality(join.condition().get(), join.left(), of_table)
        if found is None or (found.others and kind != "Inner"):
            return None
        looked_up = self._look(join.left(), found.of_left, table, kind)
        for condition in found.others:
            looked_up = self._jvm.org.apache.spark.sql.catalyst.plans.logical.Filter(condition, looked_up)
        return looked_up

    def _table_in(self, node: Any) -> Any | None:
        """The table, if this is all of it and nothing else."""
        while node.getClass().getSimpleName() in ("SubqueryAlias", "View"):
            if node.getClass().getSimpleName() == "SubqueryAlias" and node.alias() == self._name:
                return node
            node = node.child()
        return None

    def _equality(self, condition: Any, left: Any, of_table: dict[str, str]) -> _Equality | None:
        """None where a column that the table is kept by is not asked for."""
        found = _Equality({}, [])
        for part in _conjuncts(condition):
            name, other = self._compared(part, left, of_table)
            if name in self._by and name not in found.of_left:
                found.of_left[name] = other
            else:
                found.others.append(part)
        return found if set(found.of_left) == set(self._by) else None

    def _compared(self, part: Any, left: Any, of_table: dict[str, str]) -> tuple[str, Any]:
        """The column of the table, and what of the left side it must be equal to; if it is such a condition."""
        if part.getClass().getSimpleName() == "EqualTo":
            for here, other in ((part.left(), part.right()), (part.right(), part.left())):
                if here.getClass().getSimpleName() != "AttributeReference":
                    continue
                name = of_table.get(here.exprId().toString(), "")
                if name and other.references().subsetOf(left.outputSet()) and other.dataType().equals(here.dataType()):
                    return name, other
        return "", None

    def _look(self, left: Any, of_left: dict[str, Any], table: Any, kind: str) -> Any:
        from pyspark.sql import functions as F
        from pyspark.sql.pandas.functions import ArrowUDFType, arrow_udf

        asked = [f"_ottla_by_{number}" for number in range(len(self._by))]
        of_row = [self._alias(of_left[name], to) for name, to in zip(self._by, asked, strict=True)]
        frame = self._frame(self._project([*_items(left.output()), *of_row], left))
        text = text_column([F.col(name) for name in asked])
        found = arrow_udf(_looking_into(self._store), "array<binary>", ArrowUDFType.SCALAR)
        frame = frame.select("*", found(text).alias(_FOUND))
        if kind in ("LeftSemi", "LeftAnti"):
            frame = frame.where(F.size(_FOUND) > 0 if kind == "LeftSemi" else F.size(_FOUND) == 0)
            return self._project(list(_items(left.output())), frame._jdf.queryExecution().analyzed())
        # Of an inner join too: for `explode` Spark would look up everything once more, to see where nothing is found.
        frame = frame.select("*", F.explode_outer(_FOUND).alias(_VALUE))
        if kind == "Inner":
            frame = frame.where(F.col(_VALUE).isNotNull())
        frame = frame.select("*", decoded(F.col(_VALUE), self._schema).alias(_ROW))
        names = [f"_ottla_column_{number}" for number in range(len(self._schema.names))]
        columns = [F.col(_ROW)[name].alias(column) for name, column in zip(self._schema.names, names, strict=True)]
        plan = frame.select("*", *columns)._jdf.queryExecution().analyzed()
        made = list(_items(plan.output()))[-len(names) :]
        of_table = [
            self._alias(column, attribute.name(), attribute.exprId())
            for column, attribute in zip(made, _items(table.output()), strict=True)
        ]
        return self._project([*_items(left.output()), *of_table], plan)

    # --- what Spark's plans are made of

    def _alias(self, expression: Any, name: str, expression_id: Any = None) -> Any:
        expressions = self._jvm.org.apache.spark.sql.catalyst.expressions
        known_as = expressions.NamedExpression.newExprId() if expression_id is None else expression_id
        return expressions.Alias(
            expression, name, known_as, self._seq([]), self._jvm.scala.Option.empty(), self._seq([])
        )

    def _project(self, columns: list[Any], plan: Any) -> Any:
        return self._jvm.org.apache.spark.sql.catalyst.plans.logical.Project(self._seq(columns), plan)

    def _seq(self, items: list[Any]) -> Any:
        return self._jvm.PythonUtils.toSeq(items)

    def _frame(self, plan: Any) -> DataFrame:
        from pyspark.sql import DataFrame

        made = self._jvm.org.apache.spark.sql.classic.Dataset.ofRows(self._spark._jsparkSession, plan)
        return DataFrame(made, self._spark)


def _looking_into(store: str) -> Any:
    """Spark asks a function for the types that it is declared with."""

    def found(texts: pa.Array) -> pa.Array:
        return look_up(store, texts)

    return found


def _items(sequence: Any) -> Iterator[Any]:
    """Of a collection of Scala's."""
    return (sequence.apply(index) for index in range(sequence.size()))


def _conjuncts(condition: Any) -> Iterator[Any]:
    if condition.getClass().getSimpleName() == "And":
        yield from _conjuncts(condition.left())
        yield from _conjuncts(condition.right())
    else:
        yield condition
