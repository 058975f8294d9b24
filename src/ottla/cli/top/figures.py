"""What `ottla top` shows, from two looks at a cluster. Rates are those between them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.common.ids import TopicPartition
    from ottla.monitoring.monitor import ClusterReport
    from ottla.monitoring.sampling import ClusterLook


@dataclass(frozen=True)
class BrokerLine:
    broker: int
    address: str
    is_controller: bool
    leads: int
    replicas: int
    # Replicas of this broker that are not in sync.
    behind: int
    records_per_s: float


@dataclass(frozen=True)
class TopicLine:
    topic: str
    partitions: int
    records_per_s: float
    # As far as groups have read it; None where none reads it.
    lag: int | None
    groups: int
    under_replicated: int
    offline: int


@dataclass(frozen=True)
class GroupLine:
    group: str
    status: str
    state: str
    members: int
    lag: int
    seconds_behind: float | None
    read_per_s: float
    why: str


@dataclass(frozen=True)
class Figures:
    at_ms: int
    brokers: tuple[BrokerLine, ...]
    topics: tuple[TopicLine, ...]
    groups: tuple[GroupLine, ...]
    partitions: int
    under_replicated: int
    offline: int
    advice: str
    troubles: tuple[str, ...]

    @property
    def records_per_s(self) -> float:
        return sum(topic.records_per_s for topic in self.topics)

    def to_json(self) -> Any:
        return asdict(self) | {"records_per_s": self.records_per_s}


def figures(before: ClusterLook | None, now: ClusterLook, report: ClusterReport) -> Figures:
    rates = _rates(before, now)
    return Figures(
        at_ms=now.at_ms,
        brokers=_brokers(now, rates),
        topics=_topics(now, rates),
        groups=_groups(before, now, report),
        partitions=len(now.partitions),
        under_replicated=report.replication.partitions,
        offline=report.offline_partitions,
        advice=report.replication.advice if report.replication.partitions else "",
        troubles=tuple(now.troubles),
    )


def _rates(before: ClusterLook | None, now: ClusterLook) -> dict[TopicPartition, float]:
    """Records a second of each partition."""
    if before is None or now.at_ms <= before.at_ms:
        return {}
    seconds = (now.at_ms - before.at_ms) / 1_000
    return {
        partition: max(0, end - before.ends[partition]) / seconds
        for partition, end in now.ends.items()
        if partition in before.ends
    }


def _brokers(now: ClusterLook, rates: dict[TopicPartition, float]) -> tuple[BrokerLine, ...]:
    ids = sorted({*now.brokers, *(replica for one in now.partitions.values() for replica in one.replicas)})
    lines = []
    for broker in ids:
        known = now.brokers.get(broker)
        led = [partition for partition, one in now.partitions.items() if one.leader == broker]
        held = [one for one in now.partitions.values() if broker in one.replicas]
        lines.append(
            BrokerLine(
                broker=broker,
                address=f"{known[0]}:{known[1]}" if known is not None else "gone",
                is_controller=broker == now.controller,
                leads=len(led),
                replicas=len(held),
                behind=sum(broker not in one.isr for one in held),
                records_per_s=sum(rates.get(partition, 0.0) for partition in led),
            )
        )
    return tuple(lines)


def _topics(now: ClusterLook, rates: dict[TopicPartition, float]) -> tuple[TopicLine, ...]:
    lags: dict[str, int] = {}
    readers: dict[str, set[str]] = {}
    for name, group in now.groups.items():
        for partition in group.committed:
            lags[partition.topic] = lags.get(partition.topic, 0) + (now.lag(name, partition) or 0)
            readers.setdefault(partition.topic, set()).add(name)
    partitions: dict[str, list[TopicPartition]] = {}
    for partition in now.partitions:
        partitions.setdefault(partition.topic, []).append(partition)
    return tuple(
        TopicLine(
            topic=topic,
            partitions=len(its),
            records_per_s=sum(rates.get(partition, 0.0) for partition in its),
            lag=lags.get(topic),
            groups=len(readers.get(topic, ())),
            under_replicated=sum(len(now.partitions[one].isr) < len(now.partitions[one].replicas) for one in its),
            offline=sum(now.partitions[one].leader < 0 for one in its),
        )
        for topic, its in sorted(partitions.items())
    )


def _groups(before: ClusterLook | None, now: ClusterLook, report: ClusterReport) -> tuple[GroupLine, ...]:
    lines = []
    seconds = (now.at_ms - before.at_ms) / 1_000 if before is not None else 0.0
    for name, group in report.groups.items():
        known = before.groups.get(name) if before is not None else None
        read = 0
        if known is not None and name in now.groups:
            committed = now.groups[name].committed
            read = sum(max(0, offset - known.committed.get(where, offset)) for where, offset in committed.items())
        worst = group.worst
        lines.append(
            GroupLine(
                group=name,
                status=group.status.name,
                state=group.state,
                members=group.members,
                lag=group.lag,
                seconds_behind=group.seconds_behind,
                read_per_s=read / seconds if seconds > 0 else 0.0,
                why=f"{worst.topic}-{worst.partition} {worst.verdict.status.name}: {worst.verdict.why}"
                if worst is not None and group.status
                else "",
            )
        )
    return tuple(lines)
