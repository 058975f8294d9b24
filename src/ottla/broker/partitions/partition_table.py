"""The table of the partitions this broker leads, of those that it follows, and of what else there is.

Lookups are by the bytes a request carries (UTF-8 name or raw topic id): the hot path decodes no strings.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ottla.broker.partitions.followed_partition import FollowedPartition
from ottla.broker.partitions.partition import Partition
from ottla.common.errors import ErrorCode
from ottla.metadata.image import PartitionImage, TopicImage

_TOPIC_ID_BYTES = 16
_NONE: dict[int, FollowedPartition] = {}


class Partitions:
    """All partitions by topic name, by topic id and by the raw bytes of either."""

    def __init__(self) -> None:
        self._by_key: dict[bytes, dict[int, Partition]] = {}
        self._by_name: dict[str, dict[int, Partition]] = {}
        self._followed: dict[bytes, dict[int, FollowedPartition]] = {}
        self._topics: dict[bytes, TopicImage] = {}
        # Replicas that should be here, and for which no directory has a log.
        self._offline: dict[bytes, Collection[int]] = {}

    # --- led here

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

    # --- followed here

    def get_followed(self, key: bytes, index: int) -> FollowedPartition | None:
        return self._followed.get(key, _NONE).get(index)

    def followed_of_topic(self, topic: str) -> list[FollowedPartition]:
        return list(self._followed.get(topic.encode(), _NONE).values())

    @property
    def followers(self) -> Iterator[FollowedPartition]:
        for topic_id, partitions in self._followed.items():
            if len(topic_id) == _TOPIC_ID_BYTES and topic_id == self._topics[topic_id].id:
                yield from partitions.values()

    # --- led elsewhere, or by nobody

    def image_of(self, key: bytes, index: int) -> PartitionImage | None:
        """What the cluster knows of a partition, whoever leads it."""
        topic = self._topics.get(key)
        return topic.partitions[index] if topic is not None and 0 <= index < len(topic.partitions) else None

    def error_for(self, topic: bytes | str, index: int, *, by_id: bool = False) -> ErrorCode:
        """Why a partition that is not led here cannot be served: there is none, its replica here is offline, or
        somebody else leads it."""
        key = topic.encode() if isinstance(topic, str) else topic
        if by_id and key not in self._topics:
            return ErrorCode.UNKNOWN_TOPIC_ID
        if self.image_of(key, index) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if index in self._offline.get(key, ()):
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NOT_LEADER_OR_FOLLOWER

    # --- changing

    def add_topic(
        self,
        topic: TopicImage,
        partitions: dict[int, Partition],
        followed: dict[int, FollowedPartition] | None = None,
        offline: Collection[int] = (),
    ) -> None:
        """Also one that is there already: then these take the place of those that were."""
        name = topic.name.encode()
        self._by_name[topic.name] = partitions
        self._by_key[name] = self._by_key[topic.id] = partitions
        self._followed[name] = self._followed[topic.id] = followed or {}
        self._topics[name] = self._topics[topic.id] = topic
        for key in (name, topic.id):
            if offline:
                self._offline[key] = offline
            else:
                self._offline.pop(key, None)

    def remove_topic(self, topic: TopicImage) -> None:
        name = topic.name.encode()
        removed = self._by_name.pop(topic.name, {})
        followed = self._followed.get(topic.id, _NONE)
        for key in (name, topic.id):
            self._by_key.pop(key, None)
            self._followed.pop(key, None)
            self._topics.pop(key, None)
            self._offline.pop(key, None)
        for partition in (*removed.values(), *followed.values()):
            partition.notify()  # parked fetches learn that the topic is gone

    def __iter__(self) -> Iterator[Partition]:
        for partitions in self._by_name.values():
            yield from partitions.values()

    def __len__(self) -> int:
        return sum(len(partitions) for partitions in self._by_name.values())
