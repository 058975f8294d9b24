"""Server-side assignors of KIP-848. Each is a function from who subscribes to what, to who gets what.

They are deterministic: members and topics are walked in sorted order, so the same group gets the same assignment from
any broker. They are sticky: what a member has in the old target it keeps, as far as balance allows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ottla.common.ids import TopicId

Partitions = Mapping[TopicId, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """What an assignor is told about a member."""

    topics: tuple[TopicId, ...]
    # The target before; may name topics and partitions that are gone.
    current: Partitions
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class GroupSpec:
    members: Mapping[str, MemberSpec]
    # How many partitions each subscribed topic has.
    partition_counts: Mapping[TopicId, int]


Assignor = Callable[[GroupSpec], dict[str, dict[TopicId, list[int]]]]


def assignor_named(name: str) -> Assignor:
    from ottla.groups.assignors import range as by_range
    from ottla.groups.assignors import uniform

    return {"uniform": uniform.assign, "range": by_range.assign}[name]


def tidy(assignment: Mapping[str, Mapping[TopicId, list[int]]]) -> dict[str, Partitions]:
    """Topics and partitions in rising order, nothing empty: so that equal assignments are equal."""
    return {
        member_id: {topic_id: tuple(sorted(topics[topic_id])) for topic_id in sorted(topics) if topics[topic_id]}
        for member_id, topics in assignment.items()
    }
