"""Which partitions a query reads now: topics and partitions come and go while it runs."""

from __future__ import annotations

import re

from ottla.client.lookup import ClusterReader
from ottla.common.errors import OttlaError
from ottla.common.ids import TopicPartition
from ottla.spark.source.options import SourceOptions


def subscribed(reader: ClusterReader, options: SourceOptions, *, must_exist: bool) -> list[TopicPartition]:
    """Sorted. With `must_exist` a topic or partition that was named and is not there is an OttlaError."""
    if options.pattern is not None:
        pattern = re.compile(options.pattern)
        names = [name for name in reader.topic_names() if pattern.fullmatch(name)]
    else:
        names = list(options.topics) or sorted({partition.topic for partition in options.assigned})
    there = reader.partitions(names)
    found = [TopicPartition(name, number) for name in sorted(there) for number in there[name]]
    if options.assigned:
        known = set(found)
        found = [partition for partition in options.assigned if partition in known]
    if must_exist:
        _check_there(options, names, there, found)
    return found


def _check_there(
    options: SourceOptions, names: list[str], there: dict[str, list[int]], found: list[TopicPartition]
) -> None:
    servers = options.client.bootstrap_servers
    for name in names:
        if name not in there and options.pattern is None:
            raise OttlaError(f"there is no topic '{name}' in the cluster at {servers}.")
    if len(found) < len(options.assigned):
        known = set(found)
        missing = next(partition for partition in options.assigned if partition not in known)
        raise OttlaError(f"topic '{missing.topic}' has no partition {missing.partition} in the cluster at {servers}.")
