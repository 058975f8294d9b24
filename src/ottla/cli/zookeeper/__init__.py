"""`ottla zookeeper`: the group of verbs."""

from __future__ import annotations

from ottla.cli.lazy import Lazy, Section
from ottla.cli.settings import VerbGroup

zookeeper = VerbGroup(
    "zookeeper",
    help="ZooKeeper for development: the server that comes with PySpark.",
    sections=(
        Section("Commands", (Lazy("start", "zookeeper.start:start", "Start a ZooKeeper server in the foreground."),)),
    ),
)
