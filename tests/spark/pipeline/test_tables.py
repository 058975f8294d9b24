"""Tables that follow their topics while the query runs: which record of a key counts, and what a batch sees."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from ottla.common.errors import OttlaError
from ottla.spark.pipeline.definition import Pipeline, pipeline
from ottla.spark.pipeline.tables import looked_up, walked
from ottla.spark.pipeline.topics import Topics
from tests.spark import topics as kafka
from tests.spark.pipeline.conftest import Running, order
from tests.spark.pipeline.test_runner import ORDERS, eventually, read

COUNTRIES = "customer string not null, country string"


class Scene:
    """Orders, a table of customers, and a pipeline that joins them: by a walk over the table, or by looks into it."""

    def __init__(self, servers: str, name: str, partitions: int = 1, by: str = "") -> None:
        self.by = by
        self.options: dict[str, Any] = {}
        self.servers, self.name = servers, name
        self.orders, self.out = kafka.create(servers), kafka.create(servers)
        self.customers = kafka.create(servers, partitions)
        self._producer = confluent_kafka.Producer({"bootstrap.servers": servers})

    def pipeline(self, **more: Any) -> Pipeline:
        @pipeline(name=self.name, to=self.out, key="customer", **more)
        def enriched(topics: Any) -> Any:
            customers = topics.table(self.customers, COUNTRIES, by=self.by or (), **self.options)
            return topics.stream(self.orders, ORDERS).join(customers, "customer")

        return enriched

    def customer(self, customer: str, country: str | None, partition: int = 0, time_ms: int = 0) -> None:
        value = None if country is None else json.dumps({"customer": customer, "country": country})
        self.customer_record(customer, value, partition, time_ms)

    def customer_record(self, key: str | None, value: str | None, partition: int = 0, time_ms: int = 0) -> None:
        # A new one knows of new partitions.
        producer = confluent_kafka.Producer({"bootstrap.servers": self.servers})
        producer.produce(self.customers, value, key, partition=partition, timestamp=time_ms)
        assert producer.flush(30) == 0

    def order(self, *customers: str) -> None:
        for number, customer in enumerate(customers):
            self._producer.produce(self.orders, order(customer, number))
        assert self._producer.flush(30) == 0

    def countries(self) -> list[tuple[str, str]]:
        rows = [json.loads(value or b"{}") for _, value, _ in read(self.servers, self.out)]
        return [(row["customer"], row["country"]) for row in rows]

    def joined(self, *customers: str) -> dict[str, str]:
        """Orders of these, and one that is always there: what they were joined with."""
        before = len(self.countries())
        self.order(*customers, "always")
        eventually(lambda: ("always", "there") in self.countries()[before:])
        return {customer: country for customer, country in self.countries()[before:] if customer != "always"}

    @contextmanager
    def running(self, spark: Any, folder: Path, **more: Any) -> Iterator[Running]:
        with Running(spark, self.pipeline(**more), self.servers, folder) as run:
            yield run
        assert run.error is None


@pytest.fixture(params=[pytest.param("", marks=pytest.mark.slow), "customer"], ids=["walked", "looked-up"])
def scene(request: pytest.FixtureRequest, servers: str, name: str) -> Scene:
    made = Scene(servers, name, by=request.param)
    made.customer("always", "there")
    return made


def test_a_batch_sees_all_that_was_in_the_table_before_its_records_came(
    spark: Any, scene: Scene, tmp_path: Path
) -> None:
    scene.customer("a", "old")
    with scene.running(spark, tmp_path):
        assert scene.joined("a", "b") == {"a": "old"}
        scene.customer("a", "new")
        scene.customer("b", "first")
        assert scene.joined("a", "b") == {"a": "new", "b": "first"}
        scene.customer("a", None)
        assert scene.joined("a", "b") == {"b": "first"}
        scene.customer("a", "back")
        assert scene.joined("a", "b") == {"a": "back", "b": "first"}


def test_the_later_record_counts_when_a_key_is_in_several_partitions(
    spark: Any, scene: Scene, servers: str, tmp_path: Path
) -> None:
    """After partitions were added a key goes to another one, where offsets are small again."""
    for number in range(5):
        scene.customer("a", f"old {number}", time_ms=1_000)
        scene.customer("b", f"old {number}", time_ms=1_000)

    with scene.running(spark, tmp_path):
        assert scene.joined("a", "b") == {"a": "old 4", "b": "old 4"}
        kafka.grow(servers, scene.customers, 3)
        scene.customer("a", "new", partition=2, time_ms=2_000)
        scene.customer("b", None, partition=1, time_ms=2_000)
        assert scene.joined("a", "b") == {"a": "new"}
        # Late by its time, but the last in its partition: there it takes the place of what was later.
        scene.customer("a", "last here", partition=2, time_ms=500)
        assert scene.joined("a", "b") == {"a": "old 4"}
        scene.customer("a", "newest", partition=0, time_ms=3_000)
        assert scene.joined("a", "b") == {"a": "newest"}
    # One that begins now, and has not seen the records come, says the same.
    with scene.running(spark, tmp_path):
        assert scene.joined("a", "b") == {"a": "newest"}


def test_a_bad_record_is_a_dead_letter_once_and_the_key_keeps_its_value(
    spark: Any, scene: Scene, servers: str, tmp_path: Path
) -> None:
    letters = f"{scene.name}-dead-letters"
    scene.customer("a", "good")
    scene.customer_record("a", "no json")
    with scene.running(spark, tmp_path) as run:
        assert scene.joined("a") == {"a": "good"}
        scene.customer_record("a", '{"country": "without a name"}')
        scene.customer_record(None, '{"customer": "c", "country": "no key"}')
        assert scene.joined("a", "c") == {"a": "good"}
        scene.customer("a", "better")
        assert scene.joined("a") == {"a": "better"}
    assert run.home.read().dead_letters == 3
    with scene.running(spark, tmp_path) as run:
        assert scene.joined("a") == {"a": "better"}
    assert run.home.read().dead_letters == 0
    found = [(key, headers["ottla.reason"].decode()) for key, _, headers in read(servers, letters)]
    assert found[0] == (b"a", "the value is no JSON of the columns customer string, country string")
    assert set(found[1:]) == {(b"a", "the column 'customer' is missing"), (None, "a record of a table needs a key")}
    assert len(found) == 3


def test_news_of_a_table_that_is_walked_over_become_part_of_the_base_when_they_are_many(
    spark: Any, servers: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(servers, name)
    scene.customer("always", "there")
    read: list[tuple[str, int]] = []
    write = walked.write_ranges

    def note(path: Path, ranges: Any) -> None:
        read.append((path.name, sum(one.size for one in ranges)))
        write(path, ranges)

    monkeypatch.setattr(walked, "write_ranges", note)
    monkeypatch.setattr(walked, "NEWS_RECORDS_MAX", 4)
    with scene.running(spark, tmp_path):
        for number in range(3):
            assert scene.joined() == {}  # nothing new: nothing is read
            scene.customer("a", str(number))
            scene.customer("b", str(number))
            assert scene.joined("a", "b") == {"a": str(number), "b": str(number)}
    assert read == [
        ("news", 0), ("base", 1), ("news", 0), ("news", 2), ("news", 4), ("base", 7), ("news", 0),
    ]  # fmt: skip


def test_of_a_table_that_is_looked_up_nothing_is_read_twice(
    spark: Any, servers: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(servers, name, by="customer")
    scene.customer("always", "there")
    asked: list[int] = []
    read_ranges = looked_up.read_ranges

    def note(reader: Any, ranges: Any, *rest: Any, **more: Any) -> Any:
        asked.append(sum(wanted.size for wanted in ranges))
        return read_ranges(reader, ranges, *rest, **more)

    def walk(*_: Any, **__: Any) -> None:
        raise AssertionError("nobody walks over this table")

    monkeypatch.setattr(looked_up, "read_ranges", note)
    monkeypatch.setattr(walked.WalkedRows, "follow", walk)
    with scene.running(spark, tmp_path):
        for number in range(3):
            assert scene.joined() == {}
            scene.customer("a", str(number))
            scene.customer("b", str(number))
            assert scene.joined("a", "b") == {"a": str(number), "b": str(number)}
    assert asked == [1, 2, 2, 2]


def test_a_stream_that_knows_no_gate_has_the_tables_of_the_batch_before(
    spark: Any, scene: Scene, servers: str, tmp_path: Path
) -> None:
    @pipeline(name=scene.name, to=scene.out)
    def ticking(topics: Any) -> Any:
        ticks = topics.spark.readStream.format("rate").option("rowsPerSecond", 20).load()
        return ticks.selectExpr("'always' as customer").join(topics.table(scene.customers, COUNTRIES), "customer")

    with Running(spark, ticking, servers, tmp_path) as run:
        eventually(lambda: ("always", "there") in scene.countries())
        scene.customer("always", "moved")
        eventually(lambda: ("always", "moved") in scene.countries())
    assert run.error is None


def test_a_table_that_was_deleted_and_made_anew_is_no_longer_followed(
    spark: Any, scene: Scene, servers: str, tmp_path: Path
) -> None:
    scene.customer("a", "old")
    with Running(spark, scene.pipeline(), servers, tmp_path) as run:
        assert scene.joined("a") == {"a": "old"}
        kafka.delete(servers, scene.customers)
        eventually(lambda: not kafka.exists(servers, scene.customers))
        kafka.create(servers, name=scene.customers)
        scene.order("a")
        run.wait()
    assert f"topic '{scene.customers}', read as a table, was deleted and made anew" in str(run.error)


def test_a_table_that_may_lose_data_goes_on_with_the_topic_that_was_made_anew(
    spark: Any, scene: Scene, servers: str, tmp_path: Path
) -> None:
    scene.options = {"failOnDataLoss": False}
    scene.customer("a", "old")
    scene.customer("b", "old")
    scene.customer_record("b", "no json")
    with scene.running(spark, tmp_path) as run:
        assert scene.joined("a", "b") == {"a": "old", "b": "old"}
        kafka.delete(servers, scene.customers)
        eventually(lambda: not kafka.exists(servers, scene.customers))
        kafka.create(servers, name=scene.customers)
        scene.customer("always", "there")
        scene.customer("a", "new")
        assert scene.joined("a", "b") == {"a": "new"}
    assert run.home.read().dead_letters == 1


def test_a_topic_that_is_the_same_table_twice_is_read_once(
    spark: Any, scene: Scene, servers: str, tmp_path: Path
) -> None:
    @pipeline(name=scene.name, to=scene.out)
    def twice(topics: Any) -> Any:
        first, second = (topics.table(scene.customers, COUNTRIES, by=scene.by or ()) for _ in range(2))
        again = second.selectExpr("customer as other", "country as there")
        joined = topics.stream(scene.orders, ORDERS).join(first, "customer")
        return joined.join(again, joined["customer"] == again["other"])

    scene.customer("a", "here")
    scene.customer_record("a", "no json")
    with Running(spark, twice, servers, tmp_path) as run:
        assert scene.joined("a") == {"a": "here"}
    assert run.error is None
    assert len(read(servers, f"{scene.name}-dead-letters")) == run.home.read().dead_letters == 1


def test_what_a_table_does_not_have_is_refused(spark: Any, servers: str, name: str) -> None:
    topics = Topics(spark, {"kafka.bootstrap.servers": servers}, name, "letters")
    with pytest.raises(OttlaError, match="a table has no option startingOffsets"):
        topics.table("customers", COUNTRIES, startingOffsets="latest")
    with pytest.raises(OttlaError, match="cannot be divided by 'name': it has customer, country"):
        topics.table("customers", COUNTRIES, by="name")


def test_a_table_that_is_divided_by_what_it_is_joined_on_is_not_moved_for_the_join(
    spark: Any, servers: str, name: str
) -> None:
    def exchanges(by: str | tuple[str, ...]) -> int:
        """Of a join with the table, once the table is kept."""
        topics = Topics(spark, {"kafka.bootstrap.servers": servers}, name, "letters")
        frame = topics.table(kafka.create(servers), COUNTRIES, by=by)
        (table,) = topics.tables._tables
        table.follow(table.end_now())
        orders = spark.range(10).selectExpr("cast(id as string) as customer").hint("merge")
        plan = orders.join(frame, "customer")._jdf.queryExecution().executedPlan()
        topics.tables.close()
        initial = plan.initialPlan() if "Adaptive" in plan.getClass().getSimpleName() else plan
        return _count_exchanges(initial)

    assert (exchanges("customer"), exchanges(())) == (1, 2)


def _count_exchanges(plan: Any) -> int:
    """A leaf that Spark keeps has no children here."""
    children = plan.children()
    inner = sum(_count_exchanges(children.apply(index)) for index in range(children.size()))
    return inner + int(plan.getClass().getSimpleName() == "ShuffleExchangeExec")
