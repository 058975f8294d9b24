"""A snapshot as the monitor takes it, so that groups are judged here by the same rules as by `ottla monitor`."""

from __future__ import annotations

from ottla.common.ids import TopicPartition
from ottla.console.cluster.snapshot import Snapshot
from ottla.monitoring.sampling import ClusterLook, GroupLook, PartitionLook


def look_of(snapshot: Snapshot) -> ClusterLook:
    partitions: dict[TopicPartition, PartitionLook] = {}
    ends: dict[TopicPartition, int] = {}
    for topic in snapshot.topics.values():
        for one in topic.partitions:
            where = TopicPartition(topic.name, one.index)
            partitions[where] = PartitionLook(one.leader, one.replicas, one.isr)
            if one.end is not None:
                ends[where] = one.end
    groups = {
        group.name: GroupLook(
            group.state,
            group.kind,
            group.coordinator,
            len(group.members),
            {where: member.client_id for member in group.members for where in member.partitions},
            dict(group.offsets),
        )
        for group in snapshot.groups.values()
    }
    return ClusterLook(
        at_ms=int(snapshot.at_s * 1000),
        brokers={broker.id: (broker.host, broker.port) for broker in snapshot.brokers.values()},
        controller=snapshot.controller,
        partitions=partitions,
        internal_topics=frozenset(topic.name for topic in snapshot.topics.values() if topic.is_internal),
        ends=ends,
        groups=groups,
        # What could not be asked for is not forgotten.
        troubles=[f"{what}: {why}" for what, why in snapshot.missing.items()],
    )
