"""`ottla topic`: the group; `show` looks, `change` changes."""

from __future__ import annotations

from ottla.cli.lazy import Lazy, Section
from ottla.cli.settings import VerbGroup

topic = VerbGroup(
    "topic",
    help="Topics: list, create, describe, alter, delete, trim, offsets.",
    sections=(
        Section(
            "Look",
            (
                Lazy("list", "topic.show:list_topics", "List topics."),
                Lazy("describe", "topic.show:describe", "Settings and partitions of topics."),
                Lazy("offsets", "topic.show:offsets", "First and next offsets, or those at a time."),
            ),
        ),
        Section(
            "Change",
            (
                Lazy("create", "topic.change:create", "Create topics."),
                Lazy("alter", "topic.change:alter", "Add partitions, change settings."),
                Lazy("delete", "topic.change:delete", "Delete topics and their records."),
                Lazy("trim", "topic.change:trim", "Delete the oldest records of a topic."),
            ),
        ),
    ),
)
