"""A thousand orders through three topics by two pipelines, with losses, duplicates and delays planted among them."""

from __future__ import annotations

from typing import NamedTuple

ORDERS = 1000
MINUTE_MS = 60_000


class Planted(NamedTuple):
    """Numbers of orders, by what happens to them."""

    unpaid: frozenset[int]  # the first pipeline loses the order
    unshipped: frozenset[int]  # the second pipeline loses the payment
    payment_gone: frozenset[int]  # shipped, but nobody can say who paid
    paid_twice: frozenset[int]
    shipped_late: frozenset[int]
    shipped_before_paid: frozenset[int]


PLANTED = Planted(
    unpaid=frozenset({3, 250, 999}),
    unshipped=frozenset({17, 18}),
    payment_gone=frozenset({40, 41, 42, 43}),
    paid_twice=frozenset({5, 500}),
    shipped_late=frozenset({77, 700, 701}),
    shipped_before_paid=frozenset({123}),
)
EXPECTED = {
    "stuck": PLANTED.unpaid | PLANTED.unshipped,
    "missing": PLANTED.payment_gone,
    "duplicate": PLANTED.paid_twice,
    "late": PLANTED.shipped_late,
    "out of order": PLANTED.shipped_before_paid,
}


def process_toml(orders: str, payments: str, shipments: str) -> str:
    return f"""
name = "{orders}"
within = "2h"
keep = "1h"

[[step]]
name = "order"
topic = "{orders}"
id = "key"

[[step]]
name = "payment"
topic = "{payments}"
id = "json:order.id"
when = {{ "json:status" = "paid" }}
within = "10m"

[[step]]
name = "shipping"
topic = "{shipments}"
id = "header:order"
within = "1h"
"""
