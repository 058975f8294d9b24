"""`ottla group`: the group of verbs; `show` looks, `change` changes."""

from __future__ import annotations

from ottla.cli.lazy import Lazy, Section
from ottla.cli.settings import VerbGroup

group = VerbGroup(
    "group",
    help="Consumer groups: list, describe, lag, seek, delete.",
    sections=(
        Section(
            "Look",
            (
                Lazy("list", "group.show:list_groups", "List consumer groups."),
                Lazy("describe", "group.show:describe", "Members, assignments, offsets and lag."),
                Lazy("lag", "group.show:lag", "How far groups are behind; -w to watch."),
            ),
        ),
        Section(
            "Change",
            (
                Lazy("seek", "group.change:seek", "Move a group's offsets; shows its plan first."),
                Lazy("delete", "group.change:delete", "Delete groups and their offsets."),
            ),
        ),
    ),
)
