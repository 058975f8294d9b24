"""What is checked before a coordinator writes, or a marker is written."""

from __future__ import annotations

from ottla.broker.partitions.partition import Partition

_ALL = -1


def check_replicas(partition: Partition) -> None:
    """Raises NOT_ENOUGH_REPLICAS when what is written now could not be committed. A partition with one replica has all
    it can have, whatever min.insync.replicas says."""
    if partition.replication is not None:
        partition.check_acks(_ALL)
