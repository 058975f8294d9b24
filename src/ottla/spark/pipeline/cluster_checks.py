"""What is asked of the cluster before a query starts: mistakes are told in a second, not after Spark's start."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ottla.client.address import ClusterAddress
from ottla.client.admin.topics import ensure_topic
from ottla.client.cluster import ClusterClient
from ottla.common.errors import OttlaError
from ottla.spark.sink.marker import MARKER_TOPIC, read_marker


def require_topics(address: ClusterAddress, topics: Iterable[str]) -> None:
    """Raises OttlaError for the first that does not exist, and when nobody answers."""
    with ClusterClient(address) as cluster:
        cluster.leaders(sorted(set(topics)))


def matching_topics(address: ClusterAddress, is_wanted: Callable[[str], bool]) -> set[str]:
    with ClusterClient(address) as cluster:
        return {topic.name for topic in cluster.metadata(None).topics if is_wanted(topic.name)}


def ensure_dead_letter_topic(address: ClusterAddress, topic: str) -> None:
    """It must be there when the first bad record comes, which nobody plans for."""
    with ClusterClient(address) as cluster:
        advice = "create it, or name another one with dead_letters"
        ensure_topic(cluster, topic, what="the dead-letter topic", advice=advice)


def refuse_foreign_marker(address: ClusterAddress, name: str, location: str, query: str | None) -> None:
    """Raises OttlaError when the pipeline of this name was written by another query than that of its checkpoint.

    The sink would notice too, but only after it has shut out whoever is writing under this name now.
    """
    with ClusterClient(address) as cluster:
        if cluster.metadata([MARKER_TOPIC]).topics[0].error_code:
            return
        marker = read_marker(cluster, MARKER_TOPIC, name)
    if marker is None or marker.query == query:
        return
    raise OttlaError(
        f"pipeline '{name}' has written to this cluster before, up to batch {marker.batch}, with another checkpoint "
        f"than {location}: run it where that one is, give this one another name, or start over with --reset."
    )
