"""Replicas of this broker that have not caught up since they lost records: those that were made anew because their log
directory is gone, and those that have a hole among records that were synced (`storage/loading/recovery.py`).

Each registration names them: a broker that was the last one to have a partition's records, and lacks some of them now,
must not lead it, or those who follow it would be cut to nothing. Once it follows a leader it gives up what lies behind
the hole (`ReplicaFetcher`), or it would never fetch what it lacks. Which they are is on disk (`LogManager.made_anew`),
so another start, or another registration, knows it too. Who is in sync by the registration that counts has caught up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.common.ids import TopicId, TopicPartition
from ottla.metadata.image import ClusterImage

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


class EmptiedReplicas:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def missing(self) -> dict[TopicId, tuple[int, ...]]:
        image, found = self._broker.image, dict[TopicId, tuple[int, ...]]()
        for name, index in sorted(self._broker.logs.made_anew):
            topic = image.topics.get(name)
            if topic is not None:
                found[topic.id] = (*found.get(topic.id, ()), index)
        return found

    def on_image(self, old: ClusterImage, new: ClusterImage) -> None:
        broker = self._broker
        if broker.logs.made_anew and broker.broker_epoch >= 0:
            done = [tp for tp in broker.logs.made_anew if self._needs_no_mark(tp, new)]
            if done:
                broker.logs.forget_made_anew(done)

    def _needs_no_mark(self, tp: TopicPartition, image: ClusterImage) -> bool:
        topic, own = image.topics.get(tp.topic), self._broker.node_id
        if topic is None or tp.partition >= len(topic.partitions):
            return True
        partition = topic.partitions[tp.partition]
        return own in partition.isr or own not in partition.replicas
