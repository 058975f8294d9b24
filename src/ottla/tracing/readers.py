"""Who has read a record: judged by committed offsets, which is all that a cluster knows of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ottla.client.admin.offsets_of_groups import group_names, offsets_of_groups
from ottla.client.cluster import ClusterClient
from ottla.common.ids import TopicPartition
from ottla.tracing.model import NOT_YET, NOTHING_COMMITTED, READ, GroupRead, Hop


def with_groups(cluster: ClusterClient, hops: Sequence[Hop], now_ms: int) -> tuple[Hop, ...]:
    """The hops, each with the groups that read its topic. Raises OttlaError."""
    topics = sorted({hop.position.topic for hop in hops})
    numbers = cluster.settled(lambda: cluster.refresh(topics))
    partitions = [TopicPartition(topic, number) for topic, its in numbers.items() for number in its]
    committed = cluster.settled(lambda: offsets_of_groups(cluster, group_names(cluster), partitions))
    return tuple(replace(hop, groups=judged(hop, committed, now_ms)) for hop in hops)


def judged(hop: Hop, committed: Mapping[str, Mapping[TopicPartition, int]], now_ms: int) -> tuple[GroupRead, ...]:
    """PURE. Groups without any offset in the topic have nothing to do with it."""
    where = TopicPartition(hop.position.topic, hop.position.partition)
    found = []
    for group, offsets in sorted(committed.items()):
        if not any(place.topic == where.topic for place in offsets):
            continue
        age_s = max(0, now_ms - hop.timestamp_ms) / 1000
        at = offsets.get(where)
        if at is None:
            found.append(GroupRead(group, NOTHING_COMMITTED, None, 0, age_s))
        elif at > hop.position.offset:
            found.append(GroupRead(group, READ, at))
        else:
            found.append(GroupRead(group, NOT_YET, at, hop.position.offset - at + 1, age_s))
    return tuple(found)
