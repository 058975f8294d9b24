"""Whole topologies whose expressions run on columns, beside the same ones record by record: by the tasks that run on
executors, without Spark."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")
pytest.importorskip("sqlglot")

from ottla.client.settings import parse_named  # noqa: E402
from ottla.streams import ErrorHandling, OnError, StreamsBuilder, Topology, serdes, sql  # noqa: E402
from ottla.streams.engine import running  # noqa: E402
from ottla.streams.engine.preparing import prepare  # noqa: E402
from ottla.streams.errors import RecordFailed  # noqa: E402
from ottla.streams.native import native_stages  # noqa: E402
from ottla.testing import Broker  # noqa: E402

ORDERS = "customer STRING, amount DOUBLE, items BIGINT"
Given = tuple[str, int, bytes | None, bytes | None, int, Any]
_numbers = itertools.count(1)
_SOURCE = pa.schema(
    [("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()), ("key", pa.binary()),
     ("value", pa.binary()), ("timestamp", pa.timestamp("us", tz="UTC")), ("headers", running._HEADERS)]
)  # fmt: skip


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def batches_of(records: list[Given], size: int) -> Iterator[Any]:
    offsets: Counter[tuple[str, int]] = Counter()
    for start in range(0, len(records), size):
        rows = []
        for topic, partition, key, value, time_ms, headers in records[start : start + size]:
            rows.append((topic, partition, offsets[topic, partition], key, value, time_ms * 1000, headers))
            offsets[topic, partition] += 1
        columns = list(zip(*rows, strict=True))
        yield pa.RecordBatch.from_arrays(
            [pa.array(column, kind) for column, kind in zip(columns, _SOURCE.types, strict=True)], schema=_SOURCE
        )


class Ran:
    def __init__(self, broker: Broker, make: Callable[[StreamsBuilder, str], Any], **handling: OnError) -> None:
        self.id = f"stages-{next(_numbers)}"
        self.source, self.out, self.dead = f"{self.id}-in", f"{self.id}-out", f"{self.id}-dead"
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        for made in admin.create_topics([NewTopic(each, 2) for each in (self.source, self.out, self.dead)]).values():
            made.result(20)
        builder = StreamsBuilder(key=serdes.string)
        make(builder, self.source).to(self.out)
        self.topology: Topology = builder.build()
        self.handling = ErrorHandling(**handling, dead_letter_topic=self.dead)
        self._settings = parse_named(broker.bootstrap_servers, {})
        self._prepared = prepare(self.topology, self.id, self._settings, self.handling)

    def run(
        self, records: list[Given], *, on_columns: bool, size: int = 50, has_lineage: bool = False
    ) -> tuple[list[dict[str, Any]], Counter[str]]:
        stages = native_stages(self.topology, self.handling, has_lineage=has_lineage) if on_columns else {}
        assert bool(stages) is on_columns
        run = running.TopologyRun(
            self.topology, self.id, self._settings, self._prepared.partition_counts, self.handling,
            self._prepared.generation, frozenset(self._prepared.own), None, stages, has_lineage,
        )  # fmt: skip
        counts: Counter[str] = Counter()
        given = [(self.source if topic == "in" else topic, *rest) for topic, *rest in records]
        made = [row for batch in run(batches_of(given, size), counts) for row in batch.to_pylist()]
        return [row for row in made if not row["topic"].endswith("-task-changelog")], counts


def by_key(rows: list[dict[str, Any]]) -> dict[Any, list[Any]]:
    """In their order, which is that of one partition."""
    found: dict[Any, list[Any]] = {}
    for row in rows:
        place = (row["topic"], row["key"], row["partition"])
        found.setdefault(place, []).append((row["value"], row["timestamp"], row["headers"]))
    return found


# --- topologies


def to_sink(builder: StreamsBuilder, source: str) -> Any:
    orders = builder.stream(source, value=serdes.row(ORDERS)).filter(sql("amount > 1 OR items IS NULL"))
    rows = orders.map_values(sql("upper(customer) AS who, amount * items AS total, _key AS id, _timestamp AS at"))
    return rows.select_key(sql("who"))


def filtered(builder: StreamsBuilder, source: str) -> Any:
    return builder.stream(source, value=serdes.row(ORDERS)).filter_not(sql("amount > 1"))


def text(builder: StreamsBuilder, source: str) -> Any:
    return builder.stream(source, value=serdes.string).filter(sql("length(value) > 30"))


def without_text(builder: StreamsBuilder, source: str) -> Any:
    return builder.stream(source, value=serdes.row(ORDERS)).map_values(sql("items, amount"))


def keys_of_numbers(builder: StreamsBuilder, source: str) -> Any:
    stream = builder.stream(source, key=serdes.integer, value=serdes.row(ORDERS))
    return stream.filter(sql("_key % 3 <> 1")).map_values(sql("*, _key + 1 AS more"))


def repartitioned(builder: StreamsBuilder, source: str) -> Any:
    stream = builder.stream(source, value=serdes.row(ORDERS)).filter(sql("items > -2"))
    return stream.group_by(sql("customer")).aggregate(sql("count(*) AS n"), store="n").to_stream()


def into_python(builder: StreamsBuilder, source: str) -> Any:
    stream = builder.stream(source, value=serdes.row(ORDERS)).filter(sql("items > 0"))
    rows = stream.map_values(sql("customer, amount / items AS each"))
    return rows.map_values(lambda key, row: {"k": key, **row} if row else None, name="python")


def aggregated(builder: StreamsBuilder, source: str) -> Any:
    stream = builder.stream(source, value=serdes.row(ORDERS)).filter(sql("items > -3"))
    chosen = "count(*) AS n, count(amount) AS known, sum(items * 35184372088832) AS much, sum(amount) AS total, "
    chosen += "min(amount) AS least, max(amount) AS most, min(items) AS few, max(items + 1) AS many"
    return stream.group_by_key().aggregate(sql(chosen), store="totals").to_stream()


def aggregated_by_number(builder: StreamsBuilder, source: str) -> Any:
    stream = builder.stream(source, key=serdes.integer, value=serdes.row(ORDERS))
    return stream.group_by_key().aggregate(sql("sum(items) AS n"), store="totals").to_stream()


def joined_with_python(builder: StreamsBuilder, source: str) -> Any:
    orders = builder.stream(source, value=serdes.row(ORDERS)).filter(sql("items > 0"))
    return orders.group_by_key().reduce(lambda one, other: {**one, "amount": other["amount"]}, store="r").to_stream()


def records_by_chance(
    chance: random.Random, count: int, *, keys: list[bytes | None], has_halves: bool = False, partitions: int = 1
) -> list[Given]:
    found: list[Given] = []
    for number in range(count):
        row: dict[str, Any] = {
            "customer": chance.choice(["ann", "Bob", "é\U0001f600", None, 5]),
            "amount": chance.choice([None, 0.25, 1.5, 3, 1000.25, "NaN", "-Infinity"]),
            "items": chance.choice([None, -4, 0, 1, 2, 7]),
        }
        if has_halves and number % 40 == 17:
            row["customer"] = "\ud83d!"
        if chance.random() < 0.2:
            del row["amount"]
        value: bytes | None = json.dumps(row).encode()
        odd = chance.random()
        if odd < 0.04:
            value = None
        elif odd < 0.10:
            value = chance.choice([b"", b"{", b'{"items":1}}', b'{"items":"x"}', b'{"customer":"\xff"}', b"[]"])
        elif odd < 0.14:
            value = b'{"items":1,"items":2, "more":[1,{"a":null}]}'
        headers = [{"key": "h", "value": b"%d" % number}] if chance.random() < 0.3 else None
        found.append(("in", number % partitions, chance.choice(keys), value, -1 if odd > 0.99 else number, headers))
    return found


TEXT_KEYS: list[bytes | None] = [b"a", b"b", "é".encode(), b"", None, b"\xff"]
NUMBERS: list[bytes | None] = [b"\x05", b"xyz", None]
NUMBERS += [serdes.integer.serialize("", each) for each in (0, 1, -7, 2**40)]
TOPOLOGIES = [to_sink, filtered, into_python, keys_of_numbers, joined_with_python, text, without_text]


@pytest.mark.parametrize("has_halves", [False, True], ids=["", "halves"])
@pytest.mark.parametrize("make", TOPOLOGIES)
def test_what_comes_out_is_what_comes_out_record_by_record(
    broker: Broker, make: Callable[[StreamsBuilder, str], Any], has_halves: bool
) -> None:
    """In the same order for each key and partition, also with values that cannot be read."""
    # What has half a character cannot be written, nor can NaN as JSON.
    is_writable = make is without_text or not (has_halves or make is into_python)
    production = OnError.FAIL if is_writable else OnError.CONTINUE
    ran = Ran(broker, make, deserialization=OnError.DEAD_LETTER, processing=OnError.CONTINUE, production=production)
    keys = NUMBERS if make is keys_of_numbers else TEXT_KEYS
    for seed in range(2):
        records = records_by_chance(random.Random(seed), 160, keys=keys, has_halves=has_halves)
        expected, counted = ran.run(records, on_columns=False)
        found, counts = ran.run(records, on_columns=True)
        assert by_key(found) == by_key(expected)
        mixed = records_by_chance(random.Random(seed), 50, keys=keys, has_halves=has_halves, partitions=2)
        both = [ran.run(mixed, on_columns=each, size=11)[0] for each in (False, True)]
        assert sorted(map(str, both[0])) == sorted(map(str, both[1]))
        assert counts == counted
        assert any(row["topic"] == ran.out for row in found) and any(row["topic"] == ran.dead for row in found)


@pytest.mark.parametrize("make", [aggregated, aggregated_by_number, repartitioned])
def test_an_aggregate_ends_where_it_ends_record_by_record(
    broker: Broker, make: Callable[[StreamsBuilder, str], Any]
) -> None:
    """State and last result of each key, with fewer results on the way."""
    ran = Ran(broker, make, deserialization=OnError.CONTINUE)
    keys = NUMBERS if make is aggregated_by_number else TEXT_KEYS
    for seed in range(2):
        records = records_by_chance(random.Random(seed), 160, keys=keys, has_halves=make is not repartitioned)
        if make is not repartitioned:
            records = [("in", keys.index(key) % 2, key, *rest) for _, _, key, *rest in records]
        (expected, counted), (found, counts) = (ran.run(records, on_columns=each) for each in (False, True))
        last, wanted = ({key: rows[-1] for key, rows in by_key(made).items()} for made in (found, expected))
        own = {key: row[:2] for key, row in wanted.items()}  # an aggregate has no headers of one record
        assert {key: row[:2] for key, row in last.items()} == own
        for each in (counts, counted):
            del each["rows"]
        assert counts == counted
        if make is not repartitioned:
            assert len(found) < len(expected)


def test_a_sink_takes_half_a_character_no_better_on_columns(broker: Broker) -> None:
    """The record that has it cannot be written; those before and behind it are."""
    ran = Ran(broker, to_sink, production=OnError.CONTINUE)
    good, bad = b'{"customer":"x","amount":2,"items":1}', b'{"customer":"\\ud83d","amount":2,"items":1}'
    records: list[Given] = [("in", 0, b"k", value, 1, None) for value in (good, bad, good)]
    for on_columns in (False, True):
        found, counts = ran.run(records, on_columns=on_columns, size=1)
        assert len(found) == 2 and counts["dropped"] == 1


def test_a_record_that_cannot_be_read_is_told_of_with_its_place(broker: Broker) -> None:
    ran = Ran(broker, to_sink)
    records: list[Given] = [("in", 1, b"k", value, 1, None) for value in (b'{"amount":2}', b'{"items":"x"}')]
    with pytest.raises(RecordFailed, match=rf"{ran.source}-1@1 .*its column 'items' is no BIGINT"):
        ran.run(records, on_columns=True)
    records[1] = ("in", 1, b"k", b"{}", -5, None)
    with pytest.raises(RecordFailed, match=rf"{ran.source}-1@1 .*-5 is negative"):
        ran.run(records, on_columns=True)


def test_what_fails_below_a_stage_becomes_a_dead_letter_as_it_came(broker: Broker) -> None:
    def fails(builder: StreamsBuilder, source: str) -> Any:
        rows = builder.stream(source, value=serdes.row(ORDERS)).map_values(sql("items"))
        return rows.map_values(lambda row: 10 // row["items"])

    ran = Ran(broker, fails, processing=OnError.DEAD_LETTER)
    records: list[Given] = [("in", 0, b"k", value, 7, None) for value in (b'{"items": 5 }', b'{ "items":0}')]
    for on_columns in (False, True):
        found, _ = ran.run(records, on_columns=on_columns)
        (letter,) = (row for row in found if row["topic"] == ran.dead)
        assert (letter["key"], letter["value"]) == (b"k", b'{ "items":0}')


def test_what_is_written_names_its_record_where_lineage_is_on(broker: Broker) -> None:
    ran = Ran(broker, to_sink)
    headers = [{"key": "h", "value": b"1"}]
    records: list[Given] = [("in", 1, b"k", b'{"customer":"x","amount":2}', 1, each) for each in (headers, None)]
    for on_columns in (False, True):
        rows, _ = ran.run(records, on_columns=on_columns, has_lineage=True)
        places = [{"key": "ottla-lineage", "value": f"{ran.source}/1/{offset} {ran.id}".encode()} for offset in (0, 1)]
        assert [row["headers"] for row in rows] == [[*headers, places[0]], [places[1]]]


def test_of_the_applications_own_topics_operators_know_the_lineage() -> None:
    builder = StreamsBuilder(key=serdes.string)
    repartitioned(builder, "in").to("out")
    topology = builder.build()
    assert len(native_stages(topology)) == 2 and list(native_stages(topology, has_lineage=True)) == [
        name for name in native_stages(topology) if "repartition" not in name
    ]
