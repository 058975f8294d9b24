"""The target assignment of a consumer group: asked of an assignor, checked, and written down as what has changed."""

from __future__ import annotations

from collections.abc import Mapping

from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicId
from ottla.groups import records
from ottla.groups.assignors import GroupSpec, MemberSpec, Partitions, assignor_named, tidy
from ottla.groups.consumer_group import ConsumerGroup, Member, ResolvedRegex, topics_of
from ottla.groups.records import Record
from ottla.metadata.image import ClusterImage


def may_assign_again(last_ms: int, interval_ms: int, now_ms: int) -> bool:
    """group.consumer.assignment.interval.ms: a burst of joins makes one new target, not one for each.

    A clock that was set back must not stop assignments until it has caught up.
    """
    return last_ms == 0 or interval_ms == 0 or not 0 <= now_ms - last_ms < interval_ms


def compute_target(
    group: ConsumerGroup,
    members: Mapping[str, Member],
    regexes: Mapping[str, ResolvedRegex],
    assignor_name: str,
    image: ClusterImage,
) -> dict[str, Partitions]:
    """`members` are those of the group as they will be when the records of this heartbeat are in."""
    counts: dict[TopicId, int] = {}
    specs: dict[str, MemberSpec] = {}
    for member_id, member in members.items():
        topics = [image.topics[name] for name in topics_of(member, regexes) if name in image.topics]
        counts.update((topic.id, len(topic.partitions)) for topic in topics)
        specs[member_id] = MemberSpec(tuple(topic.id for topic in topics), group.target_of(member), member.instance_id)
    target = tidy(assignor_named(assignor_name)(GroupSpec(specs, counts)))
    _check(target, specs)
    return target


def _check(target: Mapping[str, Partitions], specs: Mapping[str, MemberSpec]) -> None:
    """An assignor with a bug must not give a partition to two members; better no new assignment than that."""
    seen: dict[tuple[TopicId, int], str] = {}
    for member_id, topics in target.items():
        reads = dict.fromkeys(specs[member_id].topics)
        for topic_id, partitions in topics.items():
            for partition in partitions:
                if topic_id not in reads or seen.setdefault((topic_id, partition), member_id) != member_id:
                    raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "Failed to compute a new target assignment.")


def target_records(
    group_id: str, before: Mapping[str, Partitions], target: Mapping[str, Partitions], epoch: int, now_ms: int
) -> list[Record]:
    changed = [
        records.target_assignment(group_id, member_id, partitions)
        for member_id, partitions in target.items()
        if before.get(member_id) != partitions
    ]
    return [*changed, records.target_epoch(group_id, epoch, now_ms)]
