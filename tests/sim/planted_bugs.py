"""Mistakes that somebody could make in the real code, each planted at one place: the simulation must find them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import pytest

from ottla.broker.cluster import cluster_startup, controlling
from ottla.broker.controller.metadata_changes import MetadataChanges
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions_of_image import PartitionsOfImage
from ottla.controller import broker_changes
from ottla.controller.broker_changes import Changes
from ottla.controller.rules import Rules
from ottla.metadata.image import ClusterImage, TopicImage
from ottla.metastore.port import Check
from ottla.replication.leader import LeaderState
from ottla.storage.log import Log

Plant = Callable[[pytest.MonkeyPatch], None]


def watermark_from_a_stale_epoch(patch: pytest.MonkeyPatch) -> None:
    """A leader goes on with what followers had in the last epoch in which it led: they may have been cut since."""
    lead = PartitionsOfImage._lead
    last: WeakKeyDictionary[PartitionsOfImage, dict[tuple[str, int], LeaderState]] = WeakKeyDictionary()

    def lead_again(self: PartitionsOfImage, topic: TopicImage, index: int, *given: Any) -> Partition:
        partition = lead(self, topic, index, *given)
        state = partition.replication
        if state is not None:
            of_broker = last.setdefault(self, {})
            before = of_broker.get((topic.name, index))
            for replica, follower in state.followers.items():
                if before is not None and replica in before.followers:
                    follower.end_offset = before.followers[replica].end_offset
            of_broker[topic.name, index] = state
        return partition

    patch.setattr(PartitionsOfImage, "_lead", lead_again)


def truncation_to_the_watermark(patch: pytest.MonkeyPatch) -> None:
    """What Kafka did before KIP-101: a follower cuts what it does not know to be committed, and fetches it again."""
    follow = PartitionsOfImage._follow

    def cut_and_follow(self: PartitionsOfImage, topic: TopicImage, index: int, *given: Any) -> Any:
        followed = follow(self, topic, index, *given)
        followed.log.truncate_to(followed.log.high_watermark, 0)
        return followed

    patch.setattr(PartitionsOfImage, "_follow", cut_and_follow)


def stale_controller_write_accepted(patch: pytest.MonkeyPatch) -> None:
    """Changes are conditional on there having been a controller, not on its epoch."""
    take_over = MetadataChanges.take_over
    patch.setattr(MetadataChanges, "take_over", lambda self, epoch: take_over(self, Check(epoch.path)))


def acknowledged_before_it_is_in_sync(patch: pytest.MonkeyPatch) -> None:
    """acks=all is answered when the leader has the record."""

    def wait_for_commit(self: Partition, end_offset: int | None = None, timeout_ms: int | None = None) -> Any:
        return self.wait_for_own_disk(self.log.log_end_offset if end_offset is None else end_offset)

    patch.setattr(Partition, "wait_for_commit", wait_for_commit)


def election_without_fencing(patch: pytest.MonkeyPatch) -> None:
    """A broker that refuses a connection is taken for dead, and another one leads in its place, in the same epoch: what
    the first one goes on to do, and what followers have of it, looks as valid as before."""

    def broker_gone(image: ClusterImage, broker: int, rules: Rules) -> Changes:
        fenced = broker_changes.reconcile(
            replace(
                image,
                brokers={other: known for other, known in image.brokers.items() if other != broker},
                present={other: known for other, known in image.present.items() if other != broker},
            ),
            rules,
        )
        topics = {name: _in_the_same_epochs(topic, image.topics[name]) for name, topic in fenced.topics.items()}
        return Changes(topics, {})

    patch.setattr(controlling.broker_changes, "broker_gone", broker_gone)


def holes_that_nobody_minds(patch: pytest.MonkeyPatch) -> None:
    """A replica that lacks records which were synced goes on with what lies behind them."""
    patch.setattr(cluster_startup, "_has_copies", lambda image, tp: False)
    patch.setattr(Log, "cut_at_hole", lambda self, now_ms: setattr(self, "hole", None))


def _in_the_same_epochs(topic: TopicImage, before: TopicImage) -> TopicImage:
    partitions = [
        replace(partition, leader_epoch=old.leader_epoch)
        for partition, old in zip(topic.partitions, before.partitions, strict=True)
    ]
    return replace(topic, partitions=tuple(partitions))


PLANTS: list[Plant] = [
    watermark_from_a_stale_epoch,
    truncation_to_the_watermark,
    stale_controller_write_accepted,
    acknowledged_before_it_is_in_sync,
    election_without_fencing,
    holes_that_nobody_minds,
]
# What a run needs beside its seed, so that the mistake can be made.
NEEDS: Mapping[Plant, Mapping[str, int]] = {holes_that_nobody_minds: {"damages": 1}}
