"""Topics as a plan changes them, partition by partition: thousands of one topic must not copy it each time."""

from __future__ import annotations

from dataclasses import replace

from ottla.metadata.image import ClusterImage, PartitionImage, TopicImage

# A plan over many partitions lets others in after so many.
PARTITIONS_PER_STEP = 32


class Drafts:
    def __init__(self, image: ClusterImage) -> None:
        self._image = image
        self._partitions: dict[str, list[PartitionImage]] = {}

    def partition(self, topic: str, index: int) -> PartitionImage | None:
        """As it is by now; None if there is no such partition."""
        known = self._image.topics.get(topic)
        partitions = self._partitions.get(topic) or (() if known is None else known.partitions)
        return partitions[index] if 0 <= index < len(partitions) else None

    def change(self, topic: str, index: int, partition: PartitionImage) -> None:
        if topic not in self._partitions:
            self._partitions[topic] = list(self._image.topics[topic].partitions)
        self._partitions[topic][index] = partition

    def changed(self) -> dict[str, TopicImage]:
        return {
            name: replace(self._image.topics[name], partitions=tuple(partitions))
            for name, partitions in self._partitions.items()
            if any(new is not old for new, old in zip(partitions, self._image.topics[name].partitions, strict=True))
        }
