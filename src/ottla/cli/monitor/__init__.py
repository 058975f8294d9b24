"""`ottla monitor`: the group of verbs."""

from __future__ import annotations

from ottla.cli.lazy import Lazy, Section
from ottla.cli.settings import VerbGroup

monitor = VerbGroup(
    "monitor",
    help="Watches groups and replicas of any Kafka cluster: start.",
    sections=(Section("Run", (Lazy("start", "monitor.start:start", "Judge lag again and again; metrics and JSON."),)),),
)
