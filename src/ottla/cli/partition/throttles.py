"""Throttles of moves (KIP-73), as kafka-reassign-partitions sets them: rates of brokers, and replicas of topics.

Brokers that have a replica of a moved partition send it no faster, those that get one fetch it no faster. They stay
until they are taken away: `move --wait` does that, and so does `ottla partition status --remove-throttles`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from ottla.cli.config_entries import change_entries, fetch_entries
from ottla.cli.connection import Cluster
from ottla.common.ids import TopicPartition

RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
LEADERS, FOLLOWERS = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"
ALL = "*"


def set_throttles(
    cluster: Cluster, moved: Mapping[TopicPartition, Sequence[int]], target: Sequence[int], bytes_per_second: int
) -> None:
    """`moved` has the replicas of each partition now. Before the move begins."""
    topics = sorted({partition.topic for partition in moved})
    known = fetch_entries(cluster, "topic", topics)
    for topic in topics:
        of_topic = {partition: replicas for partition, replicas in moved.items() if partition.topic == topic}
        values = {entry["name"]: entry["value"] or "" for entry in known[topic]}
        sent = [f"{partition.partition}:{broker}" for partition, replicas in of_topic.items() for broker in replicas]
        fetched = [
            f"{partition.partition}:{broker}"
            for partition, replicas in of_topic.items()
            for broker in target
            if broker not in replicas
        ]
        wanted = {LEADERS: sent, FOLLOWERS: fetched}
        merged: dict[str, str | None] = {
            name: _merged(values.get(name, ""), replicas) for name, replicas in wanted.items()
        }
        change_entries(
            cluster, "topic", topic, {name: value for name, value in merged.items() if value}, validate_only=False
        )
    for broker in sorted({*target, *(broker for replicas in moved.values() for broker in replicas)}):
        rates: dict[str, str | None] = dict.fromkeys(RATES, str(bytes_per_second))
        change_entries(cluster, "broker", str(broker), rates, validate_only=False)


def _merged(value: str, replicas: Iterable[str]) -> str:
    """With those of other moves that are under way."""
    if value == ALL:
        return ALL
    return ",".join(sorted({*filter(None, value.split(",")), *replicas}))


def remove_throttles(cluster: Cluster, topics: Collection[str], brokers: Collection[int]) -> list[str]:
    """Of these topics and brokers, where there are any; the names of what had some."""
    had = []
    kinds: list[tuple[str, list[str], tuple[str, ...]]] = [
        ("topic", sorted(topics), (LEADERS, FOLLOWERS)),
        ("broker", [str(broker) for broker in sorted(brokers)], RATES),
    ]
    for kind, names, settings in kinds:
        for name in names:  # one by one: a question about brokers names one
            entries = fetch_entries(cluster, kind, [name])[name]
            changed: dict[str, str | None] = {
                entry["name"]: None for entry in entries if entry["name"] in settings and entry["source"] == kind
            }
            if changed:
                change_entries(cluster, kind, name, changed, validate_only=False)
                had.append(f"{kind} {name}")
    return had
