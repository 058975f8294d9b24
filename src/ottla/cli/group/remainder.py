"""What is left for a group: whether anything between its commit and the end of the log could still be read.

Offsets are not records. The marker that ends a transaction takes one, and so do the records of an aborted transaction.
A consumer that commits the offset after its last record, as librdkafka's do, stays before the marker: its lag would be
1 in each partition for ever, although it has read everything. So a short remainder is read, as a consumer would.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ottla.cli.connection import Cluster
from ottla.cli.records.positions import Partition

OFFSETS_MAX = 1000  # a longer remainder is not one of markers
LOOK_S_MAX = 5.0
POLL_S = 0.1


def without_records(cluster: Cluster, remainders: Mapping[Partition, tuple[int, int]]) -> set[Partition]:
    """Partitions in which a read_committed consumer finds no record from the first offset up to the second."""
    from confluent_kafka import TopicPartition

    looked_at = {partition: span for partition, span in remainders.items() if 0 < span[1] - span[0] <= OFFSETS_MAX}
    if not looked_at:
        return set()
    consumer = cluster.consumer(
        {
            "group.id": "ottla-cli",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "queued.min.messages": "1",
            "fetch.message.max.bytes": "1024",
        }
    )
    consumer.assign([TopicPartition(*partition, start) for partition, (start, _) in looked_at.items()])
    empty: set[Partition] = set()
    unknown = set(looked_at)
    deadline = time.monotonic() + LOOK_S_MAX
    try:
        while unknown and time.monotonic() < deadline:
            if (message := consumer.poll(POLL_S)) is None:
                continue
            partition = (message.topic(), message.partition())
            unknown.discard(partition)
            # the end of what is committed: behind it may be a transaction that is still open
            if _is_end(message.error()) and message.offset() >= looked_at[partition][1]:
                empty.add(partition)
    finally:
        consumer.close()
    return empty


def _is_end(error: Any) -> bool:
    return error is not None and error.name() == "_PARTITION_EOF"
