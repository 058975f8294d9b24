"""AssignReplicasToDirs v0. A broker tells the controller which of its replicas have failed, and which of those are
there after all. Only whether it is the directory that stands for lost ones means anything, because nobody else needs to
know where a replica is."""

from __future__ import annotations

from ottla.broker.broker import Broker
from ottla.broker.cluster.failed_dirs import LOST_DIRECTORY
from ottla.broker.context import RequestContext
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicId
from ottla.common.steps import Steps
from ottla.controller.log_dirs import Replica
from ottla.protocol.messages import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse


def handle(
    broker: Broker, context: RequestContext, request: AssignReplicasToDirsRequest
) -> Steps[AssignReplicasToDirsResponse]:
    if broker.cluster is None or not broker.is_controller:
        raise ApiError(ErrorCode.NOT_CONTROLLER)
    lost, found = list[Replica](), list[Replica]()
    for directory in request.directories:
        named = lost if directory.id == LOST_DIRECTORY else found
        for topic in directory.topics:
            named += [(TopicId(topic.topic_id), partition.partition_index) for partition in topic.partitions]
    yield broker.cluster.controlling.replicas_failed(request.broker_id, request.broker_epoch, lost, found)
    return AssignReplicasToDirsResponse()
