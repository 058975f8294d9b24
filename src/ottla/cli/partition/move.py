"""`ottla partition move`: other replicas for partitions; the cluster copies first and takes away afterwards."""

from __future__ import annotations

from typing import Any

import click

from ottla.cli.connection import Cluster
from ottla.cli.name_completion import complete_topic
from ottla.cli.output import plural, show, table
from ottla.cli.partition.names import chosen_partitions, listed, numbers
from ottla.cli.partition.status import await_none
from ottla.cli.partition.throttles import remove_throttles, set_throttles
from ottla.cli.settings import INT64_MAX, Settings, at_least, command
from ottla.cli.txn.show import cluster_of
from ottla.client.admin.reassignments import alter_reassignments, list_reassignments
from ottla.common.errors import OttlaError


@command("move", changes=True)
@click.argument("partitions", nargs=-1, required=True, metavar="TOPIC[:PARTITION]...", shell_complete=complete_topic)
@click.option("--to", metavar="ID,...", help="The brokers that should have them, the preferred leader first.")
@click.option("--cancel", is_flag=True, help="Stop a move that is under way, and go back.")
@click.option("--wait", "wait_s", type=at_least(0.0), metavar="SECONDS", help="Wait until they have moved.")
@click.option(
    "--throttle",
    "bytes_per_second",
    type=at_least(1, INT64_MAX),
    metavar="BYTES",
    help="Copy no faster than so many bytes per second; with --wait the throttle ends with the move.",
)
def move(
    settings: Settings,
    partitions: tuple[str, ...],
    to: str | None,
    cancel: bool,
    wait_s: float | None,
    bytes_per_second: int | None,
) -> None:
    """Move partitions to other brokers, or change how many replicas they have.

    The new replicas are filled first; the old ones go when all new ones are in sync. `ottla partition status` shows how
    far that is.

    \b
      ottla partition move orders:0 --to 1,2,3
      ottla partition move orders:0,1,2 --to 4,5,6 --wait 600
      ottla partition move orders --to 4,5,6 --throttle 10000000 --wait 3600
      ottla partition move orders:0 --cancel

    A throttle holds back replicas that are not in sync, and nothing else. Without --wait it stays until `ottla
    partition status --remove-throttles`.
    """
    if (to is None) == (not cancel):
        raise click.UsageError("say where to with --to ID,..., or --cancel.")
    if cancel and bytes_per_second is not None:
        raise click.UsageError("--throttle goes with --to: what is cancelled copies nothing.")
    wanted = None if to is None else numbers(to, f"--to takes ids of brokers, such as 1,2,3, not '{to}'.")
    cluster = Cluster(settings)
    chosen = chosen_partitions(cluster, partitions)
    with cluster_of(settings) as client:
        if wanted is None:
            under_way = {one.partition for one in list_reassignments(client)}
            for partition in chosen.keys() - under_way:
                raise OttlaError(f"partition {partition} is not being moved: see `ottla partition status`.")
        if wanted is not None and bytes_per_second is not None and not settings.dry_run:
            set_throttles(cluster, chosen, wanted, bytes_per_second)
        refused = {} if settings.dry_run else alter_reassignments(client, dict.fromkeys(chosen, wanted))
        data: list[Any] = [
            {
                "topic": partition.topic,
                "partition": partition.partition,
                "replicas": replicas,
                "to": wanted,
                "problem": refused.get(partition),
            }
            for partition, replicas in chosen.items()
        ]
        if refused and len(refused) == len(chosen) == 1:
            ((partition, why),) = refused.items()
            raise OttlaError(f"partition {partition}: {why.rstrip('.')}.")
        show(settings, data, lambda: _lines(data, settings.dry_run))
        if refused:
            raise OttlaError(f"{plural(len(refused), 'partition')} of {len(chosen)} cannot be moved that way.")
        if wait_s is not None and not settings.dry_run:
            await_none(client, set(chosen), wait_s)
            if wanted is not None and bytes_per_second is not None:
                brokers = {*wanted, *(broker for replicas in chosen.values() for broker in replicas)}
                remove_throttles(cluster, {partition.topic for partition in chosen}, brokers)


def _lines(data: list[dict[str, Any]], is_dry_run: bool) -> list[str]:
    rows = [
        (
            row["topic"],
            row["partition"],
            listed(row["replicas"]),
            "cancelled" if row["to"] is None else listed(row["to"]),
            row["problem"] or ("would move" if is_dry_run else "moving" if row["to"] is not None else "goes back"),
        )
        for row in data
    ]
    return table(["TOPIC", "PARTITION", "REPLICAS", "TO", "STATE"], rows)
