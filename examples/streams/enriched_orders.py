"""Orders enriched with their customers: the table is fed by a topic of changes, and every task keeps its part of it.

    python examples/streams/enriched_orders.py
    ottla streams run examples/streams/enriched_orders.py --create-topics

Orders have ids as keys, so they go through a topic of the application to the customer's partition first.
"""

from __future__ import annotations

from dataclasses import dataclass

from showing import Row, show

from ottla.streams import Application, StreamsBuilder, serdes


@dataclass
class Order:
    customer: str
    euro: float


@dataclass
class Customer:
    name: str
    country: str


@dataclass
class EnrichedOrder:
    customer: str
    country: str
    euro: float


builder = StreamsBuilder(key=serdes.string)
orders = builder.stream("orders", value=serdes.of(Order))
customers = builder.table("customers", value=serdes.of(Customer), store="customers")


def enrich(order: Order, customer: Customer | None) -> EnrichedOrder:
    if customer is None:
        return EnrichedOrder(order.customer, "unknown", order.euro)
    return EnrichedOrder(customer.name, customer.country, order.euro)


by_customer = orders.select_key(lambda order_id, order: order.customer)
enriched = by_customer.left_join(customers, enrich, name="enriched")
enriched.to("enriched-orders", value=serdes.of(EnrichedOrder))

app = Application("enriched-orders", builder)

ROWS: list[Row] = [
    ("customers", "c1", Customer("Ada", "UK"), 0),
    ("orders", "o1", Order("c1", 20.0), 1_000),
    ("orders", "o2", Order("c2", 5.0), 2_000),
    ("customers", "c1", Customer("Ada", "FR"), 3_000),
    ("orders", "o3", Order("c1", 7.5), 4_000),
]

if __name__ == "__main__":
    show(app, ROWS, "enriched-orders")
