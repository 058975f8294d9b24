"""`ottla registry`: the group of verbs that run a schema registry; `ottla schema` talks to one."""

from __future__ import annotations

from ottla.cli.lazy import Lazy, Section
from ottla.cli.settings import VerbGroup

registry = VerbGroup(
    "registry",
    help="A schema registry with Confluent's API.",
    sections=(
        Section(
            "Commands",
            (
                Lazy("start", "registry.start:start", "Start a schema registry in the foreground."),
                Lazy("password", "registry.password:password", "Hash a password for the file of users."),
            ),
        ),
    ),
)
