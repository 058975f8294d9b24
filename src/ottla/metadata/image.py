"""The cluster as one immutable value: brokers, topics, partitions, configs, features.

Readers hold a reference; a change makes a new image. Mappings are replaced, never written to, so two images share
whatever did not change between them and `old.topics[name] is new.topics[name]` says that a topic is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType

from ottla.common.ids import TopicId

INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state", "__share_group_state")
NOTHING: Mapping[str, str] = MappingProxyType({})


class ConfigKind(Enum):
    """The resources with stored settings, beside topics: each has a mapping of the image, by name."""

    BROKER = "broker_configs"
    GROUP = "group_configs"
    CLIENT_METRICS = "client_metrics_configs"


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
    configs: Mapping[str, str] = field(default_factory=lambda: NOTHING)

    @property
    def is_internal(self) -> bool:
        return self.name in INTERNAL_TOPICS


@dataclass(frozen=True, slots=True)
class BrokerImage:
    id: int
    rack: str | None
    # Where clients find it, by the name of the listener through which they come.
    endpoints: Mapping[str, tuple[str, int]]


@dataclass(frozen=True, slots=True)
class ClusterImage:
    cluster_id: str
    topics: Mapping[str, TopicImage] = field(default_factory=dict)
    topics_by_id: Mapping[TopicId, TopicImage] = field(default_factory=dict)
    # Dynamic broker configs: "" is the cluster-wide default, else the broker id as text.
    broker_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    group_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # Client metrics subscriptions (KIP-714) by name.
    client_metrics_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # Finalized feature levels (KIP-584) and how often they changed.
    features: Mapping[str, int] = field(default_factory=dict)
    features_epoch: int = 0
    # The first producer id that no broker has been given yet.
    next_producer_id: int = 0
    # Those that are alive, by id; and which of them makes changes.
    brokers: Mapping[int, BrokerImage] = field(default_factory=dict)
    controller: int = -1

    def configs(self, kind: ConfigKind) -> Mapping[str, Mapping[str, str]]:
        found: Mapping[str, Mapping[str, str]] = getattr(self, kind.value)
        return found

    @property
    def partition_count(self) -> int:
        return sum(len(topic.partitions) for topic in self.topics.values())


def with_broker(image: ClusterImage, broker: BrokerImage) -> ClusterImage:
    return replace(image, brokers={**image.brokers, broker.id: broker})


def reachable(image: ClusterImage, listener: str) -> list[tuple[BrokerImage, tuple[str, int]]]:
    """The brokers that have such a listener, and where."""
    return [(broker, broker.endpoints[listener]) for broker in image.brokers.values() if listener in broker.endpoints]


def initial_partition(replicas: tuple[int, ...], leader_epoch: int = 0) -> PartitionImage:
    """A partition as it is born: its first replica leads, all are in sync."""
    return PartitionImage(replicas[0], leader_epoch, leader_epoch, replicas, replicas)


def with_topics(image: ClusterImage, topics: Iterable[TopicImage]) -> ClusterImage:
    """Topics added, or replaced where the name is there already."""
    by_name, by_id = dict(image.topics), dict(image.topics_by_id)
    for topic in topics:
        before = by_name.get(topic.name)
        if before is not None and before.id != topic.id:
            del by_id[before.id]
        by_name[topic.name] = topic
        by_id[topic.id] = topic
    return replace(image, topics=by_name, topics_by_id=by_id)


def without_topics(image: ClusterImage, names: Iterable[str]) -> ClusterImage:
    by_name, by_id = dict(image.topics), dict(image.topics_by_id)
    for name in names:
        del by_id[by_name.pop(name).id]
    return replace(image, topics=by_name, topics_by_id=by_id)


def with_configs(image: ClusterImage, kind: ConfigKind, name: str, configs: Mapping[str, str]) -> ClusterImage:
    """A resource without settings of its own is not in the image."""
    changed = {known: kept for known, kept in image.configs(kind).items() if known != name}
    if configs:
        changed[name] = MappingProxyType(dict(configs))
    return replace(image, **{kind.value: changed})  # type: ignore[arg-type]


def with_features(image: ClusterImage, levels: Mapping[str, int]) -> ClusterImage:
    return replace(image, features=dict(levels), features_epoch=image.features_epoch + 1)


def with_next_producer_id(image: ClusterImage, next_producer_id: int) -> ClusterImage:
    return replace(image, next_producer_id=next_producer_id)
