"""What the menu shows: sections, pages, and the key that goes there after `g`."""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    path: str
    title: str
    key: str
    icon: str


NAVIGATION: tuple[tuple[str, tuple[Entry, ...]], ...] = (
    (
        "Cluster",
        (
            Entry("/", "Overview", "o", "pulse"),
            Entry("/brokers", "Brokers", "b", "server"),
            Entry("/partitions", "Partitions", "p", "grid"),
            Entry("/latency", "Latency", "l", "clock"),
            Entry("/configuration", "Configuration", "c", "sliders"),
        ),
    ),
    (
        "Data",
        (
            Entry("/topics", "Topics", "t", "layers"),
            Entry("/trace", "Trace", "e", "route"),
            Entry("/processes", "Processes", "w", "steps"),
            Entry("/schemas", "Schemas", "s", "braces"),
        ),
    ),
    (
        "Processing",
        (
            Entry("/groups", "Groups", "r", "users"),
            Entry("/transactions", "Transactions", "x", "swap"),
            Entry("/pipelines", "Pipelines", "i", "flow"),
            Entry("/connectors", "Connectors", "n", "plug"),
        ),
    ),
    (
        "Access",
        (
            Entry("/access", "Users and ACLs", "u", "key"),
            Entry("/audit", "Audit", "a", "list"),
        ),
    ),
)
