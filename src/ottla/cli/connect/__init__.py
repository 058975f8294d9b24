"""`ottla connect`: runs a worker, and talks to one over its REST API."""

from __future__ import annotations

from ottla.cli.lazy import Lazy, Section
from ottla.cli.settings import VerbGroup

connect = VerbGroup(
    "connect",
    help="Data in and out of topics: workers and connectors with Kafka Connect's REST API.",
    sections=(
        Section(
            "Run",
            (Lazy("start", "connect.start:start", "Start a worker in the foreground."),),
        ),
    ),
)
