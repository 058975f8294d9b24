"""Which replica a consumer should read from: with Kafka's RackAwareReplicaSelector one in its own rack (KIP-392)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.partitions.partition import Partition

HERE = -1


def preferred_replica(broker: Broker, partition: Partition, rack: str, offset: int) -> int:
    """A broker, or HERE. Only one that has this offset, so that nobody is sent to and fro; and only one in sync: a
    consumer stays for minutes with the replica that it was sent to, which may lag ever further behind."""
    state = partition.replication
    if state is None or not rack or broker.rack == rack:
        return HERE
    brokers = broker.image.brokers
    near = [
        follower
        for replica, follower in state.followers.items()
        if replica in state.isr
        and replica in brokers
        and brokers[replica].rack == rack
        and follower.log_start_offset <= offset <= follower.end_offset
    ]
    return max(near, key=lambda follower: (follower.end_offset, -follower.id)).id if near else HERE
