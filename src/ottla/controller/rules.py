"""The settings that decisions about a partition depend on.

Leader and controller must go by the same min.insync.replicas: a replica is eligible (KIP-966) because nothing is
committed while fewer are in sync, and it is the leader who commits. If a leader took a lower value from its own file,
or from a default that was lowered a moment ago, an eligible replica would lack what it has committed alone. So the
value in force is in the node of the topic (`TopicImage.min_insync`); settings only say what it should be, and the
controller brings it there (`rule_changes.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ottla.metadata.image import PartitionImage, TopicImage


@dataclass(frozen=True, slots=True)
class Rules:
    # min.insync.replicas and unclean.leader.election.enable of a topic, by the settings as they are now.
    min_insync_replicas: Callable[[TopicImage], int]
    unclean_election: Callable[[TopicImage], bool]


def min_insync_in_force(topic: TopicImage, rules: Rules) -> int:
    return topic.min_insync if topic.min_insync is not None else rules.min_insync_replicas(topic)


def effective_min_insync(min_insync_replicas: int, partition: PartitionImage) -> int:
    """How many must be in sync for anything to be committed: a partition with fewer replicas needs no more than all."""
    return min(min_insync_replicas, len(partition.replicas))
