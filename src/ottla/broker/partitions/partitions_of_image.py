"""Keeps the partitions in step with the metadata image and the logs."""

from __future__ import annotations

from ottla.broker.configs.log_configs import MakeLogConfig, remembering
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partition_table import Partitions
from ottla.common.ids import TopicPartition
from ottla.metadata.image import ClusterImage, TopicImage
from ottla.storage.log_config import LogConfig
from ottla.storage.log_manager import LogManager


class PartitionsOfImage:
    """Subscribe `on_image`; logs are made before an image that names them is published."""

    def __init__(self, node_id: int, partitions: Partitions, logs: LogManager, log_config: MakeLogConfig) -> None:
        self._node_id = node_id
        self._partitions = partitions
        self._logs = logs
        self._log_config = log_config

    def on_image(self, old: ClusterImage, new: ClusterImage) -> None:
        if old.topics is new.topics:
            return
        for name, topic in old.topics.items():
            kept = new.topics.get(name)
            if (kept is None or kept.id != topic.id) and self._partitions.knows(topic.id):
                self._partitions.remove_topic(topic)
        log_config = remembering(self._log_config)
        failure: Exception | None = None
        for name, topic in new.topics.items():
            before = old.topics.get(name)
            if before is topic:
                continue
            try:
                # Those that are there stay, also if we are told a second time.
                known = {
                    partition.index: partition
                    for partition in self._partitions.of_topic(name)
                    if partition.topic_id == topic.id
                }
                self._add(topic, known, log_config)
                if before is not None and before.configs != topic.configs:
                    self.refresh_config(topic)
            except Exception as error:  # of one topic; the others must not suffer for it
                failure = error
        if failure is not None:
            raise failure

    def _add(self, topic: TopicImage, known: dict[int, Partition], log_config: MakeLogConfig) -> None:
        config = log_config(topic.configs)
        partitions = dict(known)
        for index, partition_image in enumerate(topic.partitions):
            if index in known or partition_image.leader != self._node_id:
                continue
            log = self._logs.get(TopicPartition(topic.name, index))
            if log is None:
                raise LookupError(f"{topic.name}-{index} has no log")
            log.high_watermark = log.log_end_offset
            # A leader notes where its epoch begins before it takes the first record (KIP-101).
            log.leader_epochs.assign(partition_image.leader_epoch, log.log_end_offset)
            partitions[index] = Partition(topic, index, log, config)
        self._partitions.add_topic(topic, partitions)

    def refresh_config(self, topic: TopicImage) -> None:
        self._set_config(topic, self._log_config(topic.configs))

    def _set_config(self, topic: TopicImage, config: LogConfig) -> None:
        for partition in self._partitions.of_topic(topic.name):
            partition.set_config(config)

    def refresh_all_configs(self, image: ClusterImage) -> None:
        """A broker default that topics inherit has changed."""
        log_config = remembering(self._log_config)
        for topic in image.topics.values():
            self._set_config(topic, log_config(topic.configs))
