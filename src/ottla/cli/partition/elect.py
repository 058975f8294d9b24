"""`ottla partition elect`: leaders by hand."""

from __future__ import annotations

from typing import Any

import click

from ottla.cli.connection import Cluster
from ottla.cli.name_completion import complete_topic
from ottla.cli.output import Planned, plural, table
from ottla.cli.partition.names import chosen_partitions, listed
from ottla.cli.settings import Settings, command
from ottla.cli.txn.show import cluster_of
from ottla.client.admin.elections import elect_leaders
from ottla.common.errors import OttlaError
from ottla.common.ids import TopicPartition


@command("elect", changes=True, asks=True)
@click.argument("partitions", nargs=-1, metavar="[TOPIC[:PARTITION]]...", shell_complete=complete_topic)
@click.option("--unclean", is_flag=True, help="Where nobody leads, also a replica that may lack records; asks first.")
def elect(settings: Settings, partitions: tuple[str, ...], unclean: bool) -> None:
    """Elect the preferred leader, the first replica, of these partitions, or of all.

    With --unclean, partitions that have no leader and no replica in sync get any replica that is there: records that
    only the others have are lost for good.

    \b
      ottla partition elect                     # after a broker came back
      ottla partition elect orders
      ottla partition elect orders:3 --unclean
    """
    if unclean and not partitions:
        raise click.UsageError("--unclean loses records: name the partitions.")
    cluster = Cluster(settings)
    names = partitions or sorted(cluster.all_topics().topics)
    chosen = chosen_partitions(cluster, names) if names else {}
    leaders = _leaders(cluster, {partition.topic for partition in chosen})
    wanted = {
        partition: replicas
        for partition, replicas in chosen.items()
        if (leaders[partition] is None if unclean else replicas and leaders[partition] != replicas[0])
    }
    data: list[Any] = [
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "leader": leaders[partition],
            "preferred": replicas[0] if replicas else None,
            "replicas": replicas,
        }
        for partition, replicas in wanted.items()
    ]
    rows = [(row["topic"], row["partition"], row["leader"], row["preferred"], listed(row["replicas"])) for row in data]
    planned = Planned(settings, data, table(["TOPIC", "PARTITION", "LEADER", "PREFERRED", "REPLICAS"], rows))
    nothing = "every one of them has a leader" if unclean else "every one of them is led by its first replica"
    settings.yes = settings.yes or not unclean
    question = f"elect a leader of {plural(len(wanted), 'partition')} at the price of lost records?"
    if planned.agreed(question, nothing):
        _elect(settings, list(wanted), unclean)
        planned.done(f"elected leaders of {plural(len(wanted), 'partition')}")


def _leaders(cluster: Cluster, topics: set[str]) -> dict[TopicPartition, int | None]:
    return {
        TopicPartition(name, one.id): None if one.leader is None or one.leader.id < 0 else one.leader.id
        for name, topic in (cluster.topics(sorted(topics)) if topics else {}).items()
        for one in topic.partitions
    }


def _elect(settings: Settings, partitions: list[TopicPartition], unclean: bool) -> None:
    with cluster_of(settings) as client:
        refused = elect_leaders(client, partitions, unclean=unclean)
    if refused:
        shown = "; ".join(f"{partition}: {why.rstrip('.')}" for partition, why in sorted(refused.items())[:3])
        raise OttlaError(f"{plural(len(refused), 'partition')} got no new leader: {shown}.")
