"""`ottla group lag --verdict`: looks at the groups a few times, and judges them by Burrow's rules."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ottla.cli.output import notice, paint, show, table
from ottla.cli.settings import Settings
from ottla.common.errors import OttlaError

if TYPE_CHECKING:
    from ottla.monitoring.monitor import ClusterReport

LOOKS = 5
COLOURS = {"OK": "green", "WARN": "yellow", "ERROR": "red"}


def show_verdicts(settings: Settings, names: tuple[str, ...], interval_s: float) -> None:
    from ottla.client.access.security_settings import parse_security
    from ottla.client.address import ClusterAddress
    from ottla.monitoring.monitor import Monitor, MonitorSettings
    from ottla.monitoring.sampling import ClusterSampler

    client = settings.client_settings()
    sampler = ClusterSampler(ClusterAddress(client["bootstrap.servers"], parse_security(client)), client_id="ottla-cli")
    monitor = Monitor(MonitorSettings(interval_s=interval_s, window=LOOKS))
    notice(f"looking {LOOKS} times, {interval_s:g} s apart")
    try:
        for number in range(LOOKS):
            if number:
                time.sleep(interval_s)
            report = monitor.take(sampler.look())
    finally:
        sampler.close()
    if unknown := [name for name in names if name not in report.groups]:
        raise OttlaError(f"there is no group '{unknown[0]}': `ottla group list` shows what there is.")
    data = _rows(report, names)
    show(settings, data, lambda: _lines(data))


def _rows(report: ClusterReport, names: tuple[str, ...]) -> Any:
    from ottla.monitoring.api import group_json

    return [
        {key: value for key, value in group_json(group, []).items() if key != "lag_history"}
        for name, group in report.groups.items()
        if not names or name in names
    ]


def _lines(groups: list[dict[str, Any]]) -> Iterable[str]:
    if not groups:
        return ["no group has committed anything"]
    rows = []
    for group in groups:
        worst = group["worst"]
        where = f"{worst['topic']}-{worst['partition']} {worst['status']}: {worst['why']}" if worst else ""
        behind = group["seconds_behind"]
        rows.append(
            (
                group["group"],
                paint(group["status"], COLOURS[group["status"]]),
                group["state"],
                group["members"],
                group["lag"],
                None if behind is None else f"{behind:.1f} s",
                where,
            )
        )
    return table(["GROUP", "VERDICT", "STATE", "MEMBERS", "LAG", "BEHIND", "WORST PARTITION"], rows)
