"""The table of the partitions this broker leads: of a topic that may be some of them.

Lookups are by the bytes a request carries (UTF-8 name or raw topic id): the hot path decodes no strings.
"""

from __future__ import annotations

from collections.abc import Iterator

from ottla.broker.partitions.partition import Partition
from ottla.metadata.image import TopicImage


class Partitions:
    """All partitions by topic name, by topic id and by the raw bytes of either."""

    def __init__(self) -> None:
        self._by_key: dict[bytes, dict[int, Partition]] = {}
        self._by_name: dict[str, dict[int, Partition]] = {}

    def get(self, topic: str, index: int) -> Partition | None:
        found = self._by_name.get(topic)
        return found.get(index) if found is not None else None

    def get_by_key(self, key: bytes, index: int) -> Partition | None:
        """`key` is a name in UTF-8 or a topic id. Ids are random, so a name of 16 bytes is practically never one of
        them, and one table serves both."""
        found = self._by_key.get(key)
        return found.get(index) if found is not None else None

    def knows(self, key: bytes) -> bool:
        return key in self._by_key

    def of_topic(self, topic: str) -> list[Partition]:
        """Those that are led here."""
        return list(self._by_name.get(topic, {}).values())

    def add_topic(self, topic: TopicImage, partitions: dict[int, Partition]) -> None:
        self._by_name[topic.name] = partitions
        self._by_key[topic.name.encode()] = partitions
        self._by_key[topic.id] = partitions

    def remove_topic(self, topic: TopicImage) -> None:
        removed = self._by_name.pop(topic.name, {})
        self._by_key.pop(topic.name.encode(), None)
        self._by_key.pop(topic.id, None)
        for partition in removed.values():
            partition.notify()  # parked fetches learn that the topic is gone

    def __iter__(self) -> Iterator[Partition]:
        for partitions in self._by_name.values():
            yield from partitions.values()

    def __len__(self) -> int:
        return sum(len(partitions) for partitions in self._by_name.values())
