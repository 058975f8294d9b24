"""The `uniform` assignor: as many partitions for each member as for any other, topics regardless.

When all members read the same topics, a member keeps what it has up to its share and the rest goes to whoever is
below. When subscriptions differ, what is free goes to the least loaded subscriber, scarcest topics first; then single
partitions move from a loaded member to one that has at least two fewer, until no such move is left.
"""

from __future__ import annotations

from ottla.common.ids import TopicId
from ottla.groups.assignors import GroupSpec

Assignment = dict[str, dict[TopicId, list[int]]]
TopicPartition = tuple[TopicId, int]


def assign(spec: GroupSpec) -> Assignment:
    members = sorted(spec.members)
    if not members:
        return {}
    first = sorted(spec.members[members[0]].topics)
    if all(sorted(spec.members[member].topics) == first for member in members):
        return _assign_alike(spec, members)
    return _assign_mixed(spec, members)


def _current(spec: GroupSpec, member_id: str) -> list[TopicPartition]:
    """What the member has of topics that exist and that it still reads."""
    member = spec.members[member_id]
    reads = dict.fromkeys(member.topics)
    return [
        (topic_id, partition)
        for topic_id in sorted(member.current)
        if topic_id in reads
        for partition in member.current[topic_id]
        if partition < spec.partition_counts.get(topic_id, 0)
    ]


def _all_partitions(spec: GroupSpec, topics: list[TopicId]) -> list[TopicPartition]:
    return [(topic_id, partition) for topic_id in topics for partition in range(spec.partition_counts[topic_id])]


def _give(assignment: Assignment, member_id: str, partition: TopicPartition) -> None:
    assignment[member_id].setdefault(partition[0], []).append(partition[1])


def _assign_alike(spec: GroupSpec, members: list[str]) -> Assignment:
    topics = sorted(topic for topic in spec.members[members[0]].topics if topic in spec.partition_counts)
    everything = _all_partitions(spec, topics)
    share, extra = divmod(len(everything), len(members))
    assignment: Assignment = {member: {} for member in members}
    sizes = dict.fromkeys(members, 0)
    taken: dict[TopicPartition, None] = {}
    # Those who have more than a bare share get first claim on the extra ones: they have them already.
    for member_id in members:
        held = [partition for partition in _current(spec, member_id) if partition not in taken]
        quota = share
        if len(held) > share and extra > 0:
            quota, extra = share + 1, extra - 1
        for partition in held[:quota]:
            taken[partition] = None
            _give(assignment, member_id, partition)
            sizes[member_id] += 1
    free = iter([partition for partition in everything if partition not in taken])
    for member_id in members:
        quota = share
        if sizes[member_id] <= share and extra > 0:
            quota, extra = share + 1, extra - 1
        while sizes[member_id] < quota:
            _give(assignment, member_id, next(free))
            sizes[member_id] += 1
    return assignment


def _assign_mixed(spec: GroupSpec, members: list[str]) -> Assignment:
    readers: dict[TopicId, list[str]] = {}
    for member_id in members:
        for topic_id in spec.members[member_id].topics:
            if topic_id in spec.partition_counts:
                readers.setdefault(topic_id, []).append(member_id)
    owner: dict[TopicPartition, str] = {}
    sizes = dict.fromkeys(members, 0)
    for member_id in members:
        for partition in _current(spec, member_id):
            if partition not in owner:
                owner[partition] = member_id
                sizes[member_id] += 1
    scarcest_first = sorted(readers, key=lambda topic_id: (len(readers[topic_id]), topic_id))
    for partition in _all_partitions(spec, scarcest_first):
        if partition not in owner:
            lightest = min(readers[partition[0]], key=lambda member_id: (sizes[member_id], member_id))
            owner[partition] = lightest
            sizes[lightest] += 1
    _balance(owner, sizes, readers)
    assignment: Assignment = {member: {} for member in members}
    for partition, member_id in owner.items():
        _give(assignment, member_id, partition)
    return assignment


def _balance(owner: dict[TopicPartition, str], sizes: dict[str, int], readers: dict[TopicId, list[str]]) -> None:
    """Each move makes two loads more alike, so the sum of their squares falls and the loop ends."""
    by_topic: dict[TopicId, list[TopicPartition]] = {}
    for partition in sorted(owner):
        by_topic.setdefault(partition[0], []).append(partition)
    is_moving = True
    while is_moving:
        is_moving = False
        for topic_id, partitions in by_topic.items():
            for partition in partitions:
                lightest = min(readers[topic_id], key=lambda member_id: (sizes[member_id], member_id))
                holder = owner[partition]
                if sizes[holder] > sizes[lightest] + 1:
                    owner[partition] = lightest
                    sizes[holder] -= 1
                    sizes[lightest] += 1
                    is_moving = True
