"""The monitor's report as JSON; the shape is that of `docs/monitoring.md`."""

from __future__ import annotations

from typing import Any

from ottla.monitoring.monitor import ClusterReport, GroupReport


def cluster_json(report: ClusterReport) -> dict[str, Any]:
    replication = report.replication
    return {
        "at_ms": report.at_ms,
        "brokers": list(report.brokers),
        "controller": report.controller,
        "topics": report.topics,
        "partitions": report.partitions,
        "offline_partitions": report.offline_partitions,
        "under_replicated": {
            "partitions": replication.partitions,
            "pattern": replication.pattern.value,
            "brokers": list(replication.brokers),
            "advice": replication.advice,
        },
        "troubles": list(report.troubles),
    }


def groups_json(report: ClusterReport) -> list[dict[str, Any]]:
    """Each group in a line: without its partitions."""
    return [_group_line(group) for group in report.groups.values()]


def group_json(group: GroupReport, history: list[tuple[int, int]]) -> dict[str, Any]:
    return {
        **_group_line(group),
        "partitions": [
            {
                "topic": one.topic,
                "partition": one.partition,
                "committed_offset": one.committed,
                "end_offset": one.end,
                "lag": one.verdict.lag,
                "seconds_behind": _rounded(one.verdict.seconds_behind),
                "status": one.verdict.status.name,
                "why": one.verdict.why,
                "client_id": one.client_id,
            }
            for one in group.partitions
        ],
        "lag_history": [{"at_ms": at_ms, "lag": lag} for at_ms, lag in history],
    }


def _group_line(group: GroupReport) -> dict[str, Any]:
    worst = group.worst
    return {
        "group": group.group,
        "status": group.status.name,
        "state": group.state,
        "members": group.members,
        "lag": group.lag,
        "seconds_behind": _rounded(group.seconds_behind),
        "worst": None
        if worst is None
        else {
            "topic": worst.topic,
            "partition": worst.partition,
            "status": worst.verdict.status.name,
            "why": worst.verdict.why,
        },
    }


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
