"""Consumer groups as the cluster tells them: state, members, committed offsets, and lag against the logs' ends."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from ottla.cli.connection import ANSWER_S_MAX, Cluster
from ottla.cli.error_sentences import failed
from ottla.cli.group.remainder import without_records
from ottla.cli.records.positions import Bounds, Partition, log_bounds
from ottla.common.errors import OttlaError

NO_GROUP = frozenset({"DEAD", "UNKNOWN"})


@dataclass(frozen=True)
class Committed:
    """A partition of a group: where it is (None: no commit), where the log begins and ends, who reads it.

    `is_at_end`: all that comes after the commit are transaction markers and records of aborted transactions.
    """

    topic: str
    partition: int
    offset: int | None
    bounds: Bounds | None
    member: str | None = None
    is_at_end: bool = False

    @property
    def lag(self) -> int | None:
        """In offsets, as Kafka counts it; None without a commit or without a log."""
        if self.offset is None or self.bounds is None:
            return None
        # never below zero: a topic may have been trimmed or made again
        return 0 if self.is_at_end else max(0, self.bounds.end - max(self.offset, self.bounds.start))


def all_groups(cluster: Cluster) -> list[Any]:
    """Listings of all consumer groups, by name."""
    cluster.reach()
    listed = cluster.wait(cluster.admin.list_consumer_groups(request_timeout=ANSWER_S_MAX))
    if listed.errors and not listed.valid:
        raise failed(listed.errors[0])
    return sorted(listed.valid, key=lambda group: group.group_id)


def describe_groups(cluster: Cluster, names: Iterable[str]) -> dict[str, Any]:
    """Descriptions of groups that must exist."""
    from confluent_kafka import KafkaException

    wanted = list(dict.fromkeys(names))
    if not wanted:
        return {}
    cluster.reach()
    answers = cluster.admin.describe_consumer_groups(wanted, request_timeout=ANSWER_S_MAX)
    found = {}
    for name, answer in answers.items():
        try:
            found[name] = cluster.wait(answer)
        except KafkaException as error:
            if error.args[0].name() == "GROUP_ID_NOT_FOUND":
                raise no_group(cluster, name) from None
            raise failed(error, f"group '{name}'") from None
        if found[name].state.name in NO_GROUP:
            raise no_group(cluster, name)
    return found


def no_group(cluster: Cluster, name: str) -> OttlaError:
    known = [group.group_id for group in all_groups(cluster)]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean '{near[0]}'?" if near else "`ottla group list` shows what there is."
    return OttlaError(f"there is no group '{name}': {hint}")


def committed_offsets(cluster: Cluster, name: str) -> dict[Partition, int]:
    from confluent_kafka import ConsumerGroupTopicPartitions

    answers = cluster.admin.list_consumer_group_offsets(
        [ConsumerGroupTopicPartitions(name)], request_timeout=ANSWER_S_MAX
    )
    answer = cluster.wait_about(f"group '{name}'", answers[name])
    return {
        (partition.topic, partition.partition): partition.offset
        for partition in answer.topic_partitions or ()
        if partition.offset >= 0
    }


def positions_of(cluster: Cluster, name: str, description: Any) -> list[Committed]:
    """Every partition of the topics that the group has committed anything in or that a member has now."""
    committed = committed_offsets(cluster, name)
    owners = {
        (partition.topic, partition.partition): member.client_id
        for member in description.members
        for partition in (member.assignment.topic_partitions if member.assignment else ())
    }
    present = _partitions_of(cluster, {topic for topic, _ in (*committed, *owners)})
    partitions = sorted({*committed, *owners, *present})
    bounds = log_bounds(cluster, present)
    spans = {
        partition: (max(offset, bounds[partition].start), bounds[partition].end)
        for partition, offset in committed.items()
        if partition in bounds
    }
    at_end = without_records(cluster, spans)
    return [
        Committed(
            *partition,
            committed.get(partition),
            bounds.get(partition),
            member=owners.get(partition),
            is_at_end=partition in at_end,
        )
        for partition in partitions
    ]


def _partitions_of(cluster: Cluster, topics: Collection[str]) -> list[Partition]:
    """Those that have a leader to ask; commits may outlive a topic."""
    if not topics:
        return []
    known = cluster.all_topics().topics
    return [
        (name, index)
        for name in topics
        if name in known
        for index, partition in known[name].partitions.items()
        if partition.leader >= 0
    ]


def existing(cluster: Cluster, partitions: Iterable[Partition]) -> list[Partition]:
    wanted = list(partitions)
    present = set(_partitions_of(cluster, {topic for topic, _ in wanted}))
    return [partition for partition in wanted if partition in present]


def total_lag(positions: Iterable[Committed]) -> int:
    return sum(position.lag or 0 for position in positions)


def without_commit(positions: Iterable[Committed]) -> int:
    """Partitions with records, of which nobody knows whether the group has seen any."""
    return sum(
        position.offset is None and position.bounds is not None and position.bounds.end > position.bounds.start
        for position in positions
    )
