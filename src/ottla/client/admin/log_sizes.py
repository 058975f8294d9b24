"""How many bytes an offset of a partition stands for, on average: what its log takes on its leader's disk tells."""

from __future__ import annotations

from collections.abc import Collection

from ottla.client.lookup import EARLIEST_LOCAL, LATEST, ClusterReader
from ottla.common.errors import OttlaError
from ottla.common.ids import TopicPartition, partitions_by_topic
from ottla.protocol.messages import DescribeLogDirsRequest


def average_bytes(reader: ClusterReader, partitions: Collection[TopicPartition]) -> dict[TopicPartition, float]:
    """Nothing for those whose leader does not tell: not everybody may ask, and old brokers do not know the question."""
    try:
        starts = reader.offsets_now(dict.fromkeys(partitions, EARLIEST_LOCAL))
        ends = reader.offsets_now(dict.fromkeys(partitions, LATEST))
        sizes = _log_bytes(reader, partitions)
    except (OSError, OttlaError):
        reader.close()
        return {}
    return {
        partition: size / (ends[partition] - starts[partition])
        for partition, size in sizes.items()
        if ends[partition] > starts[partition] >= 0
    }


def _log_bytes(reader: ClusterReader, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for leader, led in reader.by_leader(partitions).items():
        topics = [
            DescribeLogDirsRequest.DescribableLogDirTopic(topic=name, partitions=numbers)
            for name, numbers in partitions_by_topic(led).items()
        ]
        for log_dir in reader.broker(leader).call(DescribeLogDirsRequest(topics=topics)).results:
            for topic in log_dir.topics:
                for row in topic.partitions:
                    if not row.is_future_key:
                        found[TopicPartition(topic.name, row.partition_index)] = row.partition_size
    return found
