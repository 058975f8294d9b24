"""Tells the controller which replicas of this broker cannot be used, because a log directory has failed or a log could
not be made: others take over, and the rest of this broker goes on."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ottla.broker.cluster.peers import PeerUnavailable
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicId, TopicPartition
from ottla.protocol.messages import AssignReplicasToDirsRequest as Request

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

log = logging.getLogger("ottla.cluster")

CHECK_MS = 1_000
# Kafka's name for a directory that is lost.
LOST_DIRECTORY = bytes(15) + b"\x01"


class FailedDirs:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def check(self) -> None:
        broker = self._broker
        failed = self._failed()
        if not failed or broker.broker_epoch < 0:
            return
        topics = [
            Request.TopicData(
                topic_id=topic_id,
                partitions=[Request.PartitionData(partition_index=index) for index in indexes],
            )
            for topic_id, indexes in failed.items()
        ]
        lost = Request.DirectoryData(id=LOST_DIRECTORY, topics=topics)
        request = Request(broker_id=broker.node_id, broker_epoch=broker.broker_epoch, directories=[lost])
        try:
            answer = await broker.ask_controller(request)
            if answer.error_code != ErrorCode.NONE:
                raise ApiError(ErrorCode(answer.error_code))
            log.error("the controller knows of replicas that failed", extra={"topics": len(failed)})
        except (PeerUnavailable, ApiError) as error:
            log.warning("cannot tell the controller of failed replicas, will try again", extra={"why": str(error)})

    def _failed(self) -> dict[TopicId, list[int]]:
        """Those that the image does not know of yet."""
        broker, logs = self._broker, self._broker.logs
        if not any(log_dir.offline is not None or log_dir.refusals.is_full for log_dir in logs.dirs):
            return {}
        failed: dict[TopicId, list[int]] = {}
        for topic in broker.image.topics.values():
            for index, partition in enumerate(topic.partitions):
                if broker.node_id not in partition.replicas or broker.node_id in partition.offline:
                    continue
                found = logs.get(TopicPartition(topic.name, index))
                if found is None or found.failed is not None:
                    failed.setdefault(topic.id, []).append(index)
        return failed
