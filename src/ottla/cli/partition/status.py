"""`ottla partition status`: what is being moved, and how far it is."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any

import click

from ottla.cli.connection import Cluster
from ottla.cli.output import human_bytes, notice, plural, show, table
from ottla.cli.partition import throttles
from ottla.cli.partition.names import listed
from ottla.cli.settings import Settings, at_least, command
from ottla.cli.txn.show import cluster_of
from ottla.cli.watch import interval_option, watch_option, watch_until_interrupted
from ottla.client.admin.reassignments import Reassignment, ReplicaSizes, list_reassignments, replica_bytes
from ottla.client.cluster import ClusterClient
from ottla.common.errors import OttlaError
from ottla.common.ids import TopicPartition

LOOK_S = 0.2


@command("status")
@watch_option
@interval_option
@click.option("--wait", "wait_s", type=at_least(0.0), metavar="SECONDS", help="Wait until nothing is being moved.")
@click.option("--remove-throttles", is_flag=True, help="Take away the throttles of moves; not while any is under way.")
def status(settings: Settings, watch: bool, interval: float, wait_s: float | None, remove_throttles: bool) -> None:
    """Partitions that are being moved to other brokers, and how far each new replica is.

    That is by bytes, against the largest replica that was there before: a guess where logs are compacted or retention
    is at work.
    """
    with cluster_of(settings) as client:
        if watch:
            watch_until_interrupted(settings, lambda: _show(settings, client), interval)
        if wait_s is not None:
            await_none(client, None, wait_s)
        if remove_throttles:
            if list_reassignments(client):
                raise OttlaError("partitions are still being moved: take their throttles away when that is done.")
            _remove_throttles(settings)
        _show(settings, client)


def _remove_throttles(settings: Settings) -> None:
    cluster = Cluster(settings)
    found = cluster.all_topics()
    had = throttles.remove_throttles(cluster, found.topics, found.brokers)
    notice(f"throttles removed: {', '.join(had)}" if had else "there are no throttles")


def await_none(client: ClusterClient, partitions: Collection[TopicPartition] | None, wait_s: float) -> None:
    """Until none of these, or with None nothing at all, is being moved any more."""
    deadline = time.monotonic() + wait_s
    while left := [one for one in list_reassignments(client) if partitions is None or one.partition in partitions]:
        if time.monotonic() > deadline:
            raise OttlaError(
                f"{plural(len(left), 'partition')} not moved after {wait_s:g} s: see `ottla partition status`."
            )
        time.sleep(LOOK_S)


def _show(settings: Settings, client: ClusterClient) -> None:
    found = list_reassignments(client)
    brokers = sorted({replica for one in found for replica in one.replicas})
    told = replica_bytes(client, [one.partition for one in found], brokers)
    data: list[Any] = [_row(one, told) for one in found]
    show(settings, data, lambda: _lines(data))
    for broker, why in told.silent.items():
        notice(f"broker {broker} does not say how large its replicas are: {why}", "yellow")


def _row(one: Reassignment, told: ReplicaSizes) -> dict[str, Any]:
    """`bytes` is null where nobody says it; whose fault that is, `silent` tells."""
    there = [replica for replica in one.replicas if replica not in one.adding]
    known = [told.sizes.get((one.partition, replica), 0) for replica in there if replica not in told.silent]
    return {
        "topic": one.partition.topic,
        "partition": one.partition.partition,
        "replicas": there,
        "to": list(one.target),
        "bytes": max(known, default=None),
        "adding": [{"broker": replica, "bytes": told.sizes.get((one.partition, replica))} for replica in one.adding],
        "silent": [replica for replica in one.replicas if replica in told.silent],
    }


def _lines(data: list[dict[str, Any]]) -> list[str]:
    if not data:
        return ["nothing is being moved"]
    rows = [
        (
            row["topic"],
            row["partition"],
            listed(row["replicas"]),
            listed(row["to"]),
            "?" if row["bytes"] is None else human_bytes(row["bytes"]),
            ", ".join(f"broker {one['broker']}: {_share(one, row)}" for one in row["adding"]) or "-",
        )
        for row in data
    ]
    return table(["TOPIC", "PARTITION", "REPLICAS", "TO", "SIZE", "NEW REPLICAS"], rows)


def _share(new: dict[str, Any], row: dict[str, Any]) -> str:
    have, whole = new["bytes"], row["bytes"]
    if new["broker"] in row["silent"]:
        return "does not answer"
    if have is None:
        return "not there"
    if whole is None:
        return human_bytes(have)
    return f"{100 if not whole else min(100, have * 100 // whole)} %"
