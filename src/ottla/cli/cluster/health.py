"""`ottla cluster health`: whether every record is where it should be, and could be written."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import click

from ottla.cli.config_entries import fetch_entries
from ottla.cli.connection import Cluster
from ottla.cli.output import facts, human_bytes, paint, show
from ottla.cli.settings import Settings, at_least, command
from ottla.cli.txn.show import cluster_of
from ottla.cli.watch import interval_option, watch_option, watch_until_interrupted
from ottla.client.admin.log_dirs import LogDir, describe_log_dirs
from ottla.client.admin.quorum import is_cut_off
from ottla.common.errors import OttlaError

RETRY_S = 0.25
Place = tuple[str, int]  # topic and partition


@command("health")
@watch_option
@interval_option
@click.option("--wait", "wait_s", type=at_least(0.0), metavar="SECONDS", help="Wait until it is healthy.")
def health(settings: Settings, watch: bool, interval: float, wait_s: float | None) -> None:
    """Whether every partition has a leader and all its replicas in sync, no broker is missing or cut off from the
    cluster's metadata, and every disk takes writes; exit status 1 when not.

    Below min ISR, a produce with acks=all is refused (min.insync.replicas); at min ISR, it would be after one more
    failure.
    """
    if watch:
        reached = Cluster(settings)
        watch_until_interrupted(settings, lambda: _show_health(settings, _look(settings, reached)), interval)
    data = _look_until_healthy(settings, wait_s or 0)
    _show_health(settings, data)
    if not data["healthy"]:
        sys.exit(1)


def _look_until_healthy(settings: Settings, wait_s: float) -> dict[str, Any]:
    """Waits for a broker that is not up yet as well as for partitions that are not."""
    deadline = time.monotonic() + wait_s
    while True:
        try:
            data = _look(settings, Cluster(settings))
            if data["healthy"] or time.monotonic() > deadline:
                return data
        except OttlaError:
            if time.monotonic() > deadline:
                raise
        time.sleep(RETRY_S)


def _look(settings: Settings, reached: Cluster) -> dict[str, Any]:
    described = reached.reach()
    partitions = {
        (name, index): partition
        for name, topic in reached.all_topics().topics.items()
        for index, partition in topic.partitions.items()
    }
    leaderless = {place for place, partition in partitions.items() if partition.leader < 0}
    under = {place for place, partition in partitions.items() if len(partition.isrs) < len(partition.replicas)}
    below, at = _short_of_replicas(reached, {place: partitions[place] for place in under})
    absent = {node for partition in partitions.values() for node in partition.replicas} - {
        node.id for node in described.nodes
    }
    log_dirs, cut_off, untold = _ask_brokers(settings, sorted(node.id for node in described.nodes))
    ill = [log_dir for log_dir in log_dirs if log_dir.problem is not None]
    return {
        "healthy": not (leaderless or under or absent or cut_off or ill) and described.controller is not None,
        "controller": described.controller.id if described.controller is not None else None,
        "brokers": sorted(node.id for node in described.nodes),
        "missing_brokers": sorted(absent),
        "cut_off_brokers": cut_off,
        "partitions": len(partitions),
        "leaderless_partitions": _listed(leaderless),
        "under_replicated_partitions": _listed(under),
        "under_min_isr_partitions": _listed(below),
        "at_min_isr_partitions": _listed(at),
        "log_dirs": [asdict(log_dir) for log_dir in log_dirs],
        "log_dirs_unknown": untold,
    }


def _short_of_replicas(reached: Cluster, under: dict[Place, Any]) -> tuple[set[Place], set[Place]]:
    """Of those that lack a replica: where acks=all is refused, and where it is after one more failure."""
    topics = sorted({topic for topic, _ in under})
    least = {
        topic: int(entry["value"])
        for topic, entries in (fetch_entries(reached, "topic", topics) if topics else {}).items()
        for entry in entries
        if entry["name"] == "min.insync.replicas"
    }
    spare = {
        (topic, index): len(partition.isrs) - min(least.get(topic, 1), len(partition.replicas))
        for (topic, index), partition in under.items()
    }
    below = {place for place, count in spare.items() if count < 0}
    return below, {place for place, count in spare.items() if count == 0}


def _listed(places: Iterable[Place]) -> list[str]:
    return [f"{topic}-{index}" for topic, index in sorted(places)]


def _ask_brokers(settings: Settings, brokers: list[int]) -> tuple[list[LogDir], list[int], dict[str, str]]:
    """Log directories, and who is cut off from the metadata; and why others do not tell: that alone is no illness."""
    found: list[LogDir] = []
    cut_off: list[int] = []
    untold: dict[str, str] = {}
    for broker in brokers:
        try:
            with cluster_of(settings) as client:
                found += describe_log_dirs(client, broker)
                if is_cut_off(client, broker):
                    cut_off.append(broker)
        except (OttlaError, OSError) as error:
            untold[str(broker)] = str(error).rstrip(".")
    return found, cut_off, untold


def _show_health(settings: Settings, data: dict[str, Any]) -> None:
    show(settings, data, lambda: _health_lines(data))


def _health_lines(data: dict[str, Any]) -> Iterable[str]:
    verdict = paint("healthy", "green", bold=True) if data["healthy"] else paint("unhealthy", "red", bold=True)
    yield from facts(
        [
            ("cluster", verdict),
            ("controller", data["controller"]),
            ("brokers", _names(data["brokers"])),
            ("missing brokers", _names(data["missing_brokers"])),
            ("partitions", data["partitions"]),
            ("without leader", _names(data["leaderless_partitions"])),
            ("under-replicated", _names(data["under_replicated_partitions"])),
            ("below min ISR", _names(data["under_min_isr_partitions"])),
            ("at min ISR", _names(data["at_min_isr_partitions"])),
            ("log directories", _log_dirs_in_short(data["log_dirs"])),
        ]
    )
    if data["cut_off_brokers"]:
        yield (
            f"broker {_names(data['cut_off_brokers'])}: {paint('cut off from the metadata', 'red')} (ZooKeeper, or the "
            "quorum): records are written and read, but nothing can be changed"
        )
    for log_dir in data["log_dirs"]:
        if log_dir["problem"] is not None:
            problem = paint(log_dir["problem"], "red")
            yield f"broker {log_dir['broker']}: {log_dir['path']} {problem}{_room(log_dir)}; see its log"
    for broker, why in data["log_dirs_unknown"].items():
        yield f"broker {broker}: how it is cannot be told: {why}"


def _log_dirs_in_short(log_dirs: list[dict[str, Any]]) -> str:
    if not log_dirs:
        return "not known"
    if ill := sum(log_dir["problem"] is not None for log_dir in log_dirs):
        return f"{ill} of {len(log_dirs)} with a problem"
    told = [log_dir for log_dir in log_dirs if log_dir["usable_bytes"] is not None]
    fullest = min(told, key=lambda log_dir: int(log_dir["usable_bytes"]), default=log_dirs[0])
    return f"{len(log_dirs)}{_room(fullest)}"


def _room(log_dir: dict[str, Any]) -> str:
    if log_dir["usable_bytes"] is None:
        return ""
    return f", {human_bytes(log_dir['usable_bytes'])} free of {human_bytes(log_dir['total_bytes'])}"


def _names(items: list[Any], shown_max: int = 10) -> str:
    if not items:
        return "none"
    more = f", and {len(items) - shown_max} more" if len(items) > shown_max else ""
    return ", ".join(map(str, items[:shown_max])) + more
