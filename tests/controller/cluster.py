"""Small clusters for tests: what is not said is as it is in a healthy one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ottla.common.ids import TopicId
from ottla.controller.broker_changes import Changes, next_registration
from ottla.controller.rules import Rules
from ottla.metadata import image as images
from ottla.metadata.image import BrokerImage, ClusterImage, PartitionImage, Registration, TopicImage

TOPIC = "orders"
TOPIC_ID = TopicId(b"orders".ljust(16))


def rules(min_insync: int = 2, *, unclean: bool = False) -> Rules:
    return Rules(lambda topic: min_insync, lambda topic: unclean)


def partition(
    replicas: tuple[int, ...] = (1, 2, 3),
    isr: tuple[int, ...] | None = None,
    *,
    leader: int | None = None,
    leader_epoch: int = 5,
    partition_epoch: int = 7,
    **rest: tuple[int, ...] | int,
) -> PartitionImage:
    isr = replicas if isr is None else isr
    leader = (isr[0] if isr else images.NO_LEADER) if leader is None else leader
    return PartitionImage(leader, leader_epoch, partition_epoch, replicas, isr, **rest)  # type: ignore[arg-type]


def cluster(
    *partitions: PartitionImage,
    brokers: Iterable[int] = (1, 2, 3),
    racks: Mapping[int, str] | None = None,
    registrations: Mapping[int, Registration] | None = None,
    min_insync: int = 2,
) -> ClusterImage:
    """`brokers` are live, each by its registration with epoch 10 + id; `registrations` replaces single ones."""
    known = {broker: Registration(10 + broker, is_active=True) for broker in brokers} | dict(registrations or {})
    image = ClusterImage("cluster", registrations=known)
    nodes = {broker: BrokerImage(broker, (racks or {}).get(broker), {}, known[broker].epoch) for broker in brokers}
    image = with_presence(image, nodes)
    topic = TopicImage(TOPIC, TOPIC_ID, partitions, min_insync=min_insync)
    return images.with_topics(image, [topic] if partitions else [])


def with_presence(image: ClusterImage, present: Mapping[int, BrokerImage]) -> ClusterImage:
    """As every broker folds the store: who is present and active, by the same registration, is in `brokers`."""
    brokers = {
        broker: node
        for broker, node in present.items()
        if image.registrations[broker] == replace(image.registrations[broker], epoch=node.epoch, is_active=True)
    }
    return replace(image, present=dict(present), brokers=brokers)


def without(image: ClusterImage, *gone: int) -> ClusterImage:
    """Their ephemeral nodes are gone; nobody has noticed yet."""
    return with_presence(image, {broker: node for broker, node in image.present.items() if broker not in gone})


def registered(
    image: ClusterImage,
    broker: int,
    *,
    may_have_lost_records: bool = False,
    missing: Mapping[TopicId, tuple[int, ...]] | None = None,
) -> ClusterImage:
    """It has registered anew, and is not taken in yet."""
    about = Registration(0, is_active=False, may_have_lost_records=may_have_lost_records, missing=missing or {})
    new = next_registration(image.registrations.get(broker), about)
    image = replace(image, registrations={**image.registrations, broker: new})
    return with_presence(image, {**image.present, broker: BrokerImage(broker, None, {}, new.epoch)})


def applied(image: ClusterImage, changes: Changes) -> ClusterImage:
    """What the store says after the write: a broker that was fenced loses its node."""
    fenced = {broker for broker, registration in changes.registrations.items() if not registration.is_active}
    image = images.with_topics(image, changes.topics.values())
    image = replace(image, registrations={**image.registrations, **changes.registrations})
    return with_presence(image, {broker: node for broker, node in image.present.items() if broker not in fenced})


def only(topics: Mapping[str, TopicImage]) -> PartitionImage:
    (topic,) = topics.values()
    return topic.partitions[0]
