"""Orders enriched with the customers of a database: the topic is what PostgresSource writes, Debezium's envelope as
JSON. To see what it does, and to run it:

    python examples/connect/enriched_orders/enriched.py
    ottla streams run examples/connect/enriched_orders/enriched.py --create-topics
"""

from __future__ import annotations

from typing import Any

from ottla.streams import Application, StreamsBuilder, TopologyTestDriver, serdes

builder = StreamsBuilder(key=serdes.string)
orders = builder.stream("orders", value=serdes.json)
# A delete is followed by a record without value: then the table has no such row any more.
customers = builder.table("shop.public.customers", value=serdes.json, store="customers")


def enrich(order: dict[str, Any], change: dict[str, Any] | None) -> dict[str, Any]:
    row = (change or {}).get("after") or {"name": "unknown", "country": "unknown"}
    return {**order, "name": row["name"], "country": row["country"]}


by_customer = orders.select_key(lambda order_id, order: str(order["customer"]))
by_customer.left_join(customers, enrich, name="enriched").to("enriched-orders", value=serdes.json)

app = Application("orders-with-customers", builder)


def changed(name: str, country: str, op: str = "u") -> dict[str, Any]:
    return {"op": op, "before": None, "after": {"id": 1, "name": name, "country": country}}


ROWS: list[tuple[str, str, Any]] = [
    ("shop.public.customers", "1", changed("Anna", "DE", "r")),
    ("orders", "7", {"customer": 1, "euro": 12.5}),
    ("shop.public.customers", "1", changed("Anna", "FR")),
    ("orders", "8", {"customer": 1, "euro": 3.0}),
    ("shop.public.customers", "1", {"op": "d", "before": {"id": 1}, "after": None}),
    ("shop.public.customers", "1", None),
    ("orders", "9", {"customer": 1, "euro": 4.0}),
]


def run() -> list[Any]:
    with TopologyTestDriver(app.topology, handling=app.handling) as driver:
        for number, (topic, key, value) in enumerate(ROWS):
            driver.input_topic(topic).pipe(value, key=key, timestamp=number * 1000)
        return [record.value for record in driver.output_topic("enriched-orders").read_all()]


if __name__ == "__main__":
    for value in run():
        print(value)
