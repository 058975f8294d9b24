"""The table of the partitions this broker leads, of those that it follows, and of what else there is.

Lookups are by the bytes a request carries: the hot path decodes no strings. A request names a topic by its name or, in
later versions, by its id, and there is a table for each (`by_name`, `by_id`), because a name may have the bytes of an
id: found in one table, a topic of sixteen letters would be open to whoever sends its name in the place of an id, which
the authorizer knows nothing of.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ottla.broker.partitions.followed_partition import FollowedPartition
from ottla.broker.partitions.partition import Partition
from ottla.common.errors import ErrorCode
from ottla.common.ids import TopicId
from ottla.metadata.image import PartitionImage, TopicImage

_NONE: dict[int, FollowedPartition] = {}


class Keyed:
    """All partitions by one kind of key."""

    __slots__ = ("_followed", "_is_by_id", "_led", "_offline", "_topics")

    def __init__(self, *, by_id: bool) -> None:
        self._is_by_id = by_id
        self._led: dict[bytes, dict[int, Partition]] = {}
        self._followed: dict[bytes, dict[int, FollowedPartition]] = {}
        self._topics: dict[bytes, TopicImage] = {}
        # Replicas that should be here, and for which no directory has a log.
        self._offline: dict[bytes, Collection[int]] = {}

    def get(self, key: bytes, index: int) -> Partition | None:
        """Led here."""
        found = self._led.get(key)
        return found.get(index) if found is not None else None

    def get_followed(self, key: bytes, index: int) -> FollowedPartition | None:
        return self._followed.get(key, _NONE).get(index)

    def all_followed(self, key: bytes) -> Collection[FollowedPartition]:
        return self._followed.get(key, _NONE).values()

    @property
    def followers(self) -> Iterator[FollowedPartition]:
        for partitions in self._followed.values():
            yield from partitions.values()

    def knows(self, key: bytes) -> bool:
        return key in self._topics

    def name_of(self, key: bytes) -> str | None:
        """What the authorizer is asked about: also a name that nobody has; None for such an id."""
        if not self._is_by_id:
            return key.decode(errors="replace")
        topic = self._topics.get(key)
        return None if topic is None else topic.name

    def image_of(self, key: bytes, index: int) -> PartitionImage | None:
        """What the cluster knows of a partition, whoever leads it."""
        topic = self._topics.get(key)
        return topic.partitions[index] if topic is not None and 0 <= index < len(topic.partitions) else None

    def error_for(self, key: bytes, index: int) -> ErrorCode:
        """Why a partition that is not led here cannot be served: there is none, its replica here is offline, or
        somebody else leads it."""
        if key not in self._topics:
            return ErrorCode.UNKNOWN_TOPIC_ID if self._is_by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if self.image_of(key, index) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if index in self._offline.get(key, ()):
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NOT_LEADER_OR_FOLLOWER

    def add(
        self,
        key: bytes,
        topic: TopicImage,
        led: dict[int, Partition],
        followed: dict[int, FollowedPartition],
        offline: Collection[int],
    ) -> None:
        self._topics[key], self._led[key], self._followed[key] = topic, led, followed
        if offline:
            self._offline[key] = offline
        else:
            self._offline.pop(key, None)

    def remove(self, key: bytes) -> None:
        for table in (self._topics, self._led, self._followed, self._offline):
            table.pop(key, None)


class Partitions:
    def __init__(self) -> None:
        # By the name in UTF-8, and by the id.
        self.by_name = Keyed(by_id=False)
        self.by_id = Keyed(by_id=True)
        self._led: dict[str, dict[int, Partition]] = {}

    # --- by text

    def get(self, topic: str, index: int) -> Partition | None:
        """Led here."""
        found = self._led.get(topic)
        return found.get(index) if found is not None else None

    def of_topic(self, topic: str) -> list[Partition]:
        """Those that are led here."""
        return list(self._led.get(topic, {}).values())

    def followed_of_topic(self, topic: str) -> list[FollowedPartition]:
        return list(self.by_name.all_followed(topic.encode()))

    def error_for(self, topic: str, index: int) -> ErrorCode:
        return self.by_name.error_for(topic.encode(), index)

    @property
    def followers(self) -> Iterator[FollowedPartition]:
        return self.by_id.followers

    def knows(self, topic_id: TopicId) -> bool:
        return self.by_id.knows(topic_id)

    # --- changing

    def add_topic(
        self,
        topic: TopicImage,
        partitions: dict[int, Partition],
        followed: dict[int, FollowedPartition] | None = None,
        offline: Collection[int] = (),
    ) -> None:
        """Also one that is there already: then these take the place of those that were."""
        self._led[topic.name] = partitions
        self.by_name.add(topic.name.encode(), topic, partitions, followed or {}, offline)
        self.by_id.add(topic.id, topic, partitions, followed or {}, offline)

    def remove_topic(self, topic: TopicImage) -> None:
        removed = self._led.pop(topic.name, {})
        followed = self.by_id.all_followed(topic.id)
        self.by_name.remove(topic.name.encode())
        self.by_id.remove(topic.id)
        for partition in (*removed.values(), *followed):
            partition.notify()  # parked fetches learn that the topic is gone

    def __iter__(self) -> Iterator[Partition]:
        for partitions in self._led.values():
            yield from partitions.values()

    def __len__(self) -> int:
        return sum(len(partitions) for partitions in self._led.values())
