"""SQL expressions on Spark's columns: the same cases as in Python, and whole topologies beside the test driver."""

from __future__ import annotations

import datetime
import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sqlglot")

from ottla.streams import StreamsBuilder, Topology, TopologyTestDriver, serdes, sql
from ottla.streams.engine.application import StreamsApplication
from ottla.streams.engine.native_columns import LEAVES, with_native_stages
from ottla.streams.native import native_stages
from ottla.testing import Broker
from tests.spark import topics
from tests.spark.streams.test_application import by_key, produce
from tests.streams.sql.cases import CASES, JSON, JSON_SCHEMA, SCHEMA, full, same

pytestmark = pytest.mark.slow
_numbers = itertools.count(1)
_SOURCE = (
    "topic STRING, partition INT, offset BIGINT, key BINARY, value BINARY, timestamp TIMESTAMP, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def servers(broker: Broker) -> str:
    return broker.bootstrap_servers


def rows_of(spark: Any, topology: Topology, values: list[bytes | None], key: bytes | None = b"key") -> list[Any]:
    """Values of the topic `in`, as they come out of Spark."""
    now = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    given = [("in", 0, offset, key, value, now, None) for offset, value in enumerate(values)]
    frame = spark.createDataFrame(given, _SOURCE)
    made = with_native_stages(frame, topology, "app", native_stages(topology))
    return sorted(made.collect(), key=lambda row: row["offset"])


def test_expressions_give_on_columns_what_they_give_in_python(spark: Any) -> None:
    row = serdes.row(SCHEMA)
    texts = list(dict.fromkeys(text for text, _, _ in CASES))
    builder = StreamsBuilder(key=serdes.string)
    columns = ", ".join(f"{text} AS c{number}" for number, text in enumerate(texts))
    builder.stream("in", value=row).map_values(sql(columns)).to("out")
    found = rows_of(spark, builder.build(), [row.serialize("in", given) for _, given, _ in CASES])
    serde = sql(columns).selection(serdes.string, row).serde()
    wrong = []
    for (text, given, expected), each in zip(CASES, found, strict=True):
        assert each["native"] == LEAVES and each["target"] == "out"
        value = serde.deserialize("out", bytes(each["value"]))[f"c{texts.index(text)}"]
        if not same(value, expected):
            wrong.append(f"{text} of {given}: {value!r} in Spark, {expected!r} in Python")
    assert not wrong, "\n".join(wrong)
    # And every expression for every row, which is more than anybody has written down.
    chosen = sql(columns).selection(serdes.string, row)
    for (_, given, _), each in zip(CASES, found, strict=True):
        here, there = chosen.row("key", full(SCHEMA, given), 0), serde.deserialize("out", bytes(each["value"]))
        wrong += [
            f"{text} of {given}: {there[f'c{number}']!r} in Spark, {here[f'c{number}']!r} in Python"
            for number, text in enumerate(texts)
            if not same(here[f"c{number}"], there[f"c{number}"])
        ]
    assert not wrong, "\n".join(wrong)


def test_values_are_read_alike_or_left_to_python(spark: Any) -> None:
    builder = StreamsBuilder(key=serdes.string)
    serde = serdes.row(JSON_SCHEMA)
    builder.stream("in", value=serde).filter(sql("TRUE")).to("out")
    values: list[bytes | None] = [text.encode() for text, _ in JSON]
    found = rows_of(spark, builder.build(), [*values, None, b'{"s":"\xff"}'])
    for (text, expected), each in zip(JSON, found, strict=False):
        if each["native"] is None:
            continue  # Python reads it, and says what is wrong
        assert expected is not None, f"{text} was read as {bytes(each['value'])!r}"
        assert same(serde.deserialize("out", bytes(each["value"])), full(JSON_SCHEMA, expected)), text
    readable = [each["native"] for (_, expected), each in zip(JSON, found, strict=False) if expected is not None]
    assert readable.count(LEAVES) == len(readable)
    assert found[-2]["native"] == LEAVES and found[-2]["value"] is None
    assert found[-1]["native"] is None and bytes(found[-1]["value"]) == b'{"s":"\xff"}'


def test_keys_and_plain_values_are_bytes_as_python_writes_them(spark: Any) -> None:
    builder = StreamsBuilder(key=serdes.integer, value=serdes.integer)
    builder.stream("in").filter(sql("value < _key")).select_key(sql("value - 1")).to("out")
    numbers = [0, 1, -1, 255, -(2**62), 2**40]
    values: list[bytes | None] = [serdes.integer.serialize("in", number) for number in numbers]
    key = serdes.integer.serialize("in", 2**41)
    found = rows_of(spark, builder.build(), [*values, b"\x05", None], key)
    assert [serdes.integer.from_bytes(bytes(each["key"])) for each in found[:6]] == [each - 1 for each in numbers]
    assert [bytes(each["value"]) for each in found[:6]] == values
    # One byte is a number for Python too; what has no value is not less than its key.
    assert found[6]["native"] is None and len(found) == 7


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
