"""The `range` assignor: each topic is cut into ranges, one for each of its readers.

Topics with the same readers are cut in the same order of readers, so that topics with equal partition counts are
co-partitioned: partition 3 of both goes to the same member. To move little, readers stand in the order of the ranges
they have; newcomers stand at the end.
"""

from __future__ import annotations

from ottla.common.ids import TopicId
from ottla.groups.assignors import GroupSpec


def assign(spec: GroupSpec) -> dict[str, dict[TopicId, list[int]]]:
    assignment: dict[str, dict[TopicId, list[int]]] = {member: {} for member in sorted(spec.members)}
    readers: dict[TopicId, list[str]] = {}
    for member_id in assignment:
        for topic_id in spec.members[member_id].topics:
            if topic_id in spec.partition_counts:
                readers.setdefault(topic_id, []).append(member_id)
    alike: dict[tuple[str, ...], list[TopicId]] = {}
    for topic_id in sorted(readers):
        alike.setdefault(tuple(readers[topic_id]), []).append(topic_id)
    for members, topics in alike.items():
        order = _order(spec, members, topics)
        for topic_id in topics:
            _cut(spec.partition_counts[topic_id], order, topic_id, assignment)
    return assignment


def _order(spec: GroupSpec, members: tuple[str, ...], topics: list[TopicId]) -> list[str]:
    def place(member_id: str) -> tuple[int, int, str, str]:
        member = spec.members[member_id]
        held = [partition for topic_id in topics for partition in member.current.get(topic_id, ())]
        # A static member keeps its place when it comes back under another id.
        return (0 if held else 1, min(held, default=0), member.instance_id or "", member_id)

    return sorted(members, key=place)


def _cut(count: int, order: list[str], topic_id: TopicId, assignment: dict[str, dict[TopicId, list[int]]]) -> None:
    share, extra = divmod(count, len(order))
    start = 0
    for number, member_id in enumerate(order):
        size = share + (1 if number < extra else 0)
        if size:
            assignment[member_id][topic_id] = list(range(start, start + size))
        start += size
