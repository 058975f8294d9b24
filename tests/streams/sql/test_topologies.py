"""SQL expressions in topologies: what comes out of the test driver, and which parts are native."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("sqlglot")

from ottla.streams import (
    ErrorHandling,
    OnError,
    Processor,
    Record,
    SessionWindows,
    StreamsBuilder,
    TimeWindows,
    Topology,
    TopologyTestDriver,
    serdes,
    sql,
)
from ottla.streams.native import native_stages

ORDERS = "customer STRING, amount DOUBLE, items BIGINT"


def orders(builder: StreamsBuilder, **more: Any) -> Any:
    return builder.stream("orders", value=serdes.row(ORDERS), **more)


def order(customer: str | None, amount: float | None, items: int | None = 1) -> dict[str, Any]:
    return {"customer": customer, "amount": amount, "items": items}


def run(topology: Topology, out: str, *records: tuple[str | None, Any, int]) -> list[tuple[Any, Any, int]]:
    with TopologyTestDriver(topology) as driver:
        source = driver.input_topic("orders")
        for key, value, time_ms in records:
            source.pipe(value, key=key, timestamp=time_ms)
        return [(record.key, record.value, record.timestamp) for record in driver.output_topic(out).read_all()]


def test_a_filter_takes_what_is_true_and_its_opposite_all_else() -> None:
    builder = StreamsBuilder(key=serdes.string)
    stream = orders(builder)
    stream.filter(sql("amount > 100")).to("large")
    stream.filter_not(sql("amount > 100")).to("rest")
    topology = builder.build()
    given = [("a", order("x", 150.0), 1), ("b", order("x", 50.0), 2), ("c", order("x", None), 3), ("d", None, 4)]
    assert [key for key, _, _ in run(topology, "large", *given)] == ["a"]
    assert [key for key, _, _ in run(topology, "rest", *given)] == ["b", "c", "d"]


def test_a_row_of_new_columns_and_a_key_of_one_of_them() -> None:
    builder = StreamsBuilder(key=serdes.string)
    rows = orders(builder).map_values(sql("*, amount * items AS total, _key AS id, _timestamp DIV 1000 AS second"))
    rows.select_key(sql("customer")).to("totals")
    found = run(builder.build(), "totals", ("a", order("x", 1.5, 4), 2500), ("b", None, 3000))
    total = {"customer": "x", "amount": 1.5, "items": 4, "total": 6.0, "id": "a", "second": 2}
    assert found == [("x", total, 2500), (None, None, 3000)]


def test_plain_values_are_a_column_called_value() -> None:
    builder = StreamsBuilder(key=serdes.integer, value=serdes.string)
    builder.stream("orders").filter(sql("_key > 1 AND value LIKE 'a%'")).map_values(sql("upper(value) AS v")).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        source = driver.input_topic("orders")
        for key, value in ((1, "ab"), (2, "ab"), (3, "b"), (None, "a")):
            source.pipe(value, key=key)
        assert [(record.key, record.value) for record in driver.output_topic("out").read_all()] == [(2, {"v": "AB"})]


TOTALS = "count(*) AS orders, count(amount) AS known, sum(amount) AS total, min(items) AS least, max(customer) AS last"


def totals() -> Topology:
    builder = StreamsBuilder(key=serdes.string)
    orders(builder).group_by(sql("customer")).aggregate(sql(TOTALS), store="totals").to_stream().to("totals")
    return builder.build()


def test_an_aggregate_counts_sums_and_finds_the_extremes() -> None:
    found = run(
        totals(), "totals", ("a", order("x", None, 5), 9), ("b", order("x", 2.5, 3), 4), ("c", order(None, 1), 5)
    )
    assert found == [
        ("x", {"orders": 1, "known": 0, "total": None, "least": 5, "last": "x"}, 9),
        ("x", {"orders": 2, "known": 1, "total": 2.5, "least": 3, "last": "x"}, 9),
    ]


def test_aggregates_in_windows_and_sessions() -> None:
    builder = StreamsBuilder(key=serdes.string)
    by_key = orders(builder).group_by_key()
    by_key.windowed_by(TimeWindows.of(10)).aggregate(sql("sum(items) AS n"), store="w").to_stream().to("windows")
    by_key.windowed_by(SessionWindows.with_gap(5, grace=100)).aggregate(sql("count(*) AS n"), store="s").to_stream().to(
        "sessions"
    )
    topology = builder.build()
    given = [("a", order("x", 1, 2), 1), ("a", order("x", 1, 3), 9), ("a", order("x", 1, 4), 5)]
    windows = [(key.window.start, value["n"]) for key, value, _ in run(topology, "windows", *given)]
    assert windows == [(0, 2), (0, 5), (0, 9)]
    sessions = [
        (key.window.start, key.window.end, value and value["n"]) for key, value, _ in run(topology, "sessions", *given)
    ]
    assert sessions[-1] == (1, 9, 3)


def test_tables_and_branches_take_expressions_too() -> None:
    builder = StreamsBuilder(key=serdes.string)
    table = builder.table("orders", value=serdes.row(ORDERS), store="t")
    table.filter(sql("items > 1")).map_values(sql("items + 1 AS more")).to_stream().to("more")
    branches = builder.stream("other", value=serdes.row(ORDERS)).split().branch(sql("items > 1"), "many")
    branches.default_branch("few")["few"].to("few")
    with TopologyTestDriver(builder.build()) as driver:
        source = driver.input_topic("orders")
        source.pipe(order("x", 1, 5), key="a")
        source.pipe(order("x", 1, 1), key="a")
        assert driver.output_topic("more").read_values() == [{"more": 6}, None]
        driver.input_topic("other").pipe(order("x", 1, None), key="b")
        assert len(driver.output_topic("few")) == 1


# --- what is native


def stages(topology: Topology, handling: ErrorHandling | None = None) -> list[tuple[int, bool, bool]]:
    found = native_stages(topology, handling) if handling else native_stages(topology)
    return [(len(each.nodes), each.sink is not None, each.aggregate is not None) for each in found.values()]


def test_a_stage_reaches_from_its_source_to_a_sink() -> None:
    builder = StreamsBuilder(key=serdes.string)
    orders(builder).filter(sql("amount > 1")).map_values(sql("items")).select_key(sql("items")).to("out")
    topology = builder.build()
    assert stages(topology) == [(3, True, False)]
    # What is too large for its topic is found in Python.
    handling = ErrorHandling(production=OnError.CONTINUE)
    assert stages(topology, handling) == [(3, False, False)]
    # A dead letter is the record as it came.
    handling = ErrorHandling(processing=OnError.DEAD_LETTER, dead_letter_topic="dead")
    assert stages(topology, handling) == [(3, True, False)]


def test_a_stage_ends_where_python_begins_or_streams_part() -> None:
    builder = StreamsBuilder(key=serdes.string)
    large = orders(builder).filter(sql("amount > 1"))
    large.map_values(sql("items")).map_values(lambda row: row["items"]).to("python", value=serdes.integer)
    other = builder.stream("other", value=serdes.row(ORDERS)).filter(sql("amount > 1")).map_values(sql("items"))
    other.peek(print).to("out")
    topology = builder.build()
    assert stages(topology) == [(2, False, False), (2, False, False)]
    large.to("large")
    assert stages(topology) == [(1, False, False), (2, False, False)]
    dead = ErrorHandling(processing=OnError.DEAD_LETTER, dead_letter_topic="dead")
    assert stages(topology, dead) == [(1, False, False), (2, False, False)]


def test_an_aggregate_is_native_with_its_repartition_before_it() -> None:
    builder = StreamsBuilder(key=serdes.string)
    orders(builder).group_by(sql("customer")).aggregate(sql("sum(amount) AS total"), store="totals").to_stream().to("t")
    assert stages(builder.build()) == [(2, True, False), (0, False, True)]
    # Arrow knows no least text.
    assert stages(totals()) == [(2, True, False)]
    # A dead letter is the record as it came, and what is put together by key is several.
    dead = ErrorHandling(processing=OnError.DEAD_LETTER, dead_letter_topic="dead")
    assert stages(builder.build(), dead) == [(2, True, False)]


class Nothing(Processor):
    def process(self, record: Record) -> None: ...


def test_what_python_must_see_is_not_native() -> None:
    def keys_in_json(builder: StreamsBuilder) -> None:
        orders(builder, key=serdes.json).filter(sql("amount > 1")).to("out")

    def extractor(builder: StreamsBuilder) -> None:
        orders(builder, timestamp_extractor=lambda *given: 1).filter(sql("amount > 1")).to("out")

    def processor(builder: StreamsBuilder) -> None:
        orders(builder).filter(sql("amount > 1")).process(Nothing).to("out")

    def after_python(builder: StreamsBuilder) -> None:
        orders(builder).peek(print).filter(sql("amount > 1")).to("out")

    for make in (keys_in_json, extractor, processor, after_python):
        builder = StreamsBuilder(key=serdes.string)
        make(builder)
        assert stages(builder.build()) == [], make.__name__
