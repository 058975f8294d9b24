"""`ottla group list`, `describe` and `lag`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from ottla.cli.connection import Cluster
from ottla.cli.given import GivenName
from ottla.cli.group.group_offsets import (
    Committed,
    all_groups,
    describe_groups,
    positions_of,
    total_lag,
    without_commit,
)
from ottla.cli.group.verdict import show_verdicts
from ottla.cli.name_completion import complete_group
from ottla.cli.output import facts, show, table
from ottla.cli.settings import Settings, command
from ottla.cli.watch import interval_option, watch_option, watch_until_interrupted


def _name(enumeration: Any) -> str:
    return str(enumeration.name).lower() if enumeration is not None else "unknown"


@command("list")
def list_groups(settings: Settings) -> None:
    """List consumer groups with their state and protocol (classic, or consumer for KIP-848)."""
    data: list[Any] = [
        {"name": group.group_id, "state": _name(group.state), "protocol": _name(getattr(group, "type", None))}
        for group in all_groups(Cluster(settings))
    ]
    show(settings, data, lambda: _list_lines(data))


def _list_lines(groups: list[dict[str, Any]]) -> Iterable[str]:
    if not groups:
        return ["no consumer groups yet: `ottla consume TOPIC -g NAME` makes one"]
    return table(["GROUP", "STATE", "PROTOCOL"], [list(group.values()) for group in groups])


# -- describe ------------------------------------------------------------------------------------------------------


@command("describe")
@click.argument("groups", nargs=-1, required=True, metavar="GROUP...", type=GivenName(), shell_complete=complete_group)
def describe(settings: Settings, groups: tuple[str, ...]) -> None:
    """Members, assignments, committed offsets and lag of groups."""
    cluster = Cluster(settings)
    data: list[Any] = [
        _description(group, positions_of(cluster, name, group))
        for name, group in describe_groups(cluster, groups).items()
    ]
    show(settings, data, lambda: [line for description in data for line in _description_lines(description)])


def _description(group: Any, positions: list[Committed]) -> dict[str, Any]:
    coordinator = group.coordinator
    return {
        "name": group.group_id,
        "state": _name(group.state),
        "protocol": _name(getattr(group, "type", None)),
        "assignor": group.partition_assignor or None,
        "coordinator": coordinator.id if coordinator is not None else None,
        "lag": total_lag(positions),
        "partitions_without_commit": without_commit(positions),
        "members": [_member(member) for member in group.members],
        "offsets": [_offset(position) for position in positions],
    }


def _member(member: Any) -> dict[str, Any]:
    assigned = member.assignment.topic_partitions if member.assignment else []
    return {
        "member_id": member.member_id,
        "client_id": member.client_id,
        "host": member.host.lstrip("/"),
        "static_id": member.group_instance_id or None,
        "assignment": sorted(f"{partition.topic}-{partition.partition}" for partition in assigned),
    }


def _offset(position: Committed) -> dict[str, Any]:
    return {
        "topic": position.topic,
        "partition": position.partition,
        "committed_offset": position.offset,
        "end_offset": None if position.bounds is None else position.bounds.end,
        "lag": position.lag,
        "client_id": position.member,
    }


def _description_lines(group: dict[str, Any]) -> Iterable[str]:
    yield from facts((name, group[name]) for name in ("name", "state", "protocol", "assignor", "coordinator", "lag"))
    if group["members"]:
        yield ""
        rows = [
            (member["client_id"], member["host"], member["static_id"], len(member["assignment"]), member["member_id"])
            for member in group["members"]
        ]
        yield from table(["CLIENT", "HOST", "STATIC ID", "PARTITIONS", "MEMBER"], rows)
    if group["offsets"]:
        yield ""
        headings = ["TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "CLIENT"]
        yield from table(headings, [list(offset.values()) for offset in group["offsets"]])
    yield ""


# -- lag -----------------------------------------------------------------------------------------------------------


@command("lag")
@click.argument("groups", nargs=-1, metavar="[GROUP]...", type=GivenName(), shell_complete=complete_group)
@click.option("--partitions", "by_partition", is_flag=True, help="A line per partition, not per topic.")
@click.option("--verdict", is_flag=True, help="Look a few times, and judge each group by Burrow's rules.")
@watch_option
@interval_option
def lag(
    settings: Settings, groups: tuple[str, ...], by_partition: bool, verdict: bool, watch: bool, interval: float
) -> None:
    """How far groups (all of them unless named) are behind the ends of their topics.

    LAG counts offsets, as Kafka does. Where nothing but transaction markers and aborted records is left, it is 0.
    --verdict says OK, WARN (falls behind) or ERROR (STALL: commits and gets nowhere, STOP: commits no more, REWIND:
    went back), by five looks --interval apart; `ottla monitor start` does so all the time.
    """
    if verdict:
        if watch or by_partition:
            raise click.UsageError("--verdict goes with neither -w nor --partitions.")
        show_verdicts(settings, groups, interval)
        return
    cluster = Cluster(settings)
    if watch:
        watch_until_interrupted(settings, lambda: _show_lag(settings, cluster, groups, by_partition), interval)
    _show_lag(settings, cluster, groups, by_partition)


def _show_lag(settings: Settings, cluster: Cluster, groups: tuple[str, ...], by_partition: bool) -> None:
    names = groups or tuple(group.group_id for group in all_groups(cluster))
    data: list[Any] = []
    for name, described in describe_groups(cluster, names).items():
        data += _lag_rows(name, _name(described.state), positions_of(cluster, name, described), by_partition)
    show(settings, data, lambda: _lag_lines(data, by_partition))


def _lag_lines(data: list[dict[str, Any]], by_partition: bool) -> Iterable[str]:
    if not data:
        return ["no group has committed anything"]
    headings = ["GROUP", "STATE", "TOPIC", *(["PARTITION"] if by_partition else []), "LAG"]
    if any(description.get("partitions_without_commit") for description in data):
        headings.append("PARTITIONS WITHOUT COMMIT")
    return table(headings, [list(description.values())[: len(headings)] for description in data])


def _lag_rows(group: str, state: str, positions: list[Committed], by_partition: bool) -> list[dict[str, Any]]:
    common = {"group": group, "state": state}
    if by_partition:
        return [
            {**common, "topic": position.topic, "partition": position.partition, "lag": position.lag}
            for position in positions
        ]
    by_topic: dict[str, list[Committed]] = {}
    for position in positions:
        by_topic.setdefault(position.topic, []).append(position)
    return [
        {**common, "topic": topic, "lag": total_lag(found), "partitions_without_commit": without_commit(found)}
        for topic, found in by_topic.items()
    ]
