"""`ottla log`: files of a log on disk; needs no broker."""

from __future__ import annotations

from ottla.cli.lazy import Lazy, Section
from ottla.cli.settings import VerbGroup

log = VerbGroup(
    "log",
    help="Look into the files of a log, ours or Kafka's; needs no broker.",
    sections=(
        Section(
            "Commands",
            (Lazy("dump", "log.dump:dump", "Show batches, records, indexes and snapshots of segment files."),),
        ),
    ),
)
