"""Which records are good, each judged by one parse, and what a rule may be."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.common.errors import OttlaError
from ottla.spark.pipeline.decoding import dead_letters, good_rows, judged, parse_schema

COLUMNS = "a int not null, b struct<c:string>, d double"
GOOD = [
    '{"a":1}',
    ' {"a":1}\n',
    '{"a":1,"b":{"c":"}{"},"d":0.5}',
    '{"a":1,"other":[1,{"x":2}]}',
]
# What follows a whole value, what it is wrapped in, and what is none.
BAD = [
    '{"a":1}{"a":2}',
    '{"a":1} {"a":2}',
    '{"a":1},{"a":2}',
    '{"a":1} trailing',
    '{"a":1}}',
    '{"a":1}]',
    '{"a":1},"x":{}',
    '{"a":1}],"x":[{}',
    '{"a":1}]} {"x":[{}',
    '{"a":1}//',
    '{"a":1}\x00',
    '{"a":1},',
    ',{"a":1}',
    '[{"a":1}]',
    '{"a":"one"}',
    '{"a":1,"b":{"c":[}}',
    "null",
    "1",
    "{",
    "\n",
    "",
    "{}",
]


def records(spark: Any, values: list[str | None]) -> Any:
    rows = [(value.encode() if value is not None else None, number) for number, value in enumerate(values)]
    return spark.createDataFrame(rows, "value binary, offset long").selectExpr(
        "cast(null as binary) key", "value", "'in' topic", "0 partition", "offset", "timestamp_seconds(0) timestamp",
        "cast(null as array<struct<key:string,value:binary>>) headers",
    )  # fmt: skip


def test_a_record_is_one_json_value_and_nothing_more(spark: Any) -> None:
    rows = judged(records(spark, [*GOOD, *BAD, None]), parse_schema(COLUMNS), None)
    good = [bytes(row.record.value).decode() for row in good_rows(rows).collect()]
    bad = [
        None if row.value is None else bytes(row.value).decode() for row in dead_letters(rows, "dead", "p").collect()
    ]
    assert (good, bad) == (GOOD, [*BAD, None])


def test_a_record_is_parsed_once_for_each_output(spark: Any) -> None:
    rules = {"too small": "a > 1", "too large": "d < 10"}
    rows = judged(records(spark, GOOD), parse_schema(COLUMNS), rules)
    for frame in (good_rows(rows).select("a", "d"), dead_letters(rows, "dead", "p")):
        plan = frame._jdf.queryExecution().optimizedPlan().toString()
        assert plan.count("from_json(") == 1


@pytest.mark.parametrize("rule", ["rand() < 0.5", "a > 0 and uuid() > b.c", "monotonically_increasing_id() > 3"])
def test_a_rule_that_depends_on_chance_is_refused(spark: Any, rule: str) -> None:
    with pytest.raises(OttlaError, match="may say another thing each time") as caught:
        judged(records(spark, GOOD), parse_schema(COLUMNS), {"unlucky": rule})
    assert rule in str(caught.value)


def test_a_rule_about_the_time_of_the_batch_is_none(spark: Any) -> None:
    rules = {"from the future": "timestamp_seconds(a) <= current_timestamp()"}
    rows = judged(records(spark, GOOD), parse_schema(COLUMNS), rules)
    assert good_rows(rows).count() == len(GOOD)
