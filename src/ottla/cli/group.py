"""`ottla group`: the group of verbs; `group_show` looks, `group_change` changes."""

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
                Lazy("list", "group_show:list_groups", "List consumer groups."),
                Lazy("describe", "group_show:describe", "Members, assignments, offsets and lag."),
                Lazy("lag", "group_show:lag", "How far groups are behind; -w to watch."),
            ),
        ),
        Section(
            "Change",
            (
                Lazy("seek", "group_change:seek", "Move a group's offsets; shows its plan first."),
                Lazy("delete", "group_change:delete", "Delete groups and their offsets."),
            ),
        ),
    ),
)
