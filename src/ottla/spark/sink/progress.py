"""What a query has published, seen from outside, and how to make a cluster forget it.

`kafka` are settings of Kafka's clients, as `write_stream` takes them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from ottla.client.admin.group_offsets import committed_offsets as offsets_of_group
from ottla.client.cluster import ClusterClient
from ottla.client.lookup import EARLIEST
from ottla.client.producing import TransactionalProducer
from ottla.client.settings import parse_address
from ottla.common.errors import ErrorCode, OttlaError
from ottla.common.ids import TopicPartition
from ottla.spark.sink.marker import MARKER_TOPIC, Marker, ensure_marker_topic, marker_batch, read_marker


def published(
    *, name: str, bootstrap: str, marker_topic: str = MARKER_TOPIC, kafka: Mapping[str, str] | None = None
) -> Marker | None:
    """The last batch that the query of this name published: its query id, its number, a digest of its offsets."""
    with ClusterClient(parse_address(bootstrap, kafka)) as cluster:
        if cluster.metadata([marker_topic]).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return None
        return read_marker(cluster, marker_topic, name)


def forget(
    *, name: str, bootstrap: str, marker_topic: str = MARKER_TOPIC, kafka: Mapping[str, str] | None = None
) -> None:
    """Let the next query of this name start over, with an empty checkpoint. One that still runs is shut out.

    What was published stays in its topics: the new query writes after it.
    """
    with (
        ClusterClient(parse_address(bootstrap, kafka)) as cluster,
        TransactionalProducer(cluster, name) as producer,
    ):
        ensure_marker_topic(cluster, marker_topic)
        producer.start()
        with producer.transaction():
            producer.produce([(TopicPartition(marker_topic, 0), marker_batch(name, None))])


def committed_offsets(
    *, group: str, bootstrap: str, topics: Sequence[str] | None = None, kafka: Mapping[str, str] | None = None
) -> str:
    """Where a group stands, as a value for the option `startingOffsets`: to go on after a checkpoint was lost.

    `topics` are those that will be read: of what else the group knows nothing is said, and a partition of them that it
    does not know is read from its beginning. Without them it is all that the group knows. Raises OttlaError where it
    knows nothing at all: its offsets have expired, or it is called otherwise.
    """
    with ClusterClient(parse_address(bootstrap, kafka)) as cluster:
        known = {partition: committed.offset for partition, committed in offsets_of_group(cluster, group).items()}
        if not any(topics is None or partition.topic in topics for partition in known):
            of_topics = "" if topics is None else f" of {', '.join(topics)}"
            raise OttlaError(
                f"group '{group}' has no offsets{of_topics}: nothing was committed under that name, or it has expired "
                "since (offsets.retention.minutes); say with startingOffsets where to begin."
            )
        if topics is not None:
            known = {partition: known.get(partition, EARLIEST) for partition in cluster.leaders(topics)}
    found: dict[str, dict[str, int]] = {}
    for partition, offset in sorted(known.items()):
        found.setdefault(partition.topic, {})[str(partition.partition)] = offset
    return json.dumps(found)
