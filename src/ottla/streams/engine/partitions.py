"""How many partitions the topics of an application have: given for those that exist, worked out for its own."""

from __future__ import annotations

from collections.abc import Mapping

from ottla.common.errors import OttlaError
from ottla.streams.topology import SinkNode, SourceNode, SubTopology, Topology


def plan_partitions(topology: Topology, existing: Mapping[str, int]) -> dict[str, int]:
    """Of all topics that are read, by the names that the topology has for them. Raises OttlaError where topics that
    meet in a task by key have different numbers of partitions."""
    counts = dict(existing)
    subs = topology.sub_topologies()
    for topic, internal in topology.internal_topics.items():
        if internal.partitions is not None:
            counts[topic] = internal.partitions
    while missing := [topic for topic in topology.internal_topics if topic not in counts]:
        if not any(_settle(topology, subs, topic, counts) for topic in missing):
            raise OttlaError(f"nobody can tell how many partitions the topic '{missing[0]}' needs: say it.")
    for sources in topology.copartitioned:
        _check(topology, sources, counts)
    return counts


def _settle(topology: Topology, subs: list[SubTopology], topic: str, counts: dict[str, int]) -> bool:
    """As many as those that it is joined with; else as many as those have that write to it."""
    together = [names for names in topology.copartitioned if any(topic in _topics(topology, name) for name in names)]
    partners = {counts[each] for names in together for each in _topics_of(topology, names) if each in counts}
    if partners:
        counts[topic] = max(partners)
        return True
    writers = [sub for sub in subs if any(_writes(topology, name, topic) for name in sub.sinks)]
    above = [each for sub in writers for each in _topics_of(topology, sub.sources)]
    if not above or any(each not in counts for each in above):
        return False
    counts[topic] = max(counts[each] for each in above)
    return True


def _writes(topology: Topology, sink: str, topic: str) -> bool:
    node = topology.nodes[sink]
    return isinstance(node, SinkNode) and node.topic == topic


def _topics(topology: Topology, source: str) -> tuple[str, ...]:
    node = topology.nodes[source]
    assert isinstance(node, SourceNode)
    return node.topics


def _topics_of(topology: Topology, sources: tuple[str, ...]) -> list[str]:
    return [topic for source in sources for topic in _topics(topology, source)]


def _check(topology: Topology, sources: tuple[str, ...], counts: Mapping[str, int]) -> None:
    topics = _topics_of(topology, sources)
    numbers = {counts[topic] for topic in topics}
    if len(numbers) > 1:
        told = ", ".join(f"'{topic}' has {counts[topic]}" for topic in topics)
        raise OttlaError(
            f"topics that are joined or aggregated together need equally many partitions, but {told}: give them the "
            "same number, or call `repartition(partitions=...)` on one of the streams."
        )


def task_count(topology: Topology, sub: SubTopology, counts: Mapping[str, int]) -> int:
    return max((counts[topic] for topic in _topics_of(topology, sub.sources)), default=0)
