"""`TOPIC`, `TOPIC:3` and `TOPIC:0,1` on the command line: partitions that must exist."""

from __future__ import annotations

import re
from collections.abc import Iterable

import click

from ottla.cli.connection import Cluster
from ottla.cli.settings import INT32_MAX
from ottla.common.errors import OttlaError
from ottla.common.ids import TopicPartition


def chosen_partitions(cluster: Cluster, texts: Iterable[str]) -> dict[TopicPartition, list[int]]:
    """Those that the texts name, with the brokers that have them now; the first of these is the preferred leader."""
    asked = [_parse(text) for text in texts]
    described = cluster.topics([topic for topic, _ in asked])
    chosen: dict[TopicPartition, list[int]] = {}
    for topic, indexes in asked:
        replicas = {one.id: [node.id for node in one.replicas] for one in described[topic].partitions}
        for index in sorted(replicas) if indexes is None else indexes:
            if index not in replicas:
                raise OttlaError(f"topic '{topic}' has no partition {index}: it has {len(replicas)}, from 0.")
            chosen[TopicPartition(topic, index)] = replicas[index]
    return chosen


def _parse(text: str) -> tuple[str, list[int] | None]:
    topic, colon, rest = text.partition(":")
    if not colon:
        return topic, None
    return topic, numbers(rest, f"'{text}' names no partitions: write TOPIC:PARTITION, such as orders:0 or orders:0,1.")


def numbers(text: str, complaint: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch("[0-9]{1,10}", part) and int(part) <= INT32_MAX for part in parts):
        raise click.UsageError(complaint)
    return [int(part) for part in parts]


def listed(ids: Iterable[int]) -> str:
    return ",".join(map(str, ids))
