"""`ottla perf`: measure a cluster from here. Each verb is a module of its own."""

from __future__ import annotations

from ottla.cli.lazy import Lazy, Section
from ottla.cli.settings import VerbGroup

perf = VerbGroup(
    "perf",
    help="Measure a cluster with librdkafka from this machine.",
    sections=(
        Section(
            "Commands",
            (
                Lazy("produce", "perf.produce:produce", "Records in: rate and acknowledgement latency."),
                Lazy("consume", "perf.consume:consume", "Records out: rate."),
                Lazy("e2e", "perf.e2e:e2e", "From produce to consume: latency at a steady rate."),
            ),
        ),
    ),
)
