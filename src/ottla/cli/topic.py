"""`ottla topic`: the group; `topic_show` looks, `topic_change` changes."""

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
                Lazy("list", "topic_show:list_topics", "List topics."),
                Lazy("describe", "topic_show:describe", "Settings and partitions of topics."),
                Lazy("offsets", "topic_show:offsets", "First and next offsets, or those at a time."),
            ),
        ),
        Section(
            "Change",
            (
                Lazy("create", "topic_change:create", "Create topics."),
                Lazy("alter", "topic_change:alter", "Add partitions, change settings."),
                Lazy("delete", "topic_change:delete", "Delete topics and their records."),
                Lazy("trim", "topic_change:trim", "Delete the oldest records of a topic."),
            ),
        ),
    ),
)
