"""Tells the controller which replicas of this broker cannot be used, because a log directory has failed or a log could
not be made: others take over, and the rest of this broker goes on.

A directory that has failed stays so until the broker starts anew. A log that could not be made, because the disk was
full, is tried again: when it is there the controller is told that, too.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ottla.broker.cluster.peers import PeerUnavailable
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicId, TopicPartition
from ottla.protocol.messages import AssignReplicasToDirsRequest as Request

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

log = logging.getLogger("ottla.cluster")

CHECK_MS = 1_000
_Replica = tuple[TopicId, int]
# Kafka's name for a directory that is lost.
LOST_DIRECTORY = bytes(15) + b"\x01"


class FailedDirs:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        # Replicas without a log that the controller may have heard of: it has to hear when they have one. They stay
        # here as long as they are replicas, for a request may have its effect long after we have given it up.
        self._told_unmade: set[_Replica] = set()

    async def check(self) -> None:
        broker = self._broker
        try:
            await broker.topics.make_missing_logs()
        except ApiError as error:  # the store is away
            log.warning("replicas that are missing cannot be made now", extra={"why": str(error)})
        if broker.broker_epoch < 0:
            return
        lost, found = self._lost(), self._found()
        if not lost and not found:
            return
        directories = [
            Request.DirectoryData(id=directory, topics=_by_topic(replicas))
            for directory, replicas in ((LOST_DIRECTORY, lost), *found.items())
            if replicas
        ]
        request = Request(broker_id=broker.node_id, broker_epoch=broker.broker_epoch, directories=directories)
        try:
            answer = await broker.ask_controller(request)
            if answer.error_code != ErrorCode.NONE:
                raise ApiError(ErrorCode(answer.error_code))
            if lost:
                log.error("the controller knows of replicas that failed", extra={"replicas": len(lost)})
            if found:
                back = sum(map(len, found.values()))
                log.info("the controller knows of replicas that are there now", extra={"replicas": back})
        except (PeerUnavailable, ApiError) as error:
            log.warning("cannot tell the controller of failed replicas, will try again", extra={"why": str(error)})

    def _lost(self) -> list[_Replica]:
        """Those that the image does not know of yet."""
        broker, logs = self._broker, self._broker.logs
        if not logs.unmade and all(log_dir.offline is None for log_dir in logs.dirs):
            return []
        lost = []
        for topic in broker.image.topics.values():
            for index, partition in enumerate(topic.partitions):
                if broker.node_id not in partition.replicas or broker.node_id in partition.offline:
                    continue
                found = logs.get(TopicPartition(topic.name, index))
                if found is None:
                    self._told_unmade.add((topic.id, index))
                if found is None or found.failed is not None:
                    lost.append((topic.id, index))
        return lost

    def _found(self) -> dict[bytes, list[_Replica]]:
        """Those that the image takes for lost and that have a log by now, by the id of its directory."""
        broker, logs = self._broker, self._broker.logs
        found: dict[bytes, list[_Replica]] = {}
        for topic_id, index in sorted(self._told_unmade):
            topic = broker.image.topics_by_id.get(topic_id)
            if topic is None or broker.node_id not in topic.partitions[index].replicas:
                self._told_unmade.discard((topic_id, index))
                continue
            tp = TopicPartition(topic.name, index)
            made = logs.get(tp)
            if made is not None and made.failed is None and broker.node_id in topic.partitions[index].offline:
                found.setdefault(logs.dir_of(tp).directory_id, []).append((topic_id, index))
        return found


def _by_topic(replicas: Iterable[_Replica]) -> list[Request.TopicData]:
    indexes: dict[TopicId, list[int]] = {}
    for topic_id, index in replicas:
        indexes.setdefault(topic_id, []).append(index)
    return [
        Request.TopicData(
            topic_id=topic_id, partitions=[Request.PartitionData(partition_index=index) for index in numbers]
        )
        for topic_id, numbers in indexes.items()
    ]
