"""A join that is looked up gives the rows that Spark's own join gives; what cannot be looked up is left to Spark."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import confluent_kafka
import pytest

from ottla.spark.pipeline.tables.table import Table
from ottla.spark.pipeline.topics import Topics
from tests.spark import topics as kafka

PEOPLE = "shop int, customer string, country string, vip boolean, weight double"
ROWS: list[tuple[str, dict[str, Any] | None]] = [
    ("k1", {"shop": 1, "customer": "ann", "country": "aa", "vip": True, "weight": 1.5}),
    ("k2", {"shop": 2, "customer": "ann", "country": "bb"}),
    ("k3", {"shop": 1, "customer": "bob", "country": "cc", "vip": False}),
    ("k4", {"shop": 1, "customer": "gone", "country": "dd"}),
    ("k4", None),
    ("k5", {"shop": None, "customer": None, "country": "nobody"}),
    ("k6", {"shop": 3, "customer": "é ö", "country": "ee"}),
    ("k7", {"shop": 12, "customer": "3:x", "country": "ff"}),
    ("k8", {"shop": "a text", "customer": "bad", "country": "gg"}),
    ("k9", {"shop": 1, "customer": 17, "country": "a number becomes a text"}),
]
STREAM = "shop int, customer string, number int"
ASKED = [(1, "ann", 1), (2, "ann", 2), (1, "bob", 3), (1, "gone", 4), (None, None, 5), (3, "é ö", 6), (1, "nobody", 7),
         (12, "3:x", 8), (1, "17", 9), (1, "ann", 10)]  # fmt: skip


class Scene:
    def __init__(self, spark: Any, servers: str, name: str) -> None:
        self.spark = spark
        self._topics = Topics(spark, {"kafka.bootstrap.servers": servers}, name, "letters")
        self.topic = kafka.create(servers)
        producer = confluent_kafka.Producer({"bootstrap.servers": servers})
        for key, row in ROWS:
            producer.produce(self.topic, None if row is None else json.dumps(row), key)
        assert producer.flush(30) == 0
        self.orders = spark.createDataFrame(ASKED, STREAM)

    def table(self, by: str | tuple[str, ...]) -> Any:
        return self._topics.table(self.topic, PEOPLE, by=by)

    def looked_up(self, frame: Any) -> Any:
        """What becomes of a query when it starts."""
        made = self._topics.tables.with_lookups(frame)
        for table in self.tables:
            table.follow(table.end_now())
        return made

    @property
    def tables(self) -> list[Table]:
        return self._topics.tables._tables

    def close(self) -> None:
        self._topics.tables.close()


@pytest.fixture
def scene(spark: Any, servers: str, name: str) -> Iterator[Scene]:
    made = Scene(spark, servers, name)
    yield made
    made.close()


def sorted_rows(frame: Any) -> list[str]:
    return sorted(str(row) for row in frame.collect())


def is_joined_by_spark(frame: Any) -> bool:
    return "Join" in frame._jdf.queryExecution().optimizedPlan().treeString()


Query = Callable[[Any, Any], Any]
LOOKED_UP: dict[str, tuple[str | tuple[str, ...], Query]] = {
    "inner": ("customer", lambda orders, people: orders.join(people, "customer")),
    "left": ("customer", lambda orders, people: orders.join(people, "customer", "left")),
    "semi": ("customer", lambda orders, people: orders.join(people, "customer", "left_semi")),
    "anti": ("customer", lambda orders, people: orders.join(people, "customer", "left_anti")),
    "by two columns": (("shop", "customer"), lambda orders, people: orders.join(people, ["customer", "shop"])),
    "left by two": (("customer", "shop"), lambda orders, people: orders.join(people, ["shop", "customer"], "left")),
    "with another condition": (
        "customer",
        lambda orders, people: orders.alias("o").join(
            people.alias("p"), (orders["customer"] == people["customer"]) & (orders["number"] > people["shop"])
        ),
    ),
    "by a part that is made": (
        "shop",
        lambda orders, people: orders.join(people, orders["number"] % 2 + 1 == people["shop"]),
    ),
    "twice": (
        "customer",
        lambda orders, people: orders.join(people, "customer").union(orders.join(people, "customer", "left")),
    ),
    "one after the other": (
        "customer",
        lambda orders, people: orders.join(people.alias("a"), "customer").join(
            people.alias("b"), orders["customer"] == people.alias("b")["customer"], "left_semi"
        ),
    ),
    "and used further": (
        "customer",
        lambda orders, people: orders.join(people, "customer").where("vip").groupBy("country").sum("number"),
    ),
}


@pytest.mark.parametrize("query", LOOKED_UP)
def test_what_is_looked_up_is_what_spark_joins(scene: Scene, query: str) -> None:
    by, make = LOOKED_UP[query]
    frame = make(scene.orders, scene.table(by))
    wanted = sorted_rows(frame)  # before a query has started the table is what its topic has
    looked_up = scene.looked_up(frame)
    assert not is_joined_by_spark(looked_up)
    assert sorted_rows(looked_up) == wanted
    assert looked_up.schema.names == frame.schema.names


def test_a_join_in_sql_is_looked_up(scene: Scene) -> None:
    scene.table("customer").createOrReplaceTempView("people_in_sql")
    scene.orders.createOrReplaceTempView("orders_in_sql")
    frame = scene.spark.sql("select o.number, p.* from orders_in_sql o left join people_in_sql p using (customer)")
    wanted = sorted_rows(frame)
    looked_up = scene.looked_up(frame)
    assert not is_joined_by_spark(looked_up)
    assert sorted_rows(looked_up) == wanted


LEFT_TO_SPARK: dict[str, tuple[str, Query]] = {
    "a right join": ("customer", lambda orders, people: orders.join(people, "customer", "right")),
    "other columns": ("customer", lambda orders, people: orders.join(people, "shop")),
    "more than equality": (
        "customer",
        lambda orders, people: orders.join(
            people, (orders["customer"] == people["customer"]) & (orders["number"] > people["shop"]), "left"
        ),
    ),
    "a part of the table": ("customer", lambda orders, people: orders.join(people.where("shop = 1"), "customer")),
    "another type": ("customer", lambda orders, people: orders.join(people, orders["number"] == people["customer"])),
    "no exact type": ("weight", lambda orders, people: orders.join(people, orders["number"] == people["weight"])),
    "the table alone": ("customer", lambda orders, people: people.groupBy("country").count()),
}


@pytest.mark.parametrize("query", LEFT_TO_SPARK)
def test_what_cannot_be_looked_up_is_walked_over(scene: Scene, query: str) -> None:
    by, make = LEFT_TO_SPARK[query]
    scene.spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        frame = make(scene.orders, scene.table(by))
        wanted = sorted_rows(frame)
        assert scene.looked_up(frame) is frame
        assert sorted_rows(frame) == wanted
    finally:
        scene.spark.conf.unset("spark.sql.ansi.enabled")


def test_a_table_may_be_looked_up_in_one_place_and_walked_over_in_another(scene: Scene) -> None:
    people = scene.table("customer")
    frame = scene.orders.join(people, "customer").select("country")
    frame = frame.unionByName(people.where("vip").select("country"))
    wanted = sorted_rows(frame)
    looked_up = scene.looked_up(frame)
    assert looked_up is not frame
    assert sorted_rows(looked_up) == wanted


def test_a_table_that_is_kept_on_the_drivers_machine_is_not_looked_up_from_others(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scene.spark.sparkContext, "master", "spark://elsewhere:7077")
    frame = scene.orders.join(scene.table("customer"), "customer")
    assert scene.looked_up(frame) is frame
