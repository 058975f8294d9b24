"""`ottla topic list`, `describe` and `offsets`: what is there."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable
from typing import Any

import click

from ottla.cli.config_entries import fetch_entries, human_value
from ottla.cli.connection import Cluster
from ottla.cli.name_completion import complete_topic
from ottla.cli.output import facts, show, table
from ottla.cli.records.positions import Bounds, Partition, known_bounds, log_bounds, offsets_at_time
from ottla.cli.settings import Settings, command, partition_option
from ottla.common.moments import parse_time

OFFSETS_S_MAX = 2.0  # for those of a leader that has just been elected


@command("list")
@click.argument("patterns", nargs=-1, metavar="[PATTERN]...", shell_complete=complete_topic)
@click.option("-i", "--internal", is_flag=True, help="Internal topics too (those that begin with '__').")
@click.option("--under-replicated", is_flag=True, help="Only topics with replicas that are not in sync.")
@click.option("--unavailable", is_flag=True, help="Only topics with partitions without a leader.")
def list_topics(
    settings: Settings, patterns: tuple[str, ...], internal: bool, under_replicated: bool, unavailable: bool
) -> None:
    """List topics, all or those that match a PATTERN such as 'orders-*'."""
    found = [_summary(topic) for name, topic in sorted(Cluster(settings).all_topics().topics.items())]
    chosen = [
        topic
        for topic in found
        if (internal or not topic["internal"])
        and (not patterns or any(fnmatch.fnmatchcase(topic["name"], pattern) for pattern in patterns))
        and (not under_replicated or topic["under_replicated"])
        and (not unavailable or topic["unavailable"])
    ]
    show(settings, chosen, lambda: _list_lines(chosen, narrowed=bool(patterns or under_replicated or unavailable)))


def _summary(topic: Any) -> dict[str, Any]:
    partitions = topic.partitions.values()
    return {
        "name": topic.topic,
        "partitions": len(partitions),
        "replication_factor": max((len(partition.replicas) for partition in partitions), default=0),
        "internal": topic.topic.startswith("__"),
        "under_replicated": sum(len(partition.isrs) < len(partition.replicas) for partition in partitions),
        "unavailable": sum(partition.leader < 0 for partition in partitions),
    }


def _list_lines(topics: list[dict[str, Any]], narrowed: bool) -> Iterable[str]:
    if not topics:
        return ["no such topic" if narrowed else "no topics yet: create one with `ottla topic create NAME`"]
    headings = ["TOPIC", "PARTITIONS", "REPLICAS"]
    columns = ["name", "partitions", "replication_factor"]
    for column, heading in (("under_replicated", "UNDER-REPLICATED"), ("unavailable", "UNAVAILABLE")):
        if any(topic[column] for topic in topics):
            headings.append(heading)
            columns.append(column)
    return table(headings, [[topic[column] for column in columns] for topic in topics])


# -- describe ------------------------------------------------------------------------------------------------------


@command("describe")
@click.argument("topics", nargs=-1, metavar="TOPIC...", shell_complete=complete_topic)
@click.option("-a", "--all-settings", is_flag=True, help="Defaults too, not only what was set on the topic.")
@click.option(
    "--under-replicated", is_flag=True, help="Only partitions with replicas out of sync, of all topics or these."
)
@click.option("--unavailable", is_flag=True, help="Only partitions without a leader, of all topics or these.")
def describe(
    settings: Settings, topics: tuple[str, ...], all_settings: bool, under_replicated: bool, unavailable: bool
) -> None:
    """Settings, partitions, replicas and offsets of topics."""
    cluster = Cluster(settings)
    if under_replicated or unavailable:
        ill = _ill_partitions(cluster, topics, under_replicated, unavailable)
        show(settings, ill, lambda: _ill_lines(ill))
        return
    if not topics:
        raise click.UsageError("name topics, or ask for --under-replicated or --unavailable ones of all.")
    described = cluster.topics(topics)
    bounds = _bounds_where_led(cluster, described)
    entries = fetch_entries(cluster, "topic", list(described))
    data: list[Any] = []
    for name, topic in described.items():
        kept = [entry for entry in entries[name] if all_settings or entry["source"] == "topic"]
        data.append(_description(topic, kept, bounds))
    show(settings, data, lambda: [line for row in data for line in _description_lines(row)])


def _ill_partitions(cluster: Cluster, topics: tuple[str, ...], under_replicated: bool, unavailable: bool) -> list[Any]:
    names = topics or sorted(cluster.all_topics().topics)
    return [
        {"topic": name, **row}
        for name, topic in (cluster.topics(names) if names else {}).items()
        for partition in topic.partitions
        for row in [_partition(name, partition, {})]
        if (under_replicated and len(row["isr"]) < len(row["replicas"])) or (unavailable and row["leader"] is None)
    ]


def _ill_lines(rows: list[dict[str, Any]]) -> list[str]:
    if not rows:
        return ["none"]
    return table(
        ["TOPIC", "PARTITION", "LEADER", "REPLICAS", "ISR"],
        [(row["topic"], row["partition"], row["leader"], _ids(row["replicas"]), _ids(row["isr"])) for row in rows],
    )


def _bounds_where_led(cluster: Cluster, described: dict[str, Any]) -> dict[Partition, Bounds]:
    """Offsets of partitions that have a leader that tells; the others are shown without."""
    led = [
        (name, p.id) for name, topic in described.items() for p in topic.partitions if _leader(p) is not None and p.isr
    ]
    return known_bounds(cluster, led, OFFSETS_S_MAX)


def _description(topic: Any, entries: list[dict[str, Any]], bounds: dict[Partition, Bounds]) -> dict[str, Any]:
    return {
        "name": topic.name,
        "id": _topic_id(topic.topic_id),
        "internal": topic.is_internal,
        "replication_factor": max((len(partition.replicas) for partition in topic.partitions), default=0),
        "settings": {entry["name"]: entry["value"] for entry in entries},
        "partitions": [_partition(topic.name, partition, bounds) for partition in topic.partitions],
    }


def _topic_id(topic_id: Any) -> str | None:
    """Written as Kafka writes it: base64 for addresses, where librdkafka uses the common alphabet."""
    return None if topic_id is None else str(topic_id).replace("+", "-").replace("/", "_")


def _partition(topic: str, partition: Any, bounds: dict[Partition, Bounds]) -> dict[str, Any]:
    bound = bounds.get((topic, partition.id))
    return {
        "partition": partition.id,
        "leader": _leader(partition),
        "replicas": [node.id for node in partition.replicas],
        "isr": [node.id for node in partition.isr],
        "start_offset": None if bound is None else bound.start,
        "end_offset": None if bound is None else bound.end,
    }


def _leader(partition: Any) -> int | None:
    """librdkafka says None or -1 where there is none."""
    return None if partition.leader is None or partition.leader.id < 0 else int(partition.leader.id)


def _description_lines(topic: dict[str, Any]) -> Iterable[str]:
    partitions = topic["partitions"]
    yield from facts(
        [
            ("topic", topic["name"]),
            ("id", topic["id"]),
            ("partitions", len(partitions)),
            ("replicas", topic["replication_factor"]),
            ("records", _record_count(partitions)),
        ]
    )
    if topic["settings"]:
        yield ""
        yield from table(["SETTING", "VALUE"], [(name, human_value(name, v)) for name, v in topic["settings"].items()])
    yield ""
    rows = [
        (p["partition"], p["leader"], _ids(p["replicas"]), _ids(p["isr"]), p["start_offset"], p["end_offset"])
        for p in partitions
    ]
    yield from table(["PARTITION", "LEADER", "REPLICAS", "ISR", "START", "END"], rows)
    yield ""


def _record_count(partitions: list[dict[str, Any]]) -> str:
    """By offsets, so an upper limit: compaction leaves gaps, and transaction markers take offsets too."""
    counted = sum(p["end_offset"] - p["start_offset"] for p in partitions if p["end_offset"] is not None)
    return f"at most {counted:,}" if counted else "0"


def _ids(ids: list[int]) -> str:
    return ",".join(map(str, ids))


# -- offsets -------------------------------------------------------------------------------------------------------


@command("offsets")
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...", shell_complete=complete_topic)
@partition_option
@click.option("--at", metavar="TIME", help="Also the first offset at or after TIME: -15m, 2026-01-31T12:00, epoch ms.")
def offsets(settings: Settings, topics: tuple[str, ...], partitions: tuple[int, ...], at: str | None) -> None:
    """The first and the next offset of every partition.

    RECORDS (MAX) counts offsets: compaction leaves gaps, and transaction markers take offsets too.
    """
    at_ms = None if at is None else parse_time(at.removeprefix("@"))
    if at is not None and at_ms is None:
        raise click.UsageError(f"--at does not understand '{at}': write -15m, 2026-01-31T12:00 or epoch ms.")
    cluster = Cluster(settings)
    described = cluster.topics(topics)
    present = [(name, p.id) for name, topic in described.items() for p in topic.partitions]
    wanted = [(name, index) for name, index in present if not partitions or index in partitions]
    bounds = log_bounds(cluster, wanted)
    at_time = {} if at_ms is None else offsets_at_time(cluster, bounds, at_ms)
    data: list[Any] = [
        {
            "topic": topic,
            "partition": index,
            "start_offset": bound.start,
            "end_offset": bound.end,
            **({} if at_ms is None else {"offset_at_time": at_time[topic, index]}),
        }
        for (topic, index), bound in bounds.items()
    ]
    show(settings, data, lambda: _offset_lines(data, at_ms is not None))


def _offset_lines(data: list[dict[str, Any]], with_time: bool) -> Iterable[str]:
    headings = ["TOPIC", "PARTITION", "START", "END", "RECORDS (MAX)", *(["AT TIME"] if with_time else [])]
    rows = [
        [
            row["topic"],
            row["partition"],
            row["start_offset"],
            row["end_offset"],
            row["end_offset"] - row["start_offset"],
            *([row["offset_at_time"]] if with_time else []),
        ]
        for row in data
    ]
    return table(headings, rows)
