"""A cluster at one moment, as one immutable value. Pages are rendered from it, so none asks the cluster much."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ottla.client.admin.log_dirs import LogDir
from ottla.client.admin.reassignments import Reassignment
from ottla.common.ids import TopicPartition


@dataclass(frozen=True)
class Broker:
    id: int
    host: str
    port: int
    rack: str | None
    is_controller: bool
    log_dirs: tuple[LogDir, ...] = ()
    log_bytes: int | None = None
    leaders: int = 0
    replicas: int = 0


@dataclass(frozen=True, slots=True)
class Partition:
    index: int
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    # None while its leader does not tell.
    start: int | None = None
    end: int | None = None
    log_bytes: int | None = None

    @property
    def is_under_replicated(self) -> bool:
        return len(self.isr) < len(self.replicas)

    @property
    def preferred(self) -> int:
        return self.replicas[0] if self.replicas else -1

    @property
    def records(self) -> int | None:
        return None if self.start is None or self.end is None else max(0, self.end - self.start)


@dataclass(frozen=True)
class Topic:
    name: str
    is_internal: bool
    partitions: tuple[Partition, ...]
    # Settings of its own, not the broker's defaults.
    overrides: Mapping[str, str | None] = field(default_factory=dict)
    min_isr: int = 1
    records_per_s: float | None = None
    bytes_per_s: float | None = None

    @cached_property
    def records(self) -> int:
        return sum(partition.records or 0 for partition in self.partitions)

    @cached_property
    def log_bytes(self) -> int | None:
        known = [partition.log_bytes for partition in self.partitions if partition.log_bytes is not None]
        return sum(known) if known else None

    @cached_property
    def replication(self) -> int:
        return max((len(partition.replicas) for partition in self.partitions), default=0)

    @cached_property
    def under_replicated(self) -> int:
        return sum(partition.is_under_replicated for partition in self.partitions)

    @cached_property
    def leaderless(self) -> int:
        return sum(partition.leader < 0 for partition in self.partitions)


@dataclass(frozen=True)
class Member:
    id: str
    client_id: str
    host: str
    instance: str | None
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True)
class Group:
    name: str
    state: str
    # classic, consumer, share, streams
    kind: str
    protocol: str
    coordinator: int
    members: tuple[Member, ...] = ()
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    lags: Mapping[TopicPartition, int] = field(default_factory=dict)
    # Why its offsets are not known, if they are not.
    problem: str | None = None
    commits_per_s: float | None = None

    @cached_property
    def lag(self) -> int | None:
        return sum(self.lags.values()) if self.lags else None

    @cached_property
    def topics(self) -> tuple[str, ...]:
        return tuple(
            sorted({where.topic for where in self.offsets} | {p.topic for m in self.members for p in m.partitions})
        )


@dataclass(frozen=True)
class Snapshot:
    at_s: float
    took_s: float
    cluster_id: str
    controller: int
    brokers: Mapping[int, Broker]
    topics: Mapping[str, Topic]
    groups: Mapping[str, Group]
    reassignments: tuple[Reassignment, ...] = ()
    # What could not be asked for, and why: the pages say so.
    missing: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def partition_count(self) -> int:
        return sum(len(topic.partitions) for topic in self.topics.values())

    @cached_property
    def log_bytes(self) -> int | None:
        known = [topic.log_bytes for topic in self.topics.values() if topic.log_bytes is not None]
        return sum(known) if known else None

    @cached_property
    def absent_brokers(self) -> tuple[int, ...]:
        """Those that should have replicas and are not there."""
        named = {node for topic in self.topics.values() for one in topic.partitions for node in one.replicas}
        return tuple(sorted(named - set(self.brokers)))

    @cached_property
    def lag_by_topic(self) -> Mapping[str, int]:
        """The most that one group is behind in each topic."""
        worst: dict[str, int] = {}
        for group in self.groups.values():
            mine: dict[str, int] = {}
            for where, lag in group.lags.items():
                mine[where.topic] = mine.get(where.topic, 0) + lag
            for topic, lag in mine.items():
                worst[topic] = max(worst.get(topic, 0), lag)
        return worst

    def groups_of(self, topic: str) -> list[Group]:
        return [group for group in self.groups.values() if topic in group.topics]
