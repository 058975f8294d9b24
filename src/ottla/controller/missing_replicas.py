"""Which replicas a broker does not have any more when it starts: those whose log directory is gone (KIP-858).

A registration names the ids of the log directories, so a disk that was replaced is noticed: its id is another one. When
a directory that the last registration named is not there any more, then of the replicas of this broker

- those found in a directory that it named, too, are what they were;
- those found nowhere were in the one that is gone;
- those found in a directory that it did not name are copies of before: the broker has gone on without that directory,
  and with the records that it has taken since then somewhere else. Unless it never got that far: one that is *emptied*
  in the image was not in sync since, so that its records are back with that directory.

The broker says so when it registers (`Registration.missing`). As long as no directory is gone nothing is missing: what
is found nowhere was never made, or never synced.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from ottla.common.ids import TopicPartition
from ottla.metadata.image import ClusterImage


def gone_directories(image: ClusterImage, broker: int, here: Collection[str]) -> list[str]:
    last = image.registrations.get(broker)
    return [] if last is None else [directory for directory in last.directories if directory not in here]


def missing_replicas(
    image: ClusterImage, broker: int, here: Collection[str], found: Mapping[TopicPartition, str]
) -> Iterator[TopicPartition]:
    """`here` are the ids of the directories that can be used, `found` says in which of them each replica is."""
    if not gone_directories(image, broker, here):
        return
    named = image.registrations[broker].directories
    for topic in image.topics.values():
        for index, partition in enumerate(topic.partitions):
            if broker not in partition.replicas:
                continue
            tp = TopicPartition(topic.name, index)
            directory = found.get(tp)
            if directory is None or (directory not in named and broker not in partition.emptied):
                yield tp
