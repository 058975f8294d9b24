"""`sql("...")`: what stands in the place of a function in `filter`, `map_values`, `select_key`, `aggregate`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ottla.common.errors import OttlaError
from ottla.streams import serdes
from ottla.streams.serdes import Serde
from ottla.streams.sql.aggregation import Aggregation, Part
from ottla.streams.sql.expressions import Evaluate, Expression, NotUnderstood, Reader
from ottla.streams.sql.row_serde import RowSerde
from ottla.streams.sql.schema import Kind, Schema

_PRIMITIVES: dict[int, Kind] = {
    id(serdes.string): Kind.STRING,
    id(serdes.integer): Kind.BIGINT,
    id(serdes.double): Kind.DOUBLE,
}
_SERDES = {Kind.STRING: serdes.string, Kind.BIGINT: serdes.integer}
VALUE = "value"


def primitive(serde: Serde) -> Kind | None:
    return _PRIMITIVES.get(id(serde))


def schema_of(serde: Serde) -> Schema | None:
    """Columns of the values of a serde; None: it has none that are known."""
    if isinstance(serde, RowSerde):
        return serde.schema
    kind = primitive(serde)
    return None if kind is None else Schema(((VALUE, kind),))


@dataclass(frozen=True)
class Selection:
    """Columns of a new row."""

    columns: tuple[tuple[str, Expression], ...]

    def row(self, key: Any, value: Any, time_ms: int) -> dict[str, Any]:
        return {name: each.evaluate(key, value, time_ms) for name, each in self.columns}

    def serde(self) -> RowSerde:
        return RowSerde(Schema(tuple((name, each.kind or Kind.STRING) for name, each in self.columns)))


class Sql:
    """An expression, or several with commas between them, in Spark's dialect."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"sql({self.text!r})"

    def condition(self, key: Serde, value: Serde) -> Expression:
        found = self._one(columns_of(key, value, self.text))
        if found.kind is not Kind.BOOLEAN:
            raise self._wrong(f"a condition is BOOLEAN, and this is {found.kind or 'NULL'}")
        return found

    def selection(self, key: Serde, value: Serde) -> Selection:
        """`*` stands for the columns that are there."""
        from sqlglot import exp

        found: list[tuple[str, Expression]] = []
        reader = Reader(columns_of(key, value, self.text), self.text)
        for node in self._parsed():
            if isinstance(node, exp.Star):
                found += [(name, _column(name, kind, value)) for name, kind in schema_of(value) or ()]
                continue
            found.append((_name(node, self), reader.read(node.unalias())))
        chosen = Selection(tuple(found))
        chosen.serde()  # names that occur twice
        return chosen

    def key(self, key: Serde, value: Serde) -> tuple[Expression, Serde]:
        found = self._one(columns_of(key, value, self.text))
        serde = _SERDES.get(found.kind or Kind.STRING)
        if serde is None:
            raise self._wrong(f"a key is STRING or BIGINT, and this is {found.kind}: use CAST")
        return found, serde

    def aggregation(self, key: Serde, value: Serde) -> Aggregation:
        columns = columns_of(key, value, self.text)
        columns.pop("_timestamp")
        reader = Reader(columns, self.text)
        parts = [self._part(reader, node) for node in self._parsed()]
        Schema(tuple((part.name, part.kind) for part in parts))
        return Aggregation(tuple(parts))

    def _part(self, reader: Reader, node: Any) -> Part:
        from sqlglot import exp

        name, call = _name(node, self), node.unalias()
        functions = {exp.Count: "count", exp.Sum: "sum", exp.Min: "min", exp.Max: "max"}
        function = functions.get(type(call))
        if isinstance(call, exp.Avg):
            raise self._wrong("instead of avg keep sum and count, and divide them in a map_values after it")
        if function is None or call.args.get("expressions") or isinstance(call.this, exp.Distinct):
            raise self._wrong(f"an aggregate is count, sum, min or max of one expression, not `{call.sql('spark')}`")
        if isinstance(call.this, exp.Star):
            return Part(name, "count", Kind.BIGINT, None)
        argument = reader.read(call.this)
        if function == "count":
            return Part(name, function, Kind.BIGINT, argument)
        if argument.kind is None or (function == "sum" and not argument.kind.is_number):
            raise self._wrong(f"`{call.sql('spark')}` is of {argument.kind or 'NULL'}, not of a number")
        return Part(name, function, argument.kind, argument)

    def _one(self, columns: Mapping[str, Expression]) -> Expression:
        nodes = self._parsed()
        if len(nodes) != 1:
            raise self._wrong("one expression is wanted here, without commas")
        return Reader(columns, self.text).read(nodes[0].unalias())

    def _parsed(self) -> list[Any]:
        try:
            import sqlglot
            from sqlglot import exp
        except ModuleNotFoundError:
            raise OttlaError("SQL expressions need sqlglot: pip install 'ottla[sql]'.") from None
        try:
            statement = sqlglot.parse_one(f"SELECT {self.text}", read="spark")
        except sqlglot.errors.SqlglotError as error:
            reason = str(error).split("\n")[0].split(". Line")[0]
            raise self._wrong(f"it is no SQL expression: {reason}") from None
        given = {name for name, value in statement.args.items() if value}
        if not isinstance(statement, exp.Select) or given - {"expressions", "kind"}:
            raise self._wrong("an expression has no FROM, WHERE or other parts of a query")
        return list(statement.expressions)

    def _wrong(self, why: str) -> NotUnderstood:
        return NotUnderstood(f"the expression {self.text!r}: {why}.")


def sql(text: str) -> Sql:
    """A SQL expression in the place of a function: `stream.filter(sql("amount > 100"))`."""
    return Sql(text)


def _name(node: Any, statement: Sql) -> str:
    name: str = node.alias_or_name
    if not name:
        raise statement._wrong(f"`{node.sql('spark')}` needs a name: write AS after it")
    return name


def columns_of(key: Serde, value: Serde, text: str) -> dict[str, Expression]:
    """By their names in small letters. `_key` is there if the key has a type, `_timestamp` always."""
    schema = schema_of(value)
    if schema is None:
        raise NotUnderstood(
            f"the expression {text!r}: values by {value!r} have no columns that are known. Read the topic with "
            "`value=serdes.row('id STRING, amount DOUBLE')`, or say so later by `with_serdes(value=...)`."
        )
    columns = {"_timestamp": Expression(Kind.BIGINT, lambda key, value, time_ms: time_ms, "time")}
    kind = primitive(key)
    if kind is not None and kind is not Kind.DOUBLE:
        columns["_key"] = Expression(kind, lambda key, value, time_ms: key, "key")
    columns |= {name.lower(): _column(name, each, value) for name, each in schema}
    return columns


def _column(name: str, kind: Kind, serde: Serde) -> Expression:
    evaluate: Evaluate
    if isinstance(serde, RowSerde):

        def evaluate(key: Any, value: Any, time_ms: int) -> Any:
            return None if value is None else value.get(name)
    else:

        def evaluate(key: Any, value: Any, time_ms: int) -> Any:
            return value

    return Expression(kind, evaluate, "column", leaf=name)
