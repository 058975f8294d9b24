"""AlterPartition v2-3. A leader asks the controller for other in-sync replicas (`ottla.controller` decides)."""

from __future__ import annotations

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.steps import Steps
from ottla.protocol.messages import AlterPartitionRequest, AlterPartitionResponse


def handle(broker: Broker, context: RequestContext, request: AlterPartitionRequest) -> Steps[AlterPartitionResponse]:
    if broker.cluster is None or not broker.is_controller:
        raise ApiError(ErrorCode.NOT_CONTROLLER)
    answer: AlterPartitionResponse = yield broker.cluster.controlling.alter_partition(request)
    return answer
