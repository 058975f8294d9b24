"""`ottla group seek` and `delete`. A seek is computed for every partition, shown, and made only when agreed to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

from ottla.cli.connection import ANSWER_S_MAX, Cluster
from ottla.cli.given import GivenName
from ottla.cli.group.group_offsets import committed_offsets, describe_groups, existing
from ottla.cli.name_completion import complete_group, complete_topic
from ottla.cli.output import Planned, confirm, plural, show, table
from ottla.cli.records.positions import Bounds, Partition, log_bounds, parse_position, resolve
from ottla.cli.settings import Settings, command
from ottla.common.errors import OttlaError

SHIFT = re.compile(r"[+-]\d+", re.ASCII)


@command("seek", changes=True, asks=True)
@click.argument("group", type=GivenName(), shell_complete=complete_group)
@click.option("--to", "to", required=True, metavar="WHERE", help="start, end, N, @TIME, or +N / -N from where it is.")
@click.option(
    "-t",
    "--topic",
    "topics",
    multiple=True,
    metavar="TOPIC[:P,...]",
    help="Only this topic (and partitions); repeatable. Needed for topics the group has not committed.",
    shell_complete=complete_topic,
)
def seek(settings: Settings, group: str, to: str, topics: tuple[str, ...]) -> None:
    """Move the committed offsets of GROUP; its consumers must be stopped.

    \b
      ottla group seek billing --to start
      ottla group seek billing --to @-2h --dry-run
      ottla group seek billing --to -100 -t orders:0,1 -y
    """
    shift = int(to) if SHIFT.fullmatch(to) else None
    position = None if shift is not None else parse_position(to, "--to")
    cluster = Cluster(settings)
    cluster.reach()
    committed = committed_offsets(cluster, group)
    partitions = _choose(cluster, group, committed, topics)
    if not settings.dry_run:
        _require_stopped(cluster, group, committed)
    bounds = log_bounds(cluster, partitions)
    if position is not None:
        targets = resolve(cluster, bounds, position)
    else:
        assert shift is not None
        targets = {
            partition: _shifted(group, partition, committed, bounds[partition], shift) for partition in partitions
        }
    _plan_and_move(settings, cluster, group, committed, targets)


def _choose(cluster: Cluster, group: str, committed: Mapping[Partition, int], topics: Iterable[str]) -> list[Partition]:
    """The partitions to move: those named, or all that the group has committed and that still exist."""
    if not topics:
        if not committed:
            raise OttlaError(f"group '{group}' has committed nothing: name the topics with -t TOPIC.")
        return existing(cluster, sorted(committed))
    chosen: list[Partition] = []
    for text in topics:
        topic, colon, listed = text.partition(":")
        present = {partition.id for partition in cluster.topics([topic])[topic].partitions}
        if colon and not re.fullmatch(r"\d+(,\d+)*", listed, re.ASCII):
            raise click.UsageError(f"-t takes TOPIC or TOPIC:0,1,2, not '{text}'.")
        wanted = {int(number) for number in listed.split(",")} if colon else present
        if absent := wanted - present:
            raise OttlaError(f"topic '{topic}' has no partition {min(absent)}: it has 0 to {max(present)}.")
        chosen += [(topic, index) for index in sorted(wanted)]
    return chosen


def _require_stopped(cluster: Cluster, group: str, committed: Mapping[Partition, int]) -> None:
    """Kafka refuses commits from outside while members are there; say so before asking any question."""
    if not committed:
        return  # a group may be made by seeking it
    require_no_members(group, describe_groups(cluster, [group])[group].members)


def require_no_members(group: str, members: Sequence[Any]) -> None:
    if members:
        raise OttlaError(f"group '{group}' has {plural(len(members), 'active member')}: stop its consumers first.")


def _shifted(group: str, partition: Partition, committed: Mapping[Partition, int], bounds: Bounds, shift: int) -> int:
    if partition not in committed:
        raise OttlaError(
            f"group '{group}' has no commit for {partition[0]}-{partition[1]} that +N or -N could count from."
        )
    return min(max(committed[partition] + shift, bounds.start), bounds.end)


def _plan_and_move(
    settings: Settings,
    cluster: Cluster,
    group: str,
    committed: Mapping[Partition, int],
    targets: Mapping[Partition, int],
) -> None:
    moves = [
        (*partition, committed.get(partition), target)
        for partition, target in targets.items()
        if committed.get(partition) != target
    ]
    rows = [(t, p, old, new, None if old is None else f"{new - old:+d}") for t, p, old, new in moves]
    planned = Planned(
        settings,
        data=[
            {"group": group, "topic": t, "partition": p, "committed_offset": old, "new_offset": new}
            for t, p, old, new in moves
        ],
        lines=table(["TOPIC", "PARTITION", "FROM", "TO", "CHANGE"], rows),
    )
    what = plural(len(moves), "partition")
    if planned.agreed(f"move {group} in {what}?", nothing=f"nothing to move: group '{group}' is at that place already"):
        commit_offsets(cluster, group, {(topic, index): new for topic, index, _, new in moves})
        planned.done(f"moved {group} in {what}")


def commit_offsets(cluster: Cluster, group: str, offsets: Mapping[Partition, int]) -> None:
    from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

    wanted = [TopicPartition(topic, index, offset) for (topic, index), offset in offsets.items()]
    answers = cluster.admin.alter_consumer_group_offsets(
        [ConsumerGroupTopicPartitions(group, wanted)], request_timeout=ANSWER_S_MAX
    )
    for partition in cluster.wait_about(f"group '{group}'", answers[group]).topic_partitions:
        if partition.error is not None:
            raise OttlaError(f"{partition.topic}-{partition.partition}: {partition.error.str()}.")


# -- delete --------------------------------------------------------------------------------------------------------


@command("delete", changes=True, asks=True)
@click.argument("groups", nargs=-1, required=True, metavar="GROUP...", type=GivenName(), shell_complete=complete_group)
def delete(settings: Settings, groups: tuple[str, ...]) -> None:
    """Delete groups and their committed offsets; their consumers must be stopped."""

    cluster = Cluster(settings)
    described = describe_groups(cluster, groups)
    for name, group in described.items():
        require_no_members(name, group.members)
    names = list(described)
    if not settings.dry_run:
        confirm(settings, f"delete {', '.join(names)} and the committed offsets?")
        for name, answer in cluster.admin.delete_consumer_groups(names, request_timeout=ANSWER_S_MAX).items():
            cluster.wait_about(f"group '{name}'", answer)
    data: Any = [{"name": name, "deleted": not settings.dry_run} for name in names]
    verb = "would delete" if settings.dry_run else "deleted"
    show(settings, data, lambda: [f"{verb} {name}" for name in names])
