"""`ottla partition`: the group; where replicas are and who leads."""

from __future__ import annotations

from ottla.cli.lazy import Lazy, Section
from ottla.cli.settings import VerbGroup

partition = VerbGroup(
    "partition",
    help="Partitions: which brokers have them, and which one leads.",
    sections=(
        Section(
            "Commands",
            (
                Lazy("status", "partition.status:status", "Moves that are under way, and how far they are."),
                Lazy("move", "partition.move:move", "Move partitions to other brokers."),
                Lazy("elect", "partition.elect:elect", "Give the lead back to the preferred replicas."),
            ),
        ),
    ),
)
