"""SQL expressions: what Spark itself says of the same ones, and a whole topology beside the test driver."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sqlglot")

from ottla.streams import StreamsBuilder, TopologyTestDriver, serdes, sql
from ottla.streams.engine.application import StreamsApplication
from ottla.streams.native import native_stages
from ottla.testing import Broker
from tests.spark import topics
from tests.spark.streams.test_application import by_key, produce
from tests.streams.sql.cases import CASES, SCHEMA, full, same

pytestmark = pytest.mark.slow
_numbers = itertools.count(1)
# What Spark ends a query with where an expression here is NULL.
_IMPOSSIBLE = ("DIVIDE_BY_ZERO", "REMAINDER_BY_ZERO", "ARITHMETIC_OVERFLOW", "CAST_INVALID_INPUT", "CAST_OVERFLOW")
# Which is 0 in Spark, silently.
_NAN_AS_WHOLE = ("floor(x)", None)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def servers(broker: Broker) -> str:
    return broker.bootstrap_servers


def in_spark(spark: Any, text: str, row: dict[str, Any], schema: str) -> Any:
    from pyspark.errors import PySparkException

    try:
        return spark.createDataFrame([row], schema).selectExpr(f"{text} AS found").collect()[0]["found"]
    except PySparkException as error:
        if not any(each in str(error) for each in _IMPOSSIBLE):
            raise
        return None


def test_expressions_give_what_they_give_in_spark(spark: Any) -> None:
    """As they are written, in ANSI mode: a fraction that stands there is DECIMAL in Spark, and DOUBLE here."""
    schema = ", ".join(f"{name} {kind}" for name, kind in serdes.row(SCHEMA).schema)
    wrong = []
    for text, given, expected in CASES:
        found = in_spark(spark, text, full(SCHEMA, given), schema)
        if isinstance(expected, float) and found is not None:
            found = float(found)
        if not same(found, expected) and (text, expected) != _NAN_AS_WHOLE:
            wrong.append(f"{text} of {given}: {found!r} in Spark, {expected!r} here")
    assert not wrong, "\n".join(wrong)


def test_a_topology_of_expressions_gives_on_spark_what_the_driver_gives(
    spark: Any, servers: str, tmp_path: Path
) -> None:
    number = next(_numbers)
    source, out = (topics.create(servers, 2, name=f"{name}-{number}") for name in ("orders", "totals"))
    builder = StreamsBuilder(key=serdes.string)
    orders = builder.stream(source, value=serdes.row("customer STRING, amount DOUBLE, items BIGINT"))
    wanted = orders.filter(sql("amount > 10 AND items % 2 = 1")).map_values(
        sql("upper(customer) AS customer, amount * items AS total, items")
    )
    chosen = "count(*) AS orders, count(total) AS known, sum(total) AS total, sum(items) AS items, "
    chosen += "min(total) AS least, max(items) AS most"
    totals = wanted.group_by(sql("customer")).aggregate(sql(chosen), store="totals")
    totals.to_stream().filter(lambda key, value: key != "NOBODY").to(out)
    topology = builder.build()
    assert len(native_stages(topology)) == 2
    random.seed(5)
    records = []
    for offset in range(400):
        value: Any = {"customer": random.choice(["ann", "bob", None, "nobody"]), "items": random.randint(-3, 5)}
        value["amount"] = random.choice([None, 5.0, 20.5, 1000.25])
        records.append((source, f"k{offset % 7}", json.dumps(value), offset))
    records[50:50] = [(source, "k0", None, 3)]
    partitions = {f"k{each}": each % 2 for each in range(7)}
    application = StreamsApplication(topology, application_id=f"sql-{number}", bootstrap=servers)
    with TopologyTestDriver(topology) as driver:
        for first, last in ((0, 150), (150, 401)):  # two runs: the second goes on with the state of the first
            produce(servers, records[first:last], partitions)
            application.run_available(spark, checkpoint=str(tmp_path))
            for _, key, text, time_ms in records[first:last]:
                driver.pipe_bytes(source, key.encode(), None if text is None else text.encode(), time_ms)
        expected = [(record.key, record.value, record.timestamp) for record in driver.output_topic(out).read_all()]
        state = dict(driver.store("totals").all())
    found = by_key(servers, out)
    last = {key: (value, time_ms) for key, value, time_ms in expected}
    assert found.keys() == last.keys() == {"ANN", "BOB"}
    for key, emitted in found.items():
        value, time_ms = emitted[-1]
        assert (json.loads(value), time_ms) == last[key]
        # One for each batch and key: fewer than the driver, which sees each record by itself.
        assert len(emitted) < len([each for each in expected if each[0] == key])
    assert set(state) >= {"ANN", "BOB", "NOBODY"}


def test_what_cannot_be_read_is_told_of_as_ever(spark: Any, servers: str, tmp_path: Path) -> None:
    number = next(_numbers)
    source, out = (topics.create(servers, 1, name=f"{name}-{number}") for name in ("bad", "good"))
    builder = StreamsBuilder(key=serdes.string)
    builder.stream(source, value=serdes.row("a BIGINT")).filter(sql("a > 1")).to(out)
    produce(servers, [(source, "k", '{"a":2}', 1), (source, "k", '{"a":"x"}', 2)], {"k": 0})
    application = StreamsApplication(builder.build(), application_id=f"bad-{number}", bootstrap=servers)
    with pytest.raises(Exception, match=rf"{source}-0@1 .*its column 'a' is no BIGINT"):
        application.run_available(spark, checkpoint=str(tmp_path))
