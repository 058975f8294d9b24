"""Joins by foreign key, versioned tables and batches in the test driver, and state that does not grow for ever."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.common.errors import OttlaError
from ottla.streams import (
    Batch,
    ErrorHandling,
    OnError,
    RecordFailed,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    TimeWindows,
    TopologyTestDriver,
    batches,
    days,
    serdes,
    versioned_store,
)
from ottla.streams.engine.overlay import OverlayBytes
from ottla.streams.state.bytes_store import MemoryBytes


def texts() -> StreamsBuilder:
    return StreamsBuilder(key=serdes.string, value=serdes.string)


# --- foreign keys


def test_a_row_follows_its_foreign_key_and_the_row_that_is_there() -> None:
    builder = StreamsBuilder(key=serdes.string)
    orders, customers = builder.table("orders"), builder.table("customers")
    named = orders.join(
        customers, lambda order, customer: [order["id"], customer], foreign_key=lambda order: order["by"], name="named"
    )
    named.to_stream().to("out")
    with TopologyTestDriver(builder.build()) as driver:
        order, customer = driver.input_topic("orders"), driver.input_topic("customers")
        out = driver.output_topic("out")
        order.pipe({"id": 1, "by": "ada"}, key="o1", timestamp=1)
        assert out.is_empty()
        customer.pipe("Ada", key="ada", timestamp=2)
        assert [(each.key, each.value, each.timestamp) for each in out.read_all()] == [("o1", [1, "Ada"], 2)]
        customer.pipe("Bob", key="bob", timestamp=3)
        order.pipe({"id": 1, "by": "bob"}, key="o1", timestamp=4)
        assert out.read_values() == [[1, "Bob"]]
        customer.pipe("Ada L.", key="ada", timestamp=5)
        assert out.is_empty()
        customer.pipe(None, key="bob", timestamp=6)
        assert out.read_values() == [None]


def test_an_outer_join_has_no_foreign_key() -> None:
    builder = texts()
    with pytest.raises(OttlaError, match="outer join has no foreign key"):
        builder.table("a").outer_join(builder.table("b"), max, foreign_key=lambda value: value)


# --- versions


def test_a_stream_meets_the_version_that_was_valid_at_its_time() -> None:
    builder = texts()
    prices = builder.table("prices", store="prices", history=100)
    builder.stream("sales").join(prices, lambda sale, price: f"{sale} at {price}").to("out")
    with TopologyTestDriver(builder.build()) as driver:
        price, sale = driver.input_topic("prices"), driver.input_topic("sales")
        price.pipe("1", key="k", timestamp=10)
        price.pipe("2", key="k", timestamp=50)
        for timestamp in (60, 20, 5):
            sale.pipe(f"sale {timestamp}", key="k", timestamp=timestamp)
        assert driver.output_topic("out").read_values() == ["sale 60 at 2", "sale 20 at 1"]
        assert driver.store("prices").get("k", 49).value == "1"
        price.pipe("3", key="k", timestamp=200)
        assert driver.store("prices").get("k", 99) is None
        assert driver.store("prices").get("k", 100).value == "2"


def test_a_versioned_store_forgets_what_its_history_does_not_reach() -> None:
    data = MemoryBytes()
    store = versioned_store("v", history_ms=100, key=serdes.string).open(data)
    for timestamp in range(0, 10_000, 10):
        assert store.put("k", timestamp, timestamp)
    assert len(data) < 15
    assert not store.put("k", 1, 5_000)
    assert store.delete("k", 9_995).value == 9_990
    assert store.get("k") is None and store.get("k", 9_994).value == 9_990


# --- batches


def test_a_function_gets_many_records_and_gives_as_many_values_or_other_records() -> None:
    builder = StreamsBuilder(key=serdes.string)
    numbers = builder.stream("in")
    numbers.map_batches(lambda batch: [value * 2 for value in batch.values], name="doubled").to("doubled")

    def summed(batch: Batch) -> Batch:
        return Batch(["sum"], [sum(batch.values)], [max(batch.timestamps)])

    numbers.map_batches(summed, size=2, name="summed").to("sums")
    with TopologyTestDriver(builder.build()) as driver:
        for number in (1, 2, 3):
            driver.input_topic("in").pipe(number, key="k", timestamp=number)
        assert driver.output_topic("doubled").read_values() == [2, 4, 6]
        assert [(each.key, each.timestamp) for each in driver.output_topic("sums").read_all()][-1] == ("sum", 3)


def test_batches_as_arrow_tables() -> None:
    pytest.importorskip("pyarrow")
    builder = StreamsBuilder(key=serdes.string)

    def with_tax(table: Any) -> Any:
        import pyarrow.compute as pc

        return table.append_column("taxed", pc.multiply(table["euro"], 2))

    builder.stream("in").map_batches(batches.arrow(with_tax)).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.input_topic("in").pipe({"euro": 3}, key="k")
        assert driver.output_topic("out").read_values() == [{"euro": 3, "taxed": 6}]


def test_a_batch_that_fails_names_the_record_and_is_never_left_out() -> None:
    builder = StreamsBuilder(key=serdes.string)
    builder.stream("in").map_batches(lambda batch: [1 // value for value in batch.values]).to("out")
    handling = ErrorHandling(processing=OnError.CONTINUE)
    with TopologyTestDriver(builder.build(), handling=handling) as driver:
        driver.input_topic("in").pipe(1)
        with pytest.raises(RecordFailed, match=r"in-0@1 cannot be processed .*ZeroDivision.*test_more_operators\.py"):
            driver.input_topic("in").pipe(0)


# --- what is kept


@pytest.mark.parametrize(
    "windows",
    [TimeWindows.of(10), TimeWindows.of(10).advance_by(5), SlidingWindows.of(10), SessionWindows.with_gap(10)],
)
def test_windows_that_are_emitted_on_close_are_forgotten_after_a_while(windows: Any) -> None:
    builder = texts()
    builder.stream("in").group_by_key().windowed_by(windows).emit_on_close().count(store="counts")
    with TopologyTestDriver(builder.build()) as driver:
        source = driver.input_topic("in")
        for number in range(300):
            source.pipe("x", key="k", timestamp=number * days(0.1))
        assert driver.store("counts").approximate_num_entries() < 60


def test_the_first_of_many_held_updates_is_found_without_looking_at_all_of_them() -> None:
    looked: list[bytes] = []

    class Counting(MemoryBytes):
        def following(self, key: bytes) -> Any:
            for entry in super().following(key):
                looked.append(entry[0])
                yield entry

    base = Counting()
    for number in range(1_000):
        base.put(b"o%04d" % number, b"x")
    overlay = OverlayBytes(base)
    for number in range(1_000):
        first = overlay.first(b"o")
        assert first == (b"o%04d" % number, b"x")
        overlay.put(first[0], None)
    assert overlay.first(b"o") is None
    assert len(looked) < 5_000
