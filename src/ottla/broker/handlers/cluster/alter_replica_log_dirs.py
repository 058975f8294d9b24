"""AlterReplicaLogDirs v1-2. Starts moving partitions to other log directories; DescribeLogDirs shows how far it is."""

from __future__ import annotations

from pathlib import Path

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.broker.controller.change_log import tell
from ottla.common.errors import ErrorCode
from ottla.common.ids import TopicPartition
from ottla.common.steps import Steps
from ottla.protocol.messages import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse
from ottla.storage.log_dirs.log_dir import LogDir


def handle(
    broker: Broker, context: RequestContext, request: AlterReplicaLogDirsRequest
) -> Steps[AlterReplicaLogDirsResponse]:
    outcomes: dict[str, dict[int, ErrorCode]] = {}
    for directory in request.dirs:
        target = _find(broker, directory.path)
        for topic in directory.topics:
            for index in topic.partitions:
                code = _start(broker, context, TopicPartition(topic.name, index), target)
                outcomes.setdefault(topic.name, {})[index] = code
                yield None
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult(
                topic_name=topic,
                partitions=[
                    AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult(
                        partition_index=index, error_code=code
                    )
                    for index, code in codes.items()
                ],
            )
            for topic, codes in outcomes.items()
        ]
    )


def _find(broker: Broker, path: str) -> LogDir | None:
    return next((log_dir for log_dir in broker.logs.dirs if log_dir.path.absolute() == Path(path)), None)


def _start(broker: Broker, context: RequestContext, tp: TopicPartition, target: LogDir | None) -> ErrorCode:
    if target is None:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if target.offline is not None:
        return ErrorCode.KAFKA_STORAGE_ERROR
    if broker.logs.get(tp) is None:
        # As Kafka: a replica of ours may be led by somebody else.
        return broker.partitions.error_for(*tp)
    tell("moving a replica", context.requester, partition=tp, folder=target.path)
    broker.replica_moves.start(tp, target)
    return ErrorCode.NONE
