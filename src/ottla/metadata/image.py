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
from ottla.metadata.acls import Acl
from ottla.metadata.quotas import ClientQuota
from ottla.metadata.scram import ScramCredential
from ottla.metadata.tokens import DelegationToken

INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state", "__share_group_state")
NOTHING: Mapping[str, str] = MappingProxyType({})
NO_LEADER = -1


class ConfigKind(Enum):
    """The resources with stored settings, beside topics: each has a mapping of the image, by name."""

    BROKER = "broker_configs"
    GROUP = "group_configs"
    CLIENT_METRICS = "client_metrics_configs"


@dataclass(frozen=True, slots=True)
class PartitionImage:
    # NO_LEADER while nobody may lead.
    leader: int
    # Grows with each new leader; the other one with each change of anything here.
    leader_epoch: int
    partition_epoch: int
    # The first is the preferred leader.
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    # Not in sync any more, but they have all that was committed: nothing is while fewer than min.insync.replicas are in
    # sync (KIP-966).
    elr: tuple[int, ...] = ()
    # Who led when the last member of both was lost; leads again when it comes back.
    last_known_leader: int = NO_LEADER
    # A reassignment: replicas that are to come, and those that go when they are there. Both are among `replicas`.
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    # Replicas whose log directory failed while their broker lives on; until it registers anew.
    offline: tuple[int, ...] = ()
    # Replicas that came back without the directory that held them, so with nothing; until they are in sync again, or
    # come back with it.
    emptied: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicImage:
    name: str
    id: TopicId
    partitions: tuple[PartitionImage, ...]
    # Only what was set on the topic itself; defaults come from the broker's configuration.
    configs: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    # The min.insync.replicas by which leaders commit, in a cluster: one value for all, whatever each broker's own
    # settings say; None on a single node (`ottla.controller.rules` says why).
    min_insync: int | None = None

    @property
    def is_internal(self) -> bool:
        return self.name in INTERNAL_TOPICS


@dataclass(frozen=True, slots=True)
class BrokerImage:
    id: int
    rack: str | None
    # Where clients find it, by the name of the listener through which they come.
    endpoints: Mapping[str, tuple[str, int]]
    # That of its registration; each has a larger one.
    epoch: int = 0
    # It wants to go: others are to lead what it leads.
    is_stopping: bool = False


@dataclass(frozen=True, slots=True)
class Registration:
    """What is remembered of a broker, also while it is away: which registration was its last, and whether the
    controller has taken it in. One that it has not (or not any more) leads nothing and is in sync nowhere."""

    epoch: int
    is_active: bool
    # Its machine went down, so that records which were not synced may be gone: it is not in sync by what it was before.
    may_have_lost_records: bool = False
    # A controlled shutdown has begun: it joins no ISR and is elected nowhere any more.
    is_stopping: bool = False
    # The ids of its log directories (KIP-858): one that was replaced has another id.
    directories: tuple[str, ...] = ()
    # Replicas that it does not have though it had them, as their directory is gone; until it is taken in.
    missing: Mapping[TopicId, tuple[int, ...]] = field(default_factory=dict)
    # Its logs know later leader epochs than the metadata: of these partitions; until it is taken in.
    ahead: Mapping[TopicId, Mapping[int, int]] = field(default_factory=dict)
    # Where it was last: replicas are placed by it while it is away, too.
    rack: str | None = None


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
    # Those that are alive and taken in, by id; and which of them makes changes, since which epoch.
    brokers: Mapping[int, BrokerImage] = field(default_factory=dict)
    controller: int = -1
    controller_epoch: int = 0
    # All that were ever here, in a cluster; and those that are alive, taken in or not.
    registrations: Mapping[int, Registration] = field(default_factory=dict)
    present: Mapping[int, BrokerImage] = field(default_factory=dict)
    # They counted, and their session has ended, but no controller has fenced them: as all of them for a moment when the
    # store was away for longer than sessions last. Nobody counts on them; clients are still told of them.
    missing: Mapping[int, BrokerImage] = field(default_factory=dict)

    # Who may do what, each under an id of its own; and how users prove who they are, by name and mechanism.
    acls: Mapping[str, Acl] = field(default_factory=dict)
    scram: Mapping[str, Mapping[str, ScramCredential]] = field(default_factory=dict)
    # What they may use, by `quotas.quota_id`.
    quotas: Mapping[str, ClientQuota] = field(default_factory=dict)
    tokens: Mapping[str, DelegationToken] = field(default_factory=dict)

    def configs(self, kind: ConfigKind) -> Mapping[str, Mapping[str, str]]:
        found: Mapping[str, Mapping[str, str]] = getattr(self, kind.value)
        return found

    @property
    def partition_count(self) -> int:
        return sum(len(topic.partitions) for topic in self.topics.values())


def with_broker(image: ClusterImage, broker: BrokerImage) -> ClusterImage:
    return replace(image, brokers={**image.brokers, broker.id: broker})


def reachable(image: ClusterImage, listener: str) -> list[tuple[BrokerImage, tuple[str, int]]]:
    """The brokers of which clients are told that have such a listener, and where. Never nobody at all: librdkafka 2.13
    and later ask nobody for anything any more after such an answer (its issue 5301)."""
    brokers = {**image.missing, **image.brokers} if image.missing else image.brokers
    return [
        (broker, broker.endpoints[listener]) for _, broker in sorted(brokers.items()) if listener in broker.endpoints
    ]


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
