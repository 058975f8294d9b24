"""A log directory of a broker has failed (KIP-858): the replicas in it are offline, those in its other ones are not.

The broker names the partitions. Each leaves the ISR and the leadership there, and is not eligible either: a disk that
comes back may come back empty. The image remembers it until the broker registers anew, so nobody elects it meanwhile
and no leader takes it into the ISR. Where it was the last one in sync it is the last known leader, and leads again when
its broker comes back with the directory.

A replica whose log could not be made, because the disk was full, is offline in the same way, and online when it could
be made. It has no records, and none were committed while it was in sync without a log: so it is in sync with nobody,
but leads where it was the last one in sync.

STALE_BROKER_EPOCH unless the broker is live by this registration. Partitions that are unknown, or are no replicas of
this broker, are passed over: they were deleted or moved meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicId
from ottla.controller.rules import Rules, min_insync_in_force
from ottla.controller.settling import settle
from ottla.controller.standing import standing
from ottla.metadata.image import ClusterImage, TopicImage

# The id of a topic, and the number of the partition.
Replica = tuple[TopicId, int]


def replicas_offline(
    image: ClusterImage, broker: int, broker_epoch: int, partitions: Iterable[Replica], rules: Rules
) -> dict[str, TopicImage]:
    """The topics that change. Telling it twice changes nothing."""
    return _told(image, broker, broker_epoch, partitions, rules, is_offline=True)


def replicas_online(
    image: ClusterImage, broker: int, broker_epoch: int, partitions: Iterable[Replica], rules: Rules
) -> dict[str, TopicImage]:
    """These were offline for want of a log, and have one now."""
    return _told(image, broker, broker_epoch, partitions, rules, is_offline=False)


def _told(
    image: ClusterImage,
    broker: int,
    broker_epoch: int,
    partitions: Iterable[Replica],
    rules: Rules,
    *,
    is_offline: bool,
) -> dict[str, TopicImage]:
    known = image.brokers.get(broker)
    if known is None or known.epoch != broker_epoch:
        raise ApiError(ErrorCode.STALE_BROKER_EPOCH, f"Broker {broker} has another registration by now.")
    brokers = standing(image)
    changed: dict[str, TopicImage] = {}
    for topic_id, index in partitions:
        topic = image.topics_by_id.get(topic_id)
        if topic is None or not 0 <= index < len(topic.partitions):
            continue
        topic = changed.get(topic.name, topic)
        before = topic.partitions[index]
        if broker not in before.replicas or (broker in before.offline) == is_offline:
            continue
        others = tuple(replica for replica in before.offline if replica != broker)
        after = settle(
            before,
            brokers,
            min_insync=min_insync_in_force(topic, rules),
            unclean=rules.unclean_election(topic),
            target=replace(before, offline=(*others, broker) if is_offline else others),
        )
        changed[topic.name] = replace(
            topic, partitions=(*topic.partitions[:index], after, *topic.partitions[index + 1 :])
        )
    return changed
