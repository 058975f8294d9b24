"""`ottla log`: files of a log on disk, and the log of requests."""

from __future__ import annotations

from ottla.cli.lazy import Lazy, Section
from ottla.cli.settings import VerbGroup

log = VerbGroup(
    "log",
    help="Look into the files of a log, ours or Kafka's; let brokers log requests.",
    sections=(
        Section(
            "Files; needs no broker",
            (Lazy("dump", "log.dump:dump", "Show batches, records, indexes and snapshots of segment files."),),
        ),
        Section(
            "Brokers",
            (Lazy("requests", "log.requests:requests", "Log requests of a client or topic for a minute."),),
        ),
    ),
)
