"""Looks at a cluster again and again, remembers for a while, and says what it thinks of it.

The history is short and bounded: as many looks as are in the window, one list of ends for each partition however many
groups read it. A commit is remembered when it was seen to move, or when a live member has the partition: who has it is
taken to commit, also the same offset again. So a consumer that lives and gets nowhere is in STALL, one that is gone is
in STOP, as Burrow tells them from the times of commits, which the protocol does not show.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.common.ids import TopicPartition
from ottla.monitoring.burrow import Commit, GroupStatus, LogEnd, Rules, Status, Verdict, judge, judge_group
from ottla.monitoring.sampling import ClusterLook, GroupLook
from ottla.monitoring.under_replication import (
    Pattern,
    ReplicationLook,
    ReplicationVerdict,
    judge_replication,
)


class PartitionReport(NamedTuple):
    topic: str
    partition: int
    committed: int
    end: int | None
    client_id: str | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class GroupReport:
    group: str
    status: GroupStatus
    state: str
    members: int
    # Of all partitions together, and of the one that is furthest behind.
    lag: int
    seconds_behind: float | None
    partitions: tuple[PartitionReport, ...]

    @property
    def worst(self) -> PartitionReport | None:
        return max(self.partitions, key=lambda one: (one.verdict.status, one.verdict.lag), default=None)


@dataclass(frozen=True, slots=True)
class ClusterReport:
    at_ms: int
    groups: dict[str, GroupReport]
    replication: ReplicationVerdict
    brokers: tuple[int, ...]
    controller: int
    topics: int
    partitions: int
    offline_partitions: int
    troubles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MonitorSettings:
    interval_s: float = 10.0
    # How many looks are remembered; Burrow has ten.
    window: int = 10
    rules: Rules = field(default_factory=Rules)


class StatusChange(NamedTuple):
    """Somebody may want to be told."""

    at_ms: int
    # group, or cluster.
    kind: str
    name: str
    before: str
    after: str
    why: str


EMPTY = ClusterReport(0, {}, ReplicationVerdict(Pattern.NONE, 0, (), "nothing was looked at yet"), (), -1, 0, 0, 0)


class Monitor:
    """`take(look)` in one thread; `report` may be read in any."""

    def __init__(
        self, settings: MonitorSettings | None = None, on_change: Callable[[StatusChange], None] | None = None
    ) -> None:
        self.settings = settings or MonitorSettings()
        self._on_change = on_change
        self._ends: dict[TopicPartition, deque[LogEnd]] = {}
        self._commits: dict[tuple[str, TopicPartition], deque[Commit]] = {}
        self._replication: deque[ReplicationLook] = deque(maxlen=self.settings.window)
        self._lags: dict[str, deque[tuple[int, int]]] = {}
        self._report = EMPTY
        self._lock = threading.Lock()

    @property
    def report(self) -> ClusterReport:
        return self._report

    def lag_history(self, group: str) -> list[tuple[int, int]]:
        """When, and how much in all: of the looks in the window."""
        with self._lock:
            return list(self._lags.get(group, ()))

    def take(self, look: ClusterLook) -> ClusterReport:
        with self._lock:
            self._remember(look)
            self._replication.append(_replication_look(look))
            report = self._judge(look)
        before, self._report = self._report, report
        if self._on_change is not None:
            for change in _changes(before, report):
                self._on_change(change)
        return report

    # --- remembering

    def _remember(self, look: ClusterLook) -> None:
        window = self.settings.window
        for partition, end in look.ends.items():
            self._ends.setdefault(partition, deque(maxlen=window)).append(LogEnd(look.at_ms, end))
        for name, group in look.groups.items():
            for partition, offset in group.committed.items():
                if partition in look.ends:
                    self._remember_commit(look, name, group, partition, offset)
            lag = sum(look.lag(name, partition) or 0 for partition in group.committed)
            self._lags.setdefault(name, deque(maxlen=window)).append((look.at_ms, lag))
        # What is gone is forgotten; what could not be asked this time is not.
        if not look.troubles:
            self._ends = {partition: ends for partition, ends in self._ends.items() if partition in look.ends}
            self._commits = {
                key: commits
                for key, commits in self._commits.items()
                if key[0] in look.groups and key[1] in look.groups[key[0]].committed
            }
            self._lags = {name: lags for name, lags in self._lags.items() if name in look.groups}

    def _remember_commit(
        self, look: ClusterLook, name: str, group: GroupLook, partition: TopicPartition, offset: int
    ) -> None:
        commits = self._commits.setdefault((name, partition), deque(maxlen=self.settings.window))
        # Where only markers are left, the group is at the end.
        end = offset if (name, partition) in look.without_records else look.ends[partition]
        if not commits or commits[-1].offset != offset or partition in group.owners:
            commits.append(Commit(look.at_ms, offset, end))

    # --- judging

    def _judge(self, look: ClusterLook) -> ClusterReport:
        groups = {name: self._judge_group(look, name, group) for name, group in look.groups.items()}
        for name, known in self._report.groups.items():
            # Its coordinator did not answer: what was known last is not worse than nothing.
            if name not in groups and look.troubles:
                groups[name] = known
        return ClusterReport(
            at_ms=look.at_ms,
            groups=dict(sorted(groups.items())),
            replication=judge_replication(self._replication),
            brokers=tuple(sorted(look.brokers)),
            controller=look.controller,
            topics=len({partition.topic for partition in look.partitions}),
            partitions=len(look.partitions),
            offline_partitions=sum(one.leader < 0 for one in look.partitions.values()),
            troubles=tuple(look.troubles),
        )

    def _judge_group(self, look: ClusterLook, name: str, group: GroupLook) -> GroupReport:
        reports = []
        for partition, offset in sorted(group.committed.items()):
            ends = self._ends.get(partition, ())
            if (name, partition) in look.without_records:
                verdict = Verdict(Status.OK, 0, 0.0, "only markers of transactions are left")
            else:
                commits = self._commits.get((name, partition), ())
                verdict = judge(list(commits), list(ends), look.at_ms, self.settings.rules)
            reports.append(
                PartitionReport(*partition, offset, look.ends.get(partition), group.owners.get(partition), verdict)
            )
        behind = [one.verdict.seconds_behind for one in reports if one.verdict.seconds_behind is not None]
        return GroupReport(
            group=name,
            status=judge_group(one.verdict.status for one in reports),
            state=group.state,
            members=group.members,
            lag=sum(one.verdict.lag for one in reports),
            seconds_behind=max(behind, default=None),
            partitions=tuple(reports),
        )


def _replication_look(look: ClusterLook) -> ReplicationLook:
    missing: dict[tuple[int, int], int] = {}
    partitions = 0
    for partition in look.partitions.values():
        absent = [replica for replica in partition.replicas if replica not in partition.isr]
        partitions += bool(absent)
        for replica in absent:
            key = (partition.leader, replica)
            missing[key] = missing.get(key, 0) + 1
    return ReplicationLook(look.at_ms, missing, partitions, frozenset(look.brokers))


def _changes(before: ClusterReport, after: ClusterReport) -> list[StatusChange]:
    changes = []
    for name, group in after.groups.items():
        known = before.groups.get(name)
        was = known.status if known is not None else GroupStatus.OK
        if was is not group.status:
            worst = group.worst
            where = "" if worst is None else f"{worst.topic}-{worst.partition} {worst.verdict.status.name}: "
            why = "all partitions are well" if worst is None or not group.status else where + worst.verdict.why
            changes.append(StatusChange(after.at_ms, "group", name, was.name, group.status.name, why))
    was_pattern, pattern = before.replication.pattern, after.replication.pattern
    if was_pattern is not pattern and Pattern.UNCLEAR not in (pattern,):
        changes.append(
            StatusChange(
                after.at_ms, "cluster", "replication", was_pattern.value, pattern.value, after.replication.advice
            )
        )
    return changes
