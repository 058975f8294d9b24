"""Keeps the partitions in step with the metadata image and the logs: which are led here, which are followed.

    led here, in a new leader epoch     a new `Partition`; the one of the epoch before resigns
    led here, in the same one           it hears of its in-sync replicas
    a replica here, led elsewhere       a new `FollowedPartition` for each leader epoch, and fetched from there
    no replica here (any more)          nothing
    its log could not be made           offline, until it is (`MetadataChanges.make_missing_logs`)

A broker of a cluster that the controller has not taken in yet leads and follows nothing, whatever the image says of the
one that it was before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ottla.broker.log_configs import MakeLogConfig
from ottla.broker.partitions.followed_partition import FollowedPartition
from ottla.broker.partitions.partition import Partition, rules_of
from ottla.broker.partitions.partition_table import Partitions
from ottla.broker.partitions.replica_fetcher import ReplicaFetchers
from ottla.broker.partitions.traffic import Traffic
from ottla.common.clock import Clock, SystemClock
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicPartition
from ottla.metadata.image import NO_LEADER, ClusterImage, PartitionImage, TopicImage
from ottla.records.validate import Rules
from ottla.replication.leader import LeaderState
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from ottla.storage.log_manager import LogManager


class PartitionsOfImage:
    """Subscribe `on_image`; logs are made before an image that names them is published."""

    def __init__(
        self,
        node_id: int,
        partitions: Partitions,
        logs: LogManager,
        log_config: MakeLogConfig,
        *,
        clock: Clock | None = None,
        fetchers: ReplicaFetchers | None = None,
        broker_epoch: Callable[[], int] | None = None,
        on_lead: Callable[[Partition], None] = lambda _: None,
        traffic: Traffic | None = None,
    ) -> None:
        """In a cluster all are given."""
        self._traffic = Traffic() if traffic is None else traffic
        self._node_id = node_id
        self._partitions = partitions
        self._logs = logs
        self._log_config = log_config
        self._clock = clock or SystemClock()
        self._fetchers = fetchers
        self._broker_epoch = broker_epoch
        self._on_lead = on_lead
        # The registration by which we are in; None: by none.
        self._taken_in: int | None = None

    def on_image(self, old: ClusterImage, new: ClusterImage) -> None:
        taken_in = self._registration(new)
        is_other_broker = taken_in != self._taken_in
        if old.topics is new.topics and not is_other_broker:
            return
        for name, topic in old.topics.items():
            kept = new.topics.get(name)
            if (kept is None or kept.id != topic.id) and self._partitions.knows(topic.id):
                self._remove(topic)
        failure: Exception | None = None
        if is_other_broker:
            # What was led or followed by the registration before is not by this one.
            self._taken_in = None
            for topic in new.topics.values():
                if self._partitions.knows(topic.id):
                    self._place(topic)
            self._taken_in = taken_in
        for name, topic in new.topics.items():
            before = old.topics.get(name)
            if before is topic and not is_other_broker:
                continue
            try:
                self._place(topic)
                if before is not None and before.configs != topic.configs:
                    self.refresh_config(topic)
            except Exception as error:  # of one topic; the others must not suffer for it
                failure = error
        if failure is not None:
            raise failure

    def _registration(self, image: ClusterImage) -> int | None:
        if self._broker_epoch is None:
            return 0
        registered = image.brokers.get(self._node_id)
        return registered.epoch if registered is not None and registered.epoch == self._broker_epoch() else None

    def _remove(self, topic: TopicImage) -> None:
        led = self._partitions.of_topic(topic.name)
        followed = self._partitions.followed_of_topic(topic.name)
        self._partitions.remove_topic(topic)
        for partition in led:
            partition.resign(ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic.name} was deleted"))
        for replica in followed:
            self._stop_following(replica)

    # --- what each partition is here

    def _place(self, topic: TopicImage) -> None:
        """Those that are as they should be stay, also if we are told a second time."""
        config = _with_min_insync(self._log_config(topic.configs), topic)
        rules = rules_of(config)
        led_before: dict[int, Partition] = _known(self._partitions.of_topic(topic.name), topic)
        followed_before: dict[int, FollowedPartition] = _known(self._partitions.followed_of_topic(topic.name), topic)
        led: dict[int, Partition] = {}
        followed: dict[int, FollowedPartition] = {}
        offline: list[int] = []
        failure: Exception | None = None
        for index, image in enumerate(topic.partitions):
            if self._taken_in is None or self._node_id not in image.replicas:
                continue
            if TopicPartition(topic.name, index) in self._logs.unmade:
                offline.append(index)
                continue
            try:
                if image.leader == self._node_id:
                    known = led_before.get(index)
                    is_same = known is not None and known.leader_epoch == image.leader_epoch
                    led[index] = known if known and is_same else self._lead(topic, index, config, rules)
                elif image.leader != NO_LEADER and self._fetchers is not None:
                    replica = followed_before.get(index)
                    is_same = replica is not None and replica.leader_epoch == image.leader_epoch
                    followed[index] = replica if replica and is_same else self._follow(topic, index, config)
            except Exception as error:  # of one partition, whose log may be missing
                failure = error
        self._partitions.add_topic(topic, led, followed, offline)
        for index, partition in led_before.items():
            if led.get(index) is partition:
                self._learn(partition, topic.partitions[index], config)
            else:
                partition.resign(ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{topic.name}-{index} has another leader"))
        for index, replica in followed_before.items():
            if followed.get(index) is not replica:
                self._stop_following(replica)
        for index, partition in led.items():
            if led_before.get(index) is not partition and partition.replication is not None:
                # What is committed already if nobody else is in sync.
                partition.advance()
                partition.sync_what_is_due()
                self._on_lead(partition)
        for index, replica in followed.items():
            if followed_before.get(index) is not replica and self._fetchers is not None:
                self._fetchers.follow(replica)
        if failure is not None:
            raise failure

    def _lead(self, topic: TopicImage, index: int, config: LogConfig, rules: Rules) -> Partition:
        image, log = topic.partitions[index], self._log(topic, index)
        # A leader notes where its epoch begins before it takes the first record (KIP-101).
        log.leader_epochs.assign(image.leader_epoch, log.log_end_offset)
        log.lead_with_hole()
        if len(image.replicas) == 1:
            log.high_watermark = log.log_end_offset
        config = self._limited(config, image)
        replication = self._replication(image, log.log_end_offset, config)
        return Partition(topic, index, log, config, replication, self._traffic[topic.name], rules)

    def _follow(self, topic: TopicImage, index: int, config: LogConfig) -> FollowedPartition:
        return FollowedPartition(topic, index, self._log(topic, index), config)

    def _log(self, topic: TopicImage, index: int) -> Log:
        log = self._logs.get(TopicPartition(topic.name, index))
        if log is None:
            raise LookupError(f"{topic.name}-{index} has no log")
        return log

    def _replication(self, image: PartitionImage, epoch_start: int, config: LogConfig) -> LeaderState | None:
        if len(image.replicas) == 1:
            return None
        now_ms = self._clock.monotonic_ms()
        return LeaderState(self._node_id, image, epoch_start, config.min_insync_replicas, now_ms)

    def _limited(self, config: LogConfig, image: PartitionImage) -> LogConfig:
        """In a cluster no more replicas have to be in sync than there are, as in Kafka."""
        if self._broker_epoch is None or config.min_insync_replicas <= len(image.replicas):
            return config
        return replace(config, min_insync_replicas=len(image.replicas))

    def _learn(self, partition: Partition, image: PartitionImage, config: LogConfig) -> None:
        """The same leader epoch, and perhaps other replicas, in sync or at all."""
        state = partition.replication
        if (state is None) != (len(image.replicas) == 1):
            epoch_start = partition.log.leader_epochs.entries[-1][1]
            partition.set_replication(self._replication(image, epoch_start, self._limited(config, image)))
        elif state is not None and state.on_image(image, self._clock.monotonic_ms()):
            partition.set_config(self._limited(config, image))
            partition.isr_changed()

    def _stop_following(self, replica: FollowedPartition) -> None:
        if self._fetchers is not None:
            self._fetchers.stop(replica)

    # --- settings

    def refresh_config(self, topic: TopicImage) -> None:
        config = _with_min_insync(self._log_config(topic.configs), topic)
        for partition in self._partitions.of_topic(topic.name):
            partition.set_config(self._limited(config, topic.partitions[partition.index]))
        for replica in self._partitions.followed_of_topic(topic.name):
            replica.set_config(config)

    def refresh_all_configs(self, image: ClusterImage) -> None:
        """A broker default that topics inherit has changed."""
        for topic in image.topics.values():
            self.refresh_config(topic)


def _with_min_insync(config: LogConfig, topic: TopicImage) -> LogConfig:
    """In a cluster the value in force is that of the topic's node: the controller goes by the same one."""
    if topic.min_insync in (None, config.min_insync_replicas):
        return config
    return replace(config, min_insync_replicas=topic.min_insync)


def _known(found: list[Any], topic: TopicImage) -> dict[int, Any]:
    """By number; not those of an older topic of the name."""
    return {replica.index: replica for replica in found if replica.topic_id == topic.id}
