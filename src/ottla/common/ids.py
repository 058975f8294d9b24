"""Domain words for ids, so that signatures explain themselves."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import NamedTuple, NewType, TypeVar

T = TypeVar("T")

# Topic ids travel and are kept as 16 raw bytes.
TopicId = NewType("TopicId", bytes)

ZERO_TOPIC_ID = TopicId(bytes(16))


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def by_topic(rows: Iterable[tuple[TopicPartition, T]]) -> dict[str, list[T]]:
    """What belongs to partitions, as most requests want it: topic by topic."""
    grouped: dict[str, list[T]] = {}
    for partition, row in rows:
        grouped.setdefault(partition.topic, []).append(row)
    return grouped


def partitions_by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    grouped: dict[str, list[int]] = {}
    for topic, partition in partitions:
        grouped.setdefault(topic, []).append(partition)
    return grouped


def topic_id_text(topic_id: TopicId) -> str:
    """Kafka's text form: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(topic_id).rstrip(b"=").decode()


def topic_id_from_text(text: str) -> TopicId:
    raw = base64.urlsafe_b64decode(text + "==")
    if len(raw) != 16:
        raise ValueError(f"{text!r} is not a topic id")
    return TopicId(raw)
