"""Logs that know later leader epochs than the metadata: somebody has restored the metadata from an older backup.

A leader must not begin an epoch that its own log, or a follower's, is past: nobody could tell any more where two logs
part. So a broker that finds such logs when it starts names them in its registration, with the epoch that they know, and
the write that takes it in raises the epochs of these partitions above it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ottla.common.ids import TopicId, TopicPartition
from ottla.metadata.image import ClusterImage, TopicImage


def epochs_ahead(image: ClusterImage, latest: Iterable[tuple[TopicPartition, int]]) -> dict[TopicId, dict[int, int]]:
    """`latest` has the latest epoch of each log; what is ahead of the image is in the answer."""
    ahead: dict[TopicId, dict[int, int]] = {}
    for (name, index), epoch in latest:
        topic = image.topics.get(name)
        if topic is not None and index < len(topic.partitions) and topic.partitions[index].leader_epoch < epoch:
            ahead.setdefault(topic.id, {})[index] = epoch
    return ahead


def with_raised_epochs(
    image: ClusterImage, changed: Mapping[str, TopicImage], taken_in: Iterable[int]
) -> dict[str, TopicImage]:
    """`changed`, and the topics of which a broker that is taken in knows later epochs."""
    raised = dict(changed)
    for broker in taken_in:
        for topic_id, epochs in image.registrations[broker].ahead.items():
            topic = image.topics_by_id.get(topic_id)
            if topic is None:
                continue
            topic = raised.get(topic.name, topic)
            partitions = list(topic.partitions)
            for index, epoch in epochs.items():
                if index < len(partitions) and partitions[index].leader_epoch <= epoch:
                    partitions[index] = replace(
                        partitions[index],
                        leader_epoch=epoch + 1,
                        partition_epoch=partitions[index].partition_epoch + 1,
                    )
            if any(new is not old for new, old in zip(partitions, topic.partitions, strict=True)):
                raised[topic.name] = replace(topic, partitions=tuple(partitions))
    return raised
