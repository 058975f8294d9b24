"""What the monitor thinks, as metrics: the names of kafka_exporter and kafka-lag-exporter where they have one."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import Metric

from ottla.exposition.families import Labels, gauge, gauges
from ottla.monitoring.burrow import GroupStatus, Status
from ottla.monitoring.monitor import ClusterReport
from ottla.monitoring.under_replication import Pattern

_PREFIX = "kafka_consumergroup_"
_BY_PARTITION = ["consumergroup", "topic", "partition"]


def monitor_families(report: ClusterReport) -> Iterator[Metric]:
    yield from _partition_families(report)
    yield from _group_families(report)
    yield from _cluster_families(report)


def _partition_families(report: ClusterReport) -> Iterator[Metric]:
    lags: dict[Labels, float] = {}
    offsets: dict[Labels, float] = {}
    seconds: dict[Labels, float] = {}
    statuses: dict[Labels, float] = {}
    for group in report.groups.values():
        for one in group.partitions:
            key = (group.group, one.topic, str(one.partition))
            offsets[key] = one.committed
            if one.end is not None:
                lags[key] = one.verdict.lag
                statuses[key] = one.verdict.status
            if one.verdict.seconds_behind is not None:
                seconds[key] = one.verdict.seconds_behind
    yield gauges(_PREFIX + "lag", "Offsets between the group's commit and the end of the log.", _BY_PARTITION, lags)
    yield gauges(_PREFIX + "current_offset", "What the group has committed.", _BY_PARTITION, offsets)
    yield gauges(
        _PREFIX + "lag_seconds", "How old the first record is that the group has not read.", _BY_PARTITION, seconds
    )
    names = ", ".join(f"{status.value} {status.name}" for status in Status)
    yield gauges(_PREFIX + "partition_status", f"By Burrow's rules: {names}.", _BY_PARTITION, statuses)


def _group_families(report: ClusterReport) -> Iterator[Metric]:
    by_group = ["consumergroup"]
    groups = report.groups.values()
    yield gauges(_PREFIX + "members", "Members of the group.", by_group, {(one.group,): one.members for one in groups})
    yield gauges(
        _PREFIX + "group_lag", "The lag of all partitions.", by_group, {(one.group,): one.lag for one in groups}
    )
    yield gauges(
        _PREFIX + "group_lag_seconds",
        "How old the oldest record is that the group has not read.",
        by_group,
        {(one.group,): one.seconds_behind for one in groups if one.seconds_behind is not None},
    )
    yield gauges(
        _PREFIX + "status",
        "1 for the status that the group has by Burrow's rules, 0 for the others.",
        ["consumergroup", "status"],
        {(one.group, status.name): float(one.status is status) for one in groups for status in GroupStatus},
    )


def _cluster_families(report: ClusterReport) -> Iterator[Metric]:
    yield gauge("kafka_brokers", "Brokers of the cluster.", len(report.brokers))
    yield gauge(
        "ottla_monitor_under_replicated_partitions",
        "Partitions of which a replica is not in sync.",
        report.replication.partitions,
    )
    yield gauge("ottla_monitor_offline_partitions", "Partitions without a leader.", report.offline_partitions)
    yield gauges(
        "ottla_monitor_replication_pattern",
        "1 for how the number of under-replicated partitions goes, 0 for the others.",
        ["pattern"],
        {(pattern.value,): float(report.replication.pattern is pattern) for pattern in Pattern},
    )
    yield gauges(
        "ottla_monitor_replication_blames",
        "1 for a broker that under-replicated partitions point to.",
        ["broker"],
        {(str(broker),): 1.0 for broker in report.replication.brokers},
    )
    yield gauge(
        "ottla_monitor_last_look_timestamp_seconds", "When the cluster was last looked at.", report.at_ms / 1_000
    )
    yield gauge("ottla_monitor_troubles", "What the last look could not ask.", len(report.troubles))
