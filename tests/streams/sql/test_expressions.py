"""SQL expressions in this process; tests/spark/streams/test_sql.py asks Spark about the same cases."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("sqlglot")

from ottla.common.errors import OttlaError
from ottla.streams import serdes, sql
from tests.streams.sql.cases import CASES, JSON, JSON_SCHEMA, SCHEMA, full, same

ROW = serdes.row(SCHEMA)


@pytest.mark.parametrize(("text", "given", "expected"), CASES)
def test_an_expression_gives_what_it_gives_in_spark(text: str, given: dict[str, Any], expected: Any) -> None:
    chosen = sql(f"{text} AS found").selection(serdes.string, ROW)
    found = chosen.row("key", full(SCHEMA, given), 0)["found"]
    assert same(found, expected), f"{found!r}"
    assert chosen.serde().deserialize("t", chosen.serde().serialize("t", {"found": expected})).keys() == {"found"}


@pytest.mark.parametrize(("text", "expected"), JSON)
def test_a_row_is_read_as_spark_reads_it(text: str, expected: dict[str, Any] | None) -> None:
    serde = serdes.row(JSON_SCHEMA)
    if expected is None:
        with pytest.raises(ValueError):
            serde.deserialize("t", text.encode())
        return
    found = serde.deserialize("t", text.encode())
    assert same(found, full(JSON_SCHEMA, expected)), found
    assert same(serde.deserialize("t", serde.serialize("t", found)), found)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a + s", "needs numbers, and one side is STRING"),
        ("a = s", "mixes BIGINT and STRING: use CAST"),
        ("a", "a condition is BOOLEAN, and this is BIGINT"),
        ("missing > 1", "no column 'missing'"),
        ("o.a > 1", "columns have no parts"),
        ("s RLIKE 'x'", "is not offered"),
        ("my_function(a) > 1", "is not offered"),
        ("a >", "no SQL expression"),
        ("a > 1, b > 1", "without commas"),
        ("a > 1 FROM orders", "no FROM"),
        ("a > (SELECT 1)", "is not offered"),
        ("s LIKE ANY ('a', 'b')", "is not offered"),
        ("s LIKE 'a!%' ESCAPE '!'", "is not offered"),
        ("s ILIKE 'a'", "is not offered"),
        ("a BETWEEN SYMMETRIC 3 AND 1", "is not offered"),
        ("trim(BOTH 'x' FROM s) = ''", "is not offered"),
        ("s LIKE t", "literal pattern"),
        ("s LIKE 'a\\\\x'", "a backslash stands before"),
        ("CAST(x AS STRING) = '1'", "differs between engines"),
        ("CAST(s AS DATE) IS NULL", "CAST is to BOOLEAN"),
        ("count(*) > 1", "is not offered"),
        ("1e3 DIV a > 1", "DIV is for whole numbers"),
        ("a > 99999999999999999999", "too large"),
    ],
)
def test_what_is_not_offered_is_refused_when_the_topology_is_made(text: str, told: str) -> None:
    with pytest.raises(OttlaError, match=told.replace("(", r"\(")):
        sql(text).condition(serdes.string, ROW)


def test_an_expression_needs_columns_and_names() -> None:
    with pytest.raises(OttlaError, match=r"values by serdes.json have no columns.*serdes.row"):
        sql("a > 1").condition(serdes.string, serdes.json)
    with pytest.raises(OttlaError, match="needs a name: write AS"):
        sql("a + 1").selection(serdes.string, ROW)
    with pytest.raises(OttlaError, match="two columns 'a'"):
        sql("*, b AS a").selection(serdes.string, ROW)
    with pytest.raises(OttlaError, match="keep sum and count"):
        sql("avg(a) AS mean").aggregation(serdes.string, ROW)
    with pytest.raises(OttlaError, match="a key is STRING or BIGINT, and this is DOUBLE"):
        sql("x").key(serdes.string, ROW)
    with pytest.raises(OttlaError, match="'amount INT' is no column"):
        serdes.row("id STRING, amount INT")


def test_a_row_that_does_not_fit_is_not_written() -> None:
    serde = serdes.row("a BIGINT")
    for wrong in ({"a": "1"}, {"a": 2**63}, {"a": True}, [1]):
        with pytest.raises(TypeError):
            serde.serialize("t", wrong)
    with pytest.raises(ValueError, match="no column 'b'"):
        serde.serialize("t", {"b": 1})
