"""The cluster as one immutable value: topics, partitions, configs.

Readers hold a reference; a change makes a new image.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ottla.common.ids import TopicId

INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state", "__share_group_state")


@dataclass(frozen=True, slots=True)
class PartitionImage:
    leader: int
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TopicImage:
    name: str
    id: TopicId
    partitions: tuple[PartitionImage, ...]
    # Only what was set on the topic itself; defaults come from the broker's configuration.
    configs: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def is_internal(self) -> bool:
        return self.name in INTERNAL_TOPICS


@dataclass(frozen=True, slots=True)
class ClusterImage:
    cluster_id: str
    topics: Mapping[str, TopicImage] = field(default_factory=dict)
    topics_by_id: Mapping[TopicId, TopicImage] = field(default_factory=dict)
    # Dynamic broker configs: "" is the cluster-wide default, else the broker id as text.
    broker_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
