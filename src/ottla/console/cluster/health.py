"""What is wrong with a cluster, the worst first, each with what to do about it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from ottla.console.cluster.snapshot import Group, Snapshot
from ottla.monitoring.burrow import Status
from ottla.monitoring.monitor import GroupReport

BAD, WARNING, NOTE = "bad", "warn", "note"
_NAMED_MAX = 5
# A group without members that is behind by less is probably just not started.
_LAG_WORTH_A_WORD = 1_000


@dataclass(frozen=True)
class Finding:
    severity: str
    what: str
    advice: str
    link: str | None = None


def findings(snapshot: Snapshot, judged: Mapping[str, GroupReport]) -> list[Finding]:
    """`judged`: groups by Burrow's rules, which need some looks before they say anything."""
    found = [
        *_brokers(snapshot),
        *_partitions(snapshot),
        *_disks(snapshot),
        *_groups(snapshot, judged),
        *_placement(snapshot),
    ]
    return sorted(found, key=lambda finding: (BAD, WARNING, NOTE).index(finding.severity))


def verdict(found: list[Finding]) -> str:
    worst = {finding.severity for finding in found}
    return BAD if BAD in worst else WARNING if WARNING in worst else "ok"


def _brokers(snapshot: Snapshot) -> list[Finding]:
    found = []
    if snapshot.controller < 0:
        found.append(
            Finding(
                BAD,
                "The cluster has no controller: nothing can be changed, and no leader is elected.",
                "Look whether a majority of ZooKeeper or of the quorum is up, and at the brokers' logs.",
                "/brokers",
            )
        )
    found += [
        Finding(
            BAD,
            f"Broker {node} is gone, and has replicas of partitions.",
            "Start it again: it catches up by itself. If it never comes back, move its replicas to other brokers.",
            "/brokers",
        )
        for node in snapshot.absent_brokers
    ]
    return found


def _partitions(snapshot: Snapshot) -> list[Finding]:
    leaderless, below, under = [], [], []
    for topic in snapshot.topics.values():
        for partition in topic.partitions:
            name = f"{topic.name}-{partition.index}"
            if partition.leader < 0:
                leaderless.append(name)
            elif len(partition.isr) < min(topic.min_isr, len(partition.replicas)):
                below.append(name)
            elif partition.is_under_replicated:
                under.append(name)
    found = []
    if leaderless:
        found.append(
            Finding(
                BAD,
                f"{_count(leaderless, 'partition')} without a leader: {_named(leaderless)}. Nobody can read or write.",
                "Start the brokers that hold the replicas. If they are lost for good, elect a leader uncleanly: "
                "records that only they had are lost then.",
                "/partitions?show=leaderless",
            )
        )
    if below:
        found.append(
            Finding(
                BAD,
                f"{_count(below, 'partition')} below min.insync.replicas: {_named(below)}. acks=all is refused.",
                "Bring the missing replicas back; lower min.insync.replicas only if you can afford to lose records.",
                "/partitions?show=under",
            )
        )
    if under:
        found.append(
            Finding(
                WARNING,
                f"{_count(under, 'partition')} with a replica out of sync: {_named(under)}.",
                "A constant count means a broker is gone or stuck; one that comes and goes means load or a slow disk.",
                "/partitions?show=under",
            )
        )
    return found


def _disks(snapshot: Snapshot) -> list[Finding]:
    return [
        Finding(
            BAD,
            f"The log directory {log_dir.path} of broker {broker.id} {_how(log_dir.problem)}.",
            "Make room or give the broker another disk; shorten retention of the largest topics meanwhile.",
            f"/brokers/{broker.id}",
        )
        for broker in snapshot.brokers.values()
        for log_dir in broker.log_dirs
        if log_dir.problem is not None
    ]


def _how(problem: str | None) -> str:
    return "fails" if problem == "fails" else f"is {problem}"


def _groups(snapshot: Snapshot, judged: Mapping[str, GroupReport]) -> list[Finding]:
    found = []
    for group in snapshot.groups.values():
        lag = group.lag or 0
        link = f"/groups/{quote(group.name, safe='')}"
        report = judged.get(group.name)
        if report is not None and (stuck := _stuck(group, report, link)) is not None:
            found.append(stuck)
            continue
        if group.state.lower() in ("stable", "assigning") and group.members and lag and not group.commits_per_s:
            if group.commits_per_s is not None and lag >= _LAG_WORTH_A_WORD:
                found.append(
                    Finding(
                        WARNING,
                        f"Group {group.name} has members, is {lag:,} records behind and commits nothing.",
                        "Look at its members: a record that fails again and again, or a consumer that hangs. "
                        "Or a transaction stays open in what it reads: see Transactions.",
                        link,
                    )
                )
        elif not group.members and lag >= _LAG_WORTH_A_WORD:
            found.append(
                Finding(
                    WARNING,
                    f"Group {group.name} has no members and is {lag:,} records behind.",
                    "Start its consumers, or delete the group if nobody needs it any more.",
                    link,
                )
            )
    return found


def _stuck(group: Group, report: GroupReport, link: str) -> Finding | None:
    """Some of its partitions may stand still while others move."""
    still = [one for one in report.partitions if one.verdict.status in (Status.STALL, Status.STOP)]
    back = [one for one in report.partitions if one.verdict.status is Status.REWIND]
    if not (bad := still or back):
        return None
    lag = sum(one.verdict.lag for one in bad)
    where = f"{_count(bad, 'partition')} ({_named([f'{one.topic}-{one.partition}' for one in bad])})"
    if not still:
        what = f"Group {group.name} went back in {where} and is {lag:,} records behind."
        return Finding(WARNING, what, "Was it meant? If not, move its offsets to where it was.", link)
    if group.members:
        what = f"Group {group.name} has members and stands still in {where}, {lag:,} records behind."
        advice = (
            "Look at its members: a record that fails again and again, or a consumer that hangs. "
            "Or a transaction stays open in what it reads: see Transactions."
        )
        return Finding(WARNING, what, advice, link)
    if lag < _LAG_WORTH_A_WORD:
        return None
    what = f"Group {group.name} has no members and is {lag:,} records behind in {where}."
    return Finding(WARNING, what, "Start its consumers, or delete the group if nobody needs it any more.", link)


def _placement(snapshot: Snapshot) -> list[Finding]:
    if not snapshot.topics:
        return []
    astray = sum(
        partition.leader != partition.preferred and partition.preferred in partition.isr
        for topic in snapshot.topics.values()
        for partition in topic.partitions
        if partition.leader >= 0
    )
    if astray:
        return [
            Finding(
                NOTE,
                f"{astray:,} of {snapshot.partition_count:,} partitions are not led by their preferred replica.",
                "Elect preferred leaders to spread the load again.",
                "/partitions?show=astray",
            )
        ]
    return []


def _count(names: Sequence[object], what: str) -> str:
    return f"{len(names):,} {what}{'' if len(names) == 1 else 's'}"


def _named(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED_MAX:,} more" if len(names) > _NAMED_MAX else ""
    return ", ".join(names[:_NAMED_MAX]) + more
